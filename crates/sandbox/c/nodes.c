/*
 * The library `perilune` of scripts: nodes (nodes.lua with json.lua), and what runs functions that programs send
 * (shipped.c). Both ask the host by function 0 of this library, whose first argument names the operation.
 */
#include "nodes.h"

#include "node_parts.h"
#include "proxy.h"
#include "shipped.h"

static const char source[] = {
#include "nodes.inc"
};

static void open_nodes(sandbox *S, int number, int globals)
{
    lua_State *L = S->L;
    S->nodes = number;
    load_part(L, source, sizeof source);
    lua_pushcfunction(L, ask_node);
    load_json(L);
    lua_call(L, 2, 1);
    replace_by_proxy(L);
    lua_setfield(L, globals, node_library.name);
    open_shipped(S, globals);
}

const library node_library = {"perilune", open_nodes, NULL, 0};

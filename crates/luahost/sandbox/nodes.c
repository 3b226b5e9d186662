/*
 * The library `perilune`: nodes inside scripts, and functions that programs send. Loads nodes.lua with json.lua, and
 * carries their questions to the host.
 */
#include "nodes.h"

#include "parts.h"
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
    shelter(L);
    lua_setfield(L, globals, node_library.name);
    open_shipped(S, globals);
}

const library node_library = {"perilune", open_nodes, NULL, 0};

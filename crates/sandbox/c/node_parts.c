/*
 * The parts of the library `perilune` that are written in Lua (nodes.lua, json.lua, shipped.lua and others): their
 * text is compiled into the program and loaded here. ask_node() is the function by which they ask the host about a
 * node.
 */
#include "node_parts.h"

#include "ask.h"
#include "values.h"

static const char json[] = {
#include "json.inc"
};

void load_part(lua_State *L, const char *part, size_t length)
{
    if (luaL_loadbufferx(L, part, length, "=perilune", "t") != 0)
        lua_error(L);
}

void load_json(lua_State *L)
{
    load_part(L, json, sizeof json);
}

/* ask(operation, count, subscript, ..., value): `count` is how many are the name and the subscripts. */
int ask_node(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int last = lua_gettop(L), wrong = collect_values(S, L, 1, last);
    if (wrong != 0)
        return luaL_error(L, "a node takes strings, numbers and booleans, not a %s", luaL_typename(L, wrong));
    push_answer(S, L, ask(S, L, S->nodes, 0, (size_t)last));
    forget_answer(S);
    return 1;
}

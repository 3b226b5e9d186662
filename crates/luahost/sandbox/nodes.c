/*
 * perilune.node inside scripts: loads nodes.lua with json.lua, and carries their questions to the host.
 *
 * An argument travels with a letter for its type: i and digits, d and digits, s and bytes, t, f.
 */
#include "sandbox.h"

#include <stdio.h>

static const char source[] = {
#include "nodes.inc"
};
static const char json[] = {
#include "json.inc"
};

/* Pushes the function that a part in Lua is. */
static void load_part(lua_State *L, const char *part, size_t length)
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
    int last = lua_gettop(L);
    for (int index = 1; index <= last; index++) {
        char number[40];
        lua_Number value = lua_tonumber(L, index);
        switch (lua_type(L, index)) {
        case LUA_TSTRING:
            lua_pushliteral(L, "s");
            lua_pushvalue(L, index);
            lua_concat(L, 2);
            break;
        case LUA_TNUMBER:
            if (value >= -9007199254740992.0 && value <= 9007199254740992.0 && value == (lua_Number)(int64_t)value)
                snprintf(number, sizeof number, "i%lld", (long long)value);
            else
                snprintf(number, sizeof number, "d%.17g", value);
            lua_pushstring(L, number);
            break;
        case LUA_TBOOLEAN:
            lua_pushstring(L, lua_toboolean(L, index) ? "t" : "f");
            break;
        case LUA_TNIL:
            lua_pushliteral(L, "n");
            break;
        default:
            return luaL_error(L, "a node takes strings, numbers and booleans, not a %s", luaL_typename(L, index));
        }
        lua_replace(L, index);
    }
    collect(S, L, 1, last);
    int protocol = S->script_protocol;
    S->script_protocol = 3;
    text reply = ask(S, L, ASK_NODE, (size_t)last);
    S->script_protocol = protocol;
    if (reply.length > 3 && reply.bytes[0] == '-') {
        lua_pushlstring(L, reply.bytes + 1, reply.length - 3);
        return luaL_error(L, "%s", lua_tostring(L, -1));
    }
    push_reply(S, L, reply);
    forget_answer(S);
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "double");
        if (lua_isnil(L, -1))
            lua_pop(L, 1);
    }
    return 1;
}

/* Pushes the library. */
void open_script_nodes(sandbox *S)
{
    lua_State *L = S->L;
    load_part(L, source, sizeof source);
    lua_pushcfunction(L, ask_node);
    load_json(L);
    lua_call(L, 2, 1);
}

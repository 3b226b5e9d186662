/*
 * Functions that programs send: loads surroundings.lua and shipped.lua, and gives them what they need.
 *
 * Invariant: compiled text sees nothing until shipped.lua has given it surroundings.
 */
#include "sandbox.h"

static const char shipped[] = {
#include "shipped.inc"
};
static const char surroundings[] = {
#include "surroundings.inc"
};

/* compile(text, name): a function, or nil and why not. */
static int compile_text(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    if (load_text(L, text, length, luaL_checkstring(L, 2)) == 0) {
        lua_newtable(L);
        lua_setfenv(L, -2);
        return 1;
    }
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static void load_part(lua_State *L, const char *part, size_t length)
{
    if (luaL_loadbufferx(L, part, length, "=perilune", "t") != 0)
        lua_error(L);
}

/* Keeps the function that runs requests; the globals of scripts are at `globals`. */
void open_shipped(sandbox *S, int globals)
{
    lua_State *L = S->L;
    load_part(L, shipped, sizeof shipped);
    lua_pushcfunction(L, compile_text);
    lua_getglobal(L, "setfenv");
    lua_pushvalue(L, globals);
    lua_newtable(L); /* the state of the run under way */
    load_part(L, surroundings, sizeof surroundings);
    lua_pushcfunction(L, ask_node);
    lua_pushvalue(L, globals);
    lua_pushvalue(L, -4);
    lua_call(L, 3, 1);
    lua_call(L, 5, 1);
    S->shipped = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* The reference of the function that runs a request, which is its argument, and returns the answer. */
int sandbox_shipped(const sandbox *S)
{
    return S->shipped;
}

/*
 * Proxies of tables that scripts see and cannot change.
 *
 * A proxy is empty; its metatable has the table as __index and refuses __newindex, and is itself hidden by
 * __metatable.
 */
#include "proxy.h"

static int refuse_write(lua_State *L)
{
    return luaL_error(L, "Attempt to modify a readonly table");
}

int is_proxy(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return 0;
    lua_pushliteral(L, "__newindex");
    lua_rawget(L, -2);
    int proxy = lua_tocfunction(L, -1) == refuse_write;
    lua_pop(L, 2);
    return proxy;
}

/* Replaces the table at the top by a proxy of it. */
void shelter(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_write);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

/*
 * Proxies: scripts can read a table through one, and cannot change it.
 *
 * Scripts share the tables of libraries, such as `string`. If one could write into them, it would change what
 * others run. A proxy is an empty table whose metatable has the real one as __index and raises an error in
 * __newindex. `string.rep = nil` in a script raises "Attempt to modify a readonly table". __metatable hides the
 * metatable itself.
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
void replace_by_proxy(lua_State *L)
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

/* Bugs that `make test-asan` must find, or it finds nothing: require 'asan_canary' returns a function for each. */
#include <lauxlib.h>
#include <lua.h>

#include <stdlib.h>

static int leak(lua_State *L)
{
    char *volatile lost = malloc(100);
    lost[0] = 1;
    lost = NULL;
    return 0;
}

static int overflow(lua_State *L)
{
    char *volatile block = lua_newuserdata(L, 8);
    block[8 + lua_gettop(L)] = 1;
    return 0;
}

int luaopen_asan_canary(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, leak);
    lua_setfield(L, -2, "leak");
    lua_pushcfunction(L, overflow);
    lua_setfield(L, -2, "overflow");
    return 1;
}

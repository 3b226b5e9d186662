/*
 * Compiles text, of scripts and modules and functions, and refuses what none may have: more than 1 MiB, bytecode,
 * and literals such as 1LL (literals.lua).
 */
#include "source.h"

int load_text(lua_State *L, const char *bytes, size_t length, const char *name)
{
    const sandbox *S = sandbox_of(L);
    if (length > SOURCE_BYTES) {
        lua_pushfstring(L, "the code is longer than %d bytes", (int)SOURCE_BYTES);
        return LUA_ERRSYNTAX;
    }
    int failed = luaL_loadbufferx(L, bytes, length, name, "t");
    if (failed != 0)
        return failed;
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->literals);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 1);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pop(L, 2);
    lua_pushliteral(L, "a number ends in LL, ULL or i: scripts have no 64-bit and no complex numbers");
    return LUA_ERRSYNTAX;
}

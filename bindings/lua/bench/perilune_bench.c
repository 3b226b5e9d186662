/*
 * For `perilune bench lua` in a Lua without FFI: calls of a Lua function from C, and SHA-512 by libcrypto.
 *
 * It is built beside the module and never installed. libcrypto is loaded at run time, so that building
 * needs nothing of it; without it there is no `sha512`.
 */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>

typedef unsigned char *hash_function(const unsigned char *, size_t, unsigned char *);

/* call(f, times): what a host does, a protected call without arguments or results. */
static int call(lua_State *L)
{
    lua_Integer times = luaL_checkinteger(L, 2);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    for (lua_Integer i = 0; i < times; i++) {
        lua_pushvalue(L, 1);
        if (lua_pcall(L, 0, 0, 0) != 0)
            return lua_error(L);
    }
    return 0;
}

/* sha512(text): 64 bytes. */
static int sha512(lua_State *L)
{
    size_t size;
    unsigned char digest[64];
    const char *text = luaL_checklstring(L, 1, &size);
    hash_function *hash = *(hash_function **)lua_touserdata(L, lua_upvalueindex(1));
    hash((const unsigned char *)text, size, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

int luaopen_perilune_bench(lua_State *L)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
    void *library = NULL;
    for (int i = 0; i < 3 && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "SHA512") : NULL;
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, call);
    lua_setfield(L, -2, "call");
    if (symbol != NULL) {
        *(void **)lua_newuserdata(L, sizeof symbol) = symbol;
        lua_pushcclosure(L, sha512, 1);
        lua_setfield(L, -2, "sha512");
    }
    return 1;
}

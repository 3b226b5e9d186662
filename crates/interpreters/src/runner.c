/*
 * A small `lua`: lua FILE [arguments], for Lua 5.1 to 5.5.
 *
 * `arg` is as in Lua's own interpreter, whose place it takes in `make test`; errors end it with a
 * traceback and 1. The Lua state is closed at the end, so that a leak detector sees only leaks.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdio.h>

/* The error's text, with where it was raised. */
static int traceback(lua_State *L)
{
    lua_getglobal(L, "tostring");
    lua_insert(L, 1);
    lua_settop(L, 2);
    lua_call(L, 1, 1);
    lua_getglobal(L, "debug");
    lua_getfield(L, -1, "traceback");
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

/* Runs the file; its arguments are light userdata: argc and argv. */
static int run(lua_State *L)
{
    int count = (int)lua_tointeger(L, 1);
    char **words = lua_touserdata(L, 2);
    luaL_openlibs(L);
    luaL_checkstack(L, count + 8, "too many arguments");
    lua_createtable(L, count, 1);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, words[i]);
        lua_rawseti(L, -2, i - 1);
    }
    lua_setglobal(L, "arg");
    lua_pushcfunction(L, traceback);
    if (luaL_loadfile(L, words[1]) != 0)
        return lua_error(L);
    for (int i = 2; i < count; i++)
        lua_pushstring(L, words[i]);
    if (lua_pcall(L, count - 2, 0, 3) != 0)
        return lua_error(L);
    return 0;
}

int main(int count, char **words)
{
    if (count < 2) {
        fprintf(stderr, "Usage: %s FILE [arguments]\n", words[0]);
        return 2;
    }
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        fprintf(stderr, "%s: no memory\n", words[0]);
        return 1;
    }
    lua_pushcfunction(L, run);
    lua_pushinteger(L, count);
    lua_pushlightuserdata(L, words);
    int status = lua_pcall(L, 2, 0, 0);
    if (status != 0) {
        const char *message = lua_tostring(L, -1);
        fprintf(stderr, "%s: %s\n", words[0], message != NULL ? message : "an error that is no text");
    }
    lua_close(L);
    return status != 0;
}

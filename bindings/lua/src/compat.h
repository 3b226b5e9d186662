/*
 * The differences between Lua 5.1, 5.2, 5.3, 5.4, 5.5 and LuaJIT that this module meets.
 *
 * It does not emulate a newer Lua; it names the few operations that the module needs.
 */
#ifndef PERILUNE_LUA_COMPAT_H
#define PERILUNE_LUA_COMPAT_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdint.h>

/* The type of a value of LuaJIT's FFI, as lua_type gives it. */
#define TYPE_CDATA 10

#if LUA_VERSION_NUM == 501
#define lua_rawlen lua_objlen
#ifndef LUA_OK
#define LUA_OK 0
#endif
#define RIDX_GLOBALS LUA_GLOBALSINDEX
static inline int lua_absindex(lua_State *L, int index)
{
    return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}
#endif

/* A userdata of `size` bytes without user values. */
static inline void *new_userdata(lua_State *L, size_t size)
{
#if LUA_VERSION_NUM >= 504
    return lua_newuserdatauv(L, size, 0);
#else
    return lua_newuserdata(L, size);
#endif
}

/* A userdata that can hold one table (`set_environment`). */
static inline void *new_userdata_with_environment(lua_State *L, size_t size)
{
#if LUA_VERSION_NUM >= 504
    return lua_newuserdatauv(L, size, 1);
#else
    return lua_newuserdata(L, size);
#endif
}

/* Pops a table and gives it to the userdata at `index`. */
static inline void set_environment(lua_State *L, int index)
{
#if LUA_VERSION_NUM >= 504
    lua_setiuservalue(L, index, 1);
#elif LUA_VERSION_NUM >= 502
    lua_setuservalue(L, index);
#else
    lua_setfenv(L, index);
#endif
}

/* Pushes the table of the userdata at `index`. */
static inline void push_environment(lua_State *L, int index)
{
#if LUA_VERSION_NUM >= 504
    lua_getiuservalue(L, index, 1);
#elif LUA_VERSION_NUM >= 502
    lua_getuservalue(L, index);
#else
    lua_getfenv(L, index);
#endif
}

/* Gives each function of `functions`, with copies of the `upvalues` values on the top of the stack,
 * to the table below them, and pops the values. */
static inline void set_functions(lua_State *L, const luaL_Reg *functions, int upvalues)
{
#if LUA_VERSION_NUM >= 502
    luaL_setfuncs(L, functions, upvalues);
#else
    for (; functions->name != NULL; functions++) {
        for (int i = 0; i < upvalues; i++)
            lua_pushvalue(L, -upvalues);
        lua_pushcclosure(L, functions->func, upvalues);
        lua_setfield(L, -(upvalues + 2), functions->name);
    }
    lua_pop(L, upvalues);
#endif
}

/* Pushes a number that holds `integer` exactly and returns 1, or 0 where no number of this Lua can. */
static inline int push_integer(lua_State *L, int64_t integer)
{
#if LUA_VERSION_NUM >= 503
    lua_pushinteger(L, (lua_Integer)integer);
    return 1;
#else
    if (integer < -INT64_C(9007199254740992) || integer > INT64_C(9007199254740992))
        return 0;
    lua_pushnumber(L, (lua_Number)integer);
    return 1;
#endif
}

/* 1 and the integer when the number at `index` is one, whatever its Lua type; else 0. */
static inline int integral(lua_State *L, int index, int64_t *integer)
{
#if LUA_VERSION_NUM >= 503
    if (lua_isinteger(L, index)) {
        *integer = (int64_t)lua_tointeger(L, index);
        return 1;
    }
#endif
    lua_Number number = lua_tonumber(L, index);
    if (!(number >= -9223372036854775808.0 && number < 9223372036854775808.0))
        return 0;
    *integer = (int64_t)number;
    return (lua_Number)*integer == number;
}

#endif

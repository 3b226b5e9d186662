/*
 * What scripts see as globals: Lua's libraries without the functions that lead out, and what the host offers, all
 * behind proxies (proxy.c). Functions of Lua that could run long, or need care, are replaced by ours: patterns.c,
 * sorting.c, load.
 *
 * Invariants
 * - No script reaches the tables behind the proxies, except for the one instruction that script_globals.c allows.
 * - rawset and the functions of `table` that write refuse proxies.
 * - getfenv, setfenv, newproxy (whose __gc runs without hooks), string.dump, io, os, debug, ffi and jit are not
 *   there; load and loadstring take text only.
 */
#include "environment.h"

#include "ask.h"
#include "random.h"
#include "script_globals.h"
#include "functions.h"
#include "json.h"
#include "msgpack.h"
#include "structs.h"
#include "patterns.h"
#include "proxy.h"
#include "sorting.h"
#include "source.h"
#include "stop.h"

static int rawset_open(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    if (is_proxy(L, 1)) {
        lua_pushliteral(L, "Attempt to modify a readonly table");
        return lua_error(L);
    }
    if (lua_isnil(L, 2))
        return luaL_error(L, "table index is nil");
    if (lua_type(L, 2) == LUA_TNUMBER && lua_tonumber(L, 2) != lua_tonumber(L, 2))
        return luaL_error(L, "table index is NaN");
    lua_rawset(L, 1);
    return 1;
}

static int absent_global(lua_State *L)
{
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
    return luaL_error(L, ABSENT_GLOBAL, name);
}

/* Gives the function at the top the globals of the function that called. */
static void give_globals(lua_State *L)
{
    lua_Debug ar;
    if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "f", &ar)) {
        lua_getfenv(L, -1);
        lua_remove(L, -2);
        if (!lua_iscfunction(L, -2) && lua_istable(L, -1)) {
            lua_setfenv(L, -2);
            return;
        }
        lua_pop(L, 1);
    }
}

static int loaded(lua_State *L, const char *bytes, size_t length, const char *name)
{
    if (load_text(L, bytes, length, name) == 0) {
        /* NB: in Lua's globals, which are a proxy, until it gets the caller's. */
        give_globals(L);
        return 1;
    }
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static int open_loadstring(lua_State *L)
{
    size_t length;
    const char *bytes = luaL_checklstring(L, 1, &length);
    return loaded(L, bytes, length, luaL_optstring(L, 2, bytes));
}

static int open_load(lua_State *L)
{
    const char *name = luaL_optstring(L, 2, "=(load)");
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 2);
    check_depth(sandbox_of(L), L);
    lua_pushliteral(L, "");
    for (;;) {
        size_t length = 0;
        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1))
            break;
        if (lua_type(L, -1) != LUA_TSTRING)
            return luaL_error(L, "reader function must return a string");
        lua_tolstring(L, -1, &length);
        if (length == 0)
            break;
        lua_concat(L, 2);
        if (lua_objlen(L, -1) > SOURCE_BYTES)
            break;
    }
    lua_settop(L, 3);
    size_t length;
    const char *bytes = lua_tolstring(L, 3, &length);
    return loaded(L, bytes, length, name);
}

/* In small steps, so that even a full collection stops when the script is to. */
static int open_collectgarbage(lua_State *L)
{
    static const char *const words[] = {"collect", "stop", "restart", "count", "step", "setpause", "setstepmul",
                                        "isrunning", NULL};
    sandbox *S = sandbox_of(L);
    switch (luaL_checkoption(L, 1, "collect", words)) {
    case 0:
        for (int steps = 0; !lua_gc(L, LUA_GCSTEP, 64); steps++)
            check_stop(S, L);
        lua_pushinteger(L, 0);
        return 1;
    case 3:
        lua_pushnumber(L, (lua_Number)S->used / 1024);
        return 1;
    case 4:
        lua_pushboolean(L, lua_gc(L, LUA_GCSTEP, 64));
        return 1;
    default:
        lua_pushinteger(L, 0);
        return 1;
    }
}

static int open_gcinfo(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)(sandbox_of(L)->used / 1024));
    return 1;
}

/* require(name): each run gets its own copy of a module, from code that is compiled once. */
static int open_require(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    luaL_checktype(L, 1, LUA_TSTRING);
    check_depth(S, L);
    lua_settop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->modules); /* 2 */
    if (S->modules_run != S->current) {
        lua_newtable(L);
        lua_setfield(L, 2, "\1loaded");
        S->modules_run = S->current;
    }
    lua_getfield(L, 2, "\1loaded"); /* 3 */
    lua_pushvalue(L, 1);
    lua_rawget(L, 3);
    if (!lua_isnil(L, -1))
        return 1;
    lua_pop(L, 1);
    lua_pushvalue(L, 1);
    lua_rawget(L, 2);
    if (lua_isnil(L, -1)) {
        collect(S, L, 1, 1);
        text source = ask(S, L, OF_SANDBOX, ASK_MODULE, 1);
        if (source.length == 0)
            return luaL_error(L, "module '%s' not found: there is no such file in script-directory",
                              lua_tostring(L, 1));
        lua_pushfstring(L, "@%s", lua_tostring(L, 1));
        if (load_text(L, source.bytes, source.length, lua_tostring(L, -1)) != 0)
            return lua_error(L);
        lua_rawgeti(L, LUA_REGISTRYINDEX, S->proxy);
        lua_setfenv(L, -2);
        lua_pushvalue(L, 1);
        lua_pushvalue(L, -2);
        lua_rawset(L, 2);
    }
    lua_pushvalue(L, 1);
    lua_pushboolean(L, 1);
    lua_rawset(L, 3);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
    lua_pushvalue(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, 3);
    return 1;
}

/* Upvalue 1 is a function of LuaJIT that may call back into Lua (__tostring). */
static int guarded(lua_State *L)
{
    check_depth(sandbox_of(L), L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Resumes `co` with the `count` values at the top; how many it gave, on its own stack, or -1 and an error
 * at the top of ours. */
static int resume(lua_State *L, lua_State *co, int count)
{
    check_depth(sandbox_of(L), L);
    int status = lua_status(co);
    lua_Debug ar;
    if (co == L || (status == 0 && lua_getstack(co, 0, &ar))) {
        lua_pushliteral(L, "cannot resume non-suspended coroutine");
        return -1;
    }
    if ((status == 0 && lua_gettop(co) == 0) || status > LUA_YIELD) {
        lua_pushliteral(L, "cannot resume dead coroutine");
        return -1;
    }
    if (!lua_checkstack(co, count + 1))
        return luaL_error(L, "too many arguments to resume");
    lua_xmove(L, co, count);
    status = lua_resume(co, count);
    if (status == 0 || status == LUA_YIELD) {
        if (!lua_checkstack(L, lua_gettop(co) + 1))
            return luaL_error(L, "too many results to resume");
        return lua_gettop(co);
    }
    lua_xmove(co, L, 1);
    return -1;
}

static int open_resume(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);
    luaL_argcheck(L, co != NULL, 1, "coroutine expected");
    int count = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, count >= 0);
    if (count < 0) {
        lua_insert(L, -2);
        return 2;
    }
    lua_xmove(co, L, count);
    return count + 1;
}

static int resume_wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int count = resume(L, co, lua_gettop(L));
    if (count >= 0) {
        lua_xmove(co, L, count);
        return count;
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int open_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, resume_wrapped, 1);
    return 1;
}

static const luaL_Reg coroutine_functions[] = {
    {"resume", open_resume},
    {"wrap", open_wrap},
    {NULL, NULL},
};

/* A new table with those of the table at `from` that are named. */
static void allow(lua_State *L, int from, const char *names)
{
    lua_newtable(L);
    while (*names != 0) {
        size_t length = strcspn(names, " ");
        lua_pushlstring(L, names, length);
        lua_pushvalue(L, -1);
        lua_gettable(L, from);
        if (lua_isnil(L, -1))
            lua_pop(L, 2);
        else
            lua_rawset(L, -3);
        names += length + (names[length] == ' ');
    }
}

static void add(lua_State *L, const luaL_Reg *functions)
{
    for (; functions->name != NULL; functions++) {
        lua_pushcfunction(L, functions->func);
        lua_setfield(L, -2, functions->name);
    }
}

static void open(lua_State *L, lua_CFunction library, const char *name)
{
    lua_pushcfunction(L, library);
    lua_pushstring(L, name);
    lua_call(L, 1, 0);
}

static const luaL_Reg globals[] = {
    {"collectgarbage", open_collectgarbage},
    {"gcinfo", open_gcinfo},
    {"load", open_load},
    {"loadstring", open_loadstring},
    {"rawset", rawset_open},
    {"require", open_require},
    {NULL, NULL},
};

/* Library `name` of LuaJIT with the functions named, `more`, and what `constants` adds, as a global. */
static void standard(lua_State *L, int all, int to, const char *name, const char *names, const luaL_Reg *more)
{
    lua_getfield(L, all, name);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    allow(L, lua_gettop(L), names);
    if (more != NULL)
        add(L, more);
    if (strcmp(name, "string") == 0) {
        lua_getfield(L, -1, "format");
        lua_pushcclosure(L, guarded, 1);
        lua_setfield(L, -2, "format");
        /* Methods of strings: "x":rep(). */
        lua_pushliteral(L, "");
        lua_createtable(L, 0, 2);
        lua_pushvalue(L, -3);
        lua_setfield(L, -2, "__index");
        lua_newtable(L);
        replace_by_proxy(L);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_pop(L, 1);
        lua_getfield(L, -1, "gmatch");
        lua_setfield(L, -2, "gfind");
    } else if (strcmp(name, "math") == 0) {
        lua_getfield(L, -1, "fmod");
        lua_setfield(L, -2, "mod");
    } else if (strcmp(name, "cjson") == 0) {
        lua_pushlightuserdata(L, NULL);
        lua_setfield(L, -2, "null");
        lua_pushliteral(L, "cjson");
        lua_setfield(L, -2, "_NAME");
        lua_pushliteral(L, "2.1.0");
        lua_setfield(L, -2, "_VERSION");
    } else if (strcmp(name, "cmsgpack") == 0) {
        lua_pushliteral(L, "cmsgpack");
        lua_setfield(L, -2, "_NAME");
        lua_pushliteral(L, "lua-cmsgpack 0.4.0");
        lua_setfield(L, -2, "_VERSION");
    }
    replace_by_proxy(L);
    lua_setfield(L, to, name);
    lua_pop(L, 1);
}

void open_environment(sandbox *S)
{
    lua_State *L = S->L;
    lua_settop(L, 0);
    open(L, luaopen_base, "");
    open(L, luaopen_table, LUA_TABLIBNAME);
    open(L, luaopen_string, LUA_STRLIBNAME);
    open(L, luaopen_math, LUA_MATHLIBNAME);
    open(L, luaopen_bit, LUA_BITLIBNAME);
    open(L, luaopen_jit, LUA_JITLIBNAME); /* without it nothing is compiled; scripts do not see it */
    lua_settop(L, 0);
    lua_pushvalue(L, LUA_GLOBALSINDEX); /* 1 */
    allow(L, 1,
          "_VERSION assert error getmetatable ipairs next pairs pcall rawequal rawget select setmetatable tonumber "
          "tostring type unpack xpcall"); /* 2 */
    add(L, globals);
    standard(L, 1, 2, "string", "byte char format len lower rep reverse sub upper", pattern_functions);
    standard(L, 1, 2, "table", "concat foreach foreachi getn maxn", table_functions);
    standard(L, 1, 2, "math",
            "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min modf pi pow "
            "rad sin sinh sqrt tan tanh",
            random_functions);
    standard(L, 1, 2, "bit", "arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex", NULL);
    standard(L, 1, 2, "coroutine", "create running status yield", coroutine_functions);
    standard(L, 1, 2, "cjson", "", json_functions);
    standard(L, 1, 2, "cmsgpack", "", msgpack_functions);
    standard(L, 1, 2, "struct", "", struct_functions);
    S->shipped = LUA_NOREF;
    for (size_t i = 0; i < S->offer->count; i++) {
        const library *offered = S->offer->libraries[i];
        if (offered->open != NULL)
            offered->open(S, (int)i, 2);
        else
            open_functions(S, offered, (int)i, 2);
    }
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, absent_global);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, 2);
    lua_pushvalue(L, 2);
    S->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    open_script_globals(S, 2);
    lua_pushvalue(L, 2);
    replace_by_proxy(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, "_G");
    lua_pushvalue(L, -1);
    S->proxy = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    S->open_globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    S->modules = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_settop(L, 0);
}

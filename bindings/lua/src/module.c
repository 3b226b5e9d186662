/*
 * luaopen__perilune: builds the module's table and the state that its functions share.
 */
#include "module.h"

#include <stdlib.h>

static int state_gc(lua_State *L)
{
    state *s = lua_touserdata(L, 1);
    for (int i = 1; i <= s->place_count; i++)
        free(s->places[i].root);
    s->place_count = 0;
    return 0;
}

/* _perilune.convert_with(f): f(cdata) makes nodes of LuaJIT's FFI into nodes that C reads. */
static int convert_with(lua_State *L)
{
    state *s = state_of(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    s->convert = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* Pushes the table of methods: name -> number. */
static void push_method_numbers(lua_State *L)
{
    lua_createtable(L, 0, 64);
    for (int i = 0; node_methods[i].name != NULL; i++) {
        lua_pushinteger(L, i + 1);
        lua_setfield(L, -2, node_methods[i].name);
    }
}

/* Fills the module's table, which is its argument; it has the upvalues of all functions. */
static int build(lua_State *L)
{
    const luaL_Reg functions[] = {{"convert_with", convert_with}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    open_errors(L);
    open_values(L);
    open_nodes(L);
    open_transactions(L);
    open_locks(L);
    open_walk(L);
    open_databases(L);
    open_light(L);
    lua_pushstring(L, perilune_version());
    lua_setfield(L, -2, "_VERSION");
    return 1;
}

static const char module_key;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen__perilune(lua_State *L)
{
    /* One module a state, even if it is loaded by two names: light userdata have one metatable. */
    lua_pushlightuserdata(L, (void *)&module_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1))
        return 1;
    lua_settop(L, 0);
    state *s = new_userdata(L, sizeof *s);
    memset(s, 0, sizeof *s);
    s->default_db = LUA_NOREF;
    s->convert = LUA_NOREF;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, state_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_createtable(L, STRING_SLOTS + INTEGER_SLOTS, 0);
    for (int i = 1; i <= STRING_SLOTS + INTEGER_SLOTS; i++) {
        lua_pushboolean(L, 0);
        lua_rawseti(L, -2, i);
    }
    lua_createtable(L, 16, 16);
    push_method_numbers(L);
    lua_pushcclosure(L, build, UPVALUES);
    lua_createtable(L, 0, 32);
    lua_call(L, 1, 1);
    lua_pushlightuserdata(L, (void *)&module_key);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 1;
}

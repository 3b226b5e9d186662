/*
 * luaopen__perilune: builds the module's table and the state that its functions share.
 */
#include "module.h"

#include "database.h"
#include "dom.h"
#include "errors.h"
#include "graphwalk.h"
#include "jit.h"
#include "light.h"
#include "locks.h"
#include "methods.h"
#include "models.h"
#include "nodes.h"
#include "ship.h"
#include "sql.h"
#include "state.h"
#include "transactions.h"
#include "values.h"
#include "walk.h"
#include "yottadb_module.h"

#include <stdlib.h>

static int state_gc(lua_State *L)
{
    state *s = lua_touserdata(L, 1);
    for (int i = 1; i <= s->place_count; i++)
        free(s->places[i].root);
    s->place_count = 0;
    return 0;
}

/* The child of a place, by its number, with an integer subscript. */
static int place_child(lua_State *L)
{
    const state *s = state_of(L);
    uint64_t block[64];
    size_t size;
    int64_t subscript = 0;
    int number = (int)lua_tointeger(L, 1);
    if (number < 1 || number > s->place_count || !integral(L, 2, &subscript))
        return raise_argument(L, "no such node");
    const place *at = &s->places[number];
    if (at->db == NULL)
        return raise_argument(L, "the node's database was closed");
    int method = (int)lua_tointeger(L, 3);
    int status = perilune_node_child_int(block, sizeof block, at->root, subscript, &size);
    if (status == PERILUNE_OK && method > 0 && method <= 63) {
        uint64_t parent[64];
        const char *name = node_methods[method - 1].name;
        memcpy(parent, block, size);
        status = perilune_node_child_str(block, sizeof block, (perilune_node *)parent, name, strlen(name), &size);
    }
    if (status != PERILUNE_OK)
        return raise_thread(L, status);
    lua_rawgeti(L, UPVALUE_PLACES, number);
    push_node(L, at->db, lua_gettop(L), (perilune_node *)block);
    return 1;
}

/*
 * _perilune.extend(convert, hook, iterators), for perilune/ffi.lua: convert(cdata) makes a node that C reads;
 * hook(class) is shown each new class; iterators(walk, pairs) makes the iterator of a walk. Returns what
 * push_jit says, the table of the places' classes, and what else it needs.
 */
static int extend(lua_State *L)
{
    state *s = state_of(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 3);
    s->iterators = luaL_ref(L, LUA_REGISTRYINDEX);
    s->class_hook = luaL_ref(L, LUA_REGISTRYINDEX);
    s->convert = luaL_ref(L, LUA_REGISTRYINDEX);
    int count = push_jit(L, s);
    lua_pushvalue(L, UPVALUE_PLACES);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushcclosure(L, place_child, UPVALUES);
    lua_pushvalue(L, UPVALUE_METHODS);
    lua_pushlightuserdata(L, (void *)(uintptr_t)perilune_cursor_next);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushcclosure(L, hand_over, UPVALUES);
    return count + 5;
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
    const luaL_Reg functions[] = {{"extend", extend}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    open_errors(L);
    open_values(L);
    open_nodes(L);
    open_transactions(L);
    open_shipping(L);
    open_locks(L);
    open_walk(L);
    open_sql(L);
    open_dom(L);
    open_models(L);
    const luaL_Reg *const of_databases[] = {transaction_functions, lock_functions, batch_functions, sql_functions, NULL};
    open_databases(L, of_databases);
    open_light(L);
    lua_pushstring(L, perilune_version());
    lua_setfield(L, -2, "_VERSION");
    return 1;
}

/* Makes `require '_perilune.yottadb'` and `'_perilune.graph'` work where there is no _perilune.so to look in. */
static void preload_parts(lua_State *L)
{
    lua_getglobal(L, "package");
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "preload");
        if (lua_istable(L, -1)) {
            lua_pushcfunction(L, luaopen__perilune_yottadb);
            lua_setfield(L, -2, "_perilune.yottadb");
            lua_pushcfunction(L, luaopen__perilune_graph);
            lua_setfield(L, -2, "_perilune.graph");
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
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
    s->class_hook = LUA_NOREF;
    s->iterators = LUA_NOREF;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, state_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_createtable(L, CACHE_PLACES, 0);
    for (int i = 1; i <= CACHE_PLACES; i++) {
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
    preload_parts(L);
    return 1;
}

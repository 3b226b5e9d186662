/*
 * luaopen__perilune_yottadb: the C part of perilune.yottadb, one table of functions.
 *
 * It is loaded by require '_perilune.yottadb', after _perilune, whose state it shares and which preloads it.
 */
#include "yottadb_module.h"

#include "yottadb.h"
#include "yottadb_data.h"
#include "yottadb_errors.h"
#include "yottadb_iterate.h"
#include "yottadb_locks.h"
#include "yottadb_nodes.h"
#include "yottadb_transactions.h"
#include "yottadb_walk.h"

#include <time.h>
#include <unistd.h>

static int process_id(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)getpid());
    return 1;
}

/* now(): seconds since 1970 and microseconds. */
static int now(lua_State *L)
{
    struct timespec time = {0, 0};
    clock_gettime(CLOCK_REALTIME, &time);
    lua_pushnumber(L, (lua_Number)time.tv_sec);
    lua_pushnumber(L, (lua_Number)(time.tv_nsec / 1000));
    return 2;
}

static int layer_gc(lua_State *L)
{
    layer *y = lua_touserdata(L, 1);
    perilune_session *locals = y->locals;
    y->locals = NULL;
    if (locals != NULL)
        perilune_session_close(locals);
    return 0;
}

static void add(lua_State *L, int base, const luaL_Reg *functions)
{
    for (int i = 0; i < LAYER_UPVALUES; i++)
        lua_pushvalue(L, base + i);
    set_functions(L, functions, LAYER_UPVALUES);
}

int luaopen__perilune_yottadb(lua_State *L);

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen__perilune_yottadb(lua_State *L)
{
    const luaL_Reg functions[] = {{"process_id", process_id}, {"now", now}, {NULL, NULL}};
    lua_settop(L, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "_perilune");
    lua_call(L, 1, 1);
    lua_getfield(L, 1, "use");
    int base = 3;
    for (int i = 1; i <= UPVALUES; i++)
        if (lua_getupvalue(L, 2, i) == NULL)
            return luaL_error(L, "_perilune is of another version");
    layer *y = new_userdata(L, sizeof *y);
    memset(y, 0, sizeof *y);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, layer_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_createtable(L, 0, 8); /* hooks, which yottadb.lua fills */
    int hooks = lua_gettop(L);
    lua_createtable(L, 0, 48);
    add(L, base, address_functions);
    add(L, base, value_functions);
    add(L, base, walk_functions);
    add(L, base, iterate_functions);
    add(L, base, named_lock_functions);
    add(L, base, tp_functions);
    add(L, base, error_functions);
    add(L, base, functions);
    lua_pushvalue(L, hooks);
    lua_setfield(L, -2, "hooks");
    return 1;
}

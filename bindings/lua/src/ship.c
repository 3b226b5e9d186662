/*
 * Transactions that run at the server: sends the function of db:transaction to the server of a remote database,
 * which runs it in one round trip. perilune/ship.lua writes the request and reads the answer; here is what it
 * needs of C.
 *
 * Invariants
 * - Only the outermost transaction of a database behind a server is sent, and only while none is open here.
 * - When the server did not run it, nothing has happened, and the caller runs it here.
 */
#include "ship.h"

#include "errors.h"
#include "handles.h"
#include "nodes.h"
#include "values.h"

#include <sys/stat.h>
#include <time.h>

static const char ship_key, tools_key;
static struct timespec loaded; /* when the first module of the process was loaded */

/* tools.class_of(x): the class of a node; nothing for what is none. */
static int class_of(lua_State *L)
{
    handle h;
    lua_settop(L, 1);
    if (!to_handle(L, 1, &h))
        return 0;
    push_class(L, 1);
    return 1;
}

/* tools.class_made(f): the class that f makes nodes of, if inherit has made it. */
static int class_made(lua_State *L)
{
    lua_settop(L, 1);
    return push_class_made(L, 1);
}

/* tools.same_database(db, node) */
static int same_database(lua_State *L)
{
    handle h;
    lua_settop(L, 2);
    check_handle(L, 2, &h);
    lua_pushboolean(L, h.db == check_database(L, 1));
    return 1;
}

/* tools.node_of(class, node): the node in another class. */
static int node_of(lua_State *L)
{
    handle h;
    lua_settop(L, 2);
    check_handle(L, 2, &h);
    luaL_checktype(L, 1, LUA_TTABLE);
    push_node(L, h.db, 1, h.key);
    return 1;
}

/* tools.is_older(path): whether the file has been as it is since before this module was loaded. */
static int is_older(lua_State *L)
{
    struct stat file;
    int older = stat(luaL_checkstring(L, 1), &file) == 0
                && (file.st_ctim.tv_sec < loaded.tv_sec
                    || (file.st_ctim.tv_sec == loaded.tv_sec && file.st_ctim.tv_nsec < loaded.tv_nsec));
    lua_pushboolean(L, older);
    return 1;
}

/* tools.run(db, options, must, request): the answer; nil if the server does not run it and it need not. */
static int run_there(lua_State *L)
{
    database *db = check_database(L, 1);
    perilune_transaction_options options;
    size_t size;
    perilune_value reply;
    int status;
    memcpy(&options, luaL_checkstring(L, 2), sizeof options);
    const char *request = luaL_checklstring(L, 4, &size);
    CALL(status, L, db, perilune_run(db->live, &options, request, size, &reply));
    /* A server that knows no functions; a function that reaches more than a request holds. */
    if ((status == PERILUNE_CANNOT_OPEN || status == PERILUNE_LIMIT_REACHED) && !lua_toboolean(L, 3))
        return 0;
    if (!ANSWERED(status))
        return raise_status(L, db, status, NULL);
    push_value(L, &reply);
    return 1;
}

/* tools.fail(code, message[, where, node]): raises an error of this module. */
static int fail(lua_State *L)
{
    const char *code = luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 4);
    for (int status = -1; status > -256; status--) {
        const char *name = perilune_status_name(status);
        if (strncmp(name, "PERILUNE_", 9) == 0 && strcmp(name + 9, code) == 0)
            return raise_from_there(L, status);
    }
    return raise_from_there(L, PERILUNE_INTERNAL);
}

/* perilune.ship(f): what sends functions; called as f(tools, db, options, tx, must, with_tx, f, count, ...). */
static int set_ship(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushlightuserdata(L, (void *)&ship_key);
    lua_insert(L, 1);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

/*
 * Has the server run the function at `function`, with what follows it on the stack; the database is at 1.
 * The number of results, which are pushed; or -1: it is to run here.
 */
int ship(lua_State *L, const perilune_transaction_options *options, int function, int with_tx, int must)
{
    int last = lua_gettop(L);
    luaL_checkstack(L, last - function + 16, "transaction");
    lua_pushlightuserdata(L, (void *)&ship_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isfunction(L, -1)) {
        lua_settop(L, last);
        return -1;
    }
    lua_pushlightuserdata(L, (void *)&tools_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)options, sizeof *options);
    push_environment(L, 1);
    lua_getfield(L, -1, "tx");
    lua_remove(L, -2);
    lua_pushboolean(L, must);
    lua_pushboolean(L, with_tx);
    lua_pushvalue(L, function);
    lua_pushinteger(L, last - function);
    for (int i = function + 1; i <= last; i++)
        lua_pushvalue(L, i);
    lua_call(L, last - function + 8, LUA_MULTRET);
    if (!lua_toboolean(L, last + 1)) {
        lua_settop(L, last);
        return -1;
    }
    return lua_gettop(L) - last - 1;
}

/* Adds perilune.ship to the module at the top of the stack. */
int open_shipping(lua_State *L)
{
    const luaL_Reg functions[] = {{"ship", set_ship}, {NULL, NULL}};
    const luaL_Reg tools[] = {{"class_of", class_of}, {"class_made", class_made}, {"same_database", same_database}, {"node_of", node_of},
                              {"is_older", is_older}, {"run", run_there},               {"fail", fail},
                              {NULL, NULL}};
    if (loaded.tv_sec == 0)
        clock_gettime(CLOCK_REALTIME_COARSE, &loaded);
    lua_pushlightuserdata(L, (void *)&tools_key);
    lua_createtable(L, 0, 8);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, tools, UPVALUES);
    lua_rawset(L, LUA_REGISTRYINDEX);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    return 0;
}

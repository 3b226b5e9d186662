/*
 * Transactions: the loop of begin, body, commit or rollback, and the next try.
 *
 * Invariants
 * - The body runs in a protected call, so every level that was begun is ended here, and no Lua error
 *   passes a frame of the library.
 * - A conflict or a restart ends all levels: it dooms the database (`doom`), every call then raises,
 *   and the outermost loop runs again, also when the body caught the error.
 * - A rollback ends the innermost level, also when the body caught its error.
 * - A body cannot be left by coroutine.yield: it runs below a C function.
 * - The outermost transaction of a database behind a server is offered to ship.c first, which may have the server run it.
 */
#include "transactions.h"

#include "database.h"
#include "errors.h"
#include "handles.h"
#include "ship.h"
#include "values.h"

static const char rollback_key;

enum { AT_EITHER = 0, AT_CLIENT = 1, AT_SERVER = 2 };

static int place_of_body(lua_State *L, int index)
{
    const char *at = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : "";
    if (strcmp(at, "server") == 0)
        return AT_SERVER;
    if (strcmp(at, "client") == 0)
        return AT_CLIENT;
    return raise_argument(L, "option at must be 'server' or 'client'");
}

/* Whether a transaction runs alone: 1 from its first try on, 0 when it has failed, -1 never. */
static int exclusive_of(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TBOOLEAN)
        return lua_toboolean(L, index);
    if (lua_type(L, index) == LUA_TSTRING && strcmp(lua_tostring(L, index), "never") == 0)
        return -1;
    return raise_argument(L, "option exclusive must be true, false or 'never'");
}

static void read_options(lua_State *L, int index, perilune_transaction_options *options, int *at)
{
    if (lua_type(L, index) == LUA_TSTRING) {
        /* A transaction id, as M has it, instead of options: 'batch' (M's 'BA') does not wait for the disk. */
        const char *id = lua_tostring(L, index);
        if (strcmp(id, "batch") == 0 || strcmp(id, "BATCH") == 0 || strcmp(id, "ba") == 0 || strcmp(id, "BA") == 0)
            options->durability = PERILUNE_DURABILITY_NONE;
        return;
    }
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (strcmp(name, "durability") == 0) {
            options->durability = durability_of(L, -1);
        } else if (strcmp(name, "read_only") == 0) {
            options->read_only = lua_toboolean(L, -1);
        } else if (strcmp(name, "exclusive") == 0) {
            options->exclusive = exclusive_of(L, -1);
        } else if (strcmp(name, "at") == 0) {
            *at = place_of_body(L, -1);
        } else if (strcmp(name, "timeout") == 0 && lua_type(L, -1) == LUA_TNUMBER && lua_tonumber(L, -1) > 0) {
            options->timeout = lua_tonumber(L, -1);
        } else if (strcmp(name, "timeout") == 0) {
            raise_argument(L, "option timeout must be a number of seconds above 0");
        } else {
            raise_argument(L, "unknown option '%s' of a transaction; there are durability, timeout, read_only, exclusive, at",
                           name);
        }
    }
}

static void close_levels(database *db, uint32_t depth)
{
    while (db->session != NULL && perilune_depth(db->session) > depth) {
        uint32_t before = perilune_depth(db->session);
        perilune_rollback(db->session);
        if (perilune_depth(db->session) >= before)
            return;
    }
}

/* Ends the doom of a level. */
static void revive(database *db)
{
    db->doom = DOOM_NONE;
    db->live = db->session;
}

enum outcome { RETURN_RESULTS, RETURN_ROLLBACK, RAISE, RAISE_STATUS, AGAIN };

/* Decides what comes of a body that ran in the level above `outer`, and ends that level. */
static enum outcome settle(database *db, uint32_t outer, int failed, int *status)
{
    close_levels(db, outer + 1); /* levels that a body left open by an error of ours */
    if (db->doom == DOOM_NONE && perilune_depth(db->session) != outer + 1) {
        close_levels(db, outer);
        *status = PERILUNE_TRANSACTION_STATE;
        return RAISE_STATUS;
    }
    if (db->doom == DOOM_NONE && !failed) {
        *status = perilune_commit(db->session);
        if (*status == PERILUNE_OK)
            return RETURN_RESULTS;
        if (*status != PERILUNE_CONFLICT && *status != PERILUNE_RESTART)
            return RAISE_STATUS;
        db->doom = DOOM_AGAIN;
        db->doom_status = *status;
    }
    /* NB: an error that rests on halves of two states must not escape: it never happened. */
    if (db->doom == DOOM_NONE && outer == 0 && perilune_validate(db->session) == PERILUNE_CONFLICT) {
        db->doom = DOOM_AGAIN;
        db->doom_status = PERILUNE_CONFLICT;
    }
    close_levels(db, outer);
    if (db->doom == DOOM_AGAIN)
        return AGAIN;
    if (db->doom == DOOM_ROLLBACK) {
        revive(db);
        return RETURN_ROLLBACK;
    }
    return RAISE;
}

/* An error of Lua that says that a body yielded, in words that help. */
static void explain_yield(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TSTRING
        && (strstr(lua_tostring(L, -1), "attempt to yield across") != NULL
            || strstr(lua_tostring(L, -1), "attempt to yield from outside") != NULL))
        raise_argument(L, "a transaction cannot be left by coroutine.yield: finish it first (the body may resume "
                          "other coroutines)");
}

static void push_body(lua_State *L, int function, int last, int with_tx)
{
    luaL_checkstack(L, last - function + 8, "transaction");
    lua_pushvalue(L, function);
    if (with_tx) {
        push_environment(L, 1);
        lua_getfield(L, -1, "tx");
        lua_remove(L, -2);
    }
    for (int i = function + 1; i <= last; i++)
        lua_pushvalue(L, i);
}

/* Runs the function at `function` with what follows it on the stack; the database is at 1. */
static int run(lua_State *L, database *db, const perilune_transaction_options *options, int at, int function,
               int with_tx)
{
    int last = lua_gettop(L), status;
    uint32_t outer = db->session == NULL ? 0 : perilune_depth(db->session);
    if (db->is_remote && outer > 0 && at == AT_SERVER)
        return raise_argument(L, "a nested transaction runs where the outermost one does: give that one the option at");
    if (db->is_remote && outer == 0 && at == AT_SERVER && options->exclusive != 0)
        return raise_argument(L, "the option exclusive is for transactions that run here: leave out it or at='server'");
    if (db->is_remote && outer == 0 && at != AT_CLIENT && options->exclusive == 0) {
        int results = ship(L, options, function, with_tx, at == AT_SERVER);
        if (results >= 0)
            return results;
    }
    for (;;) {
        TRY(status, L, db, NULL, perilune_begin(db->live, options));
        push_body(L, function, last, with_tx);
        int failed = lua_pcall(L, last - function + (with_tx != 0), LUA_MULTRET, 0);
        switch (settle(db, outer, failed, &status)) {
        case RETURN_RESULTS:
            return lua_gettop(L) - last;
        case RETURN_ROLLBACK:
            if (outer == 0)
                perilune_give_up(db->session);
            push_environment(L, 1);
            lua_pushlightuserdata(L, (void *)&rollback_key);
            lua_rawget(L, -2);
            lua_pushlightuserdata(L, (void *)&rollback_key);
            lua_pushnil(L);
            lua_rawset(L, -4);
            return 1;
        case RAISE:
            if (outer == 0)
                perilune_give_up(db->session);
            explain_yield(L);
            return lua_error(L);
        case RAISE_STATUS:
            return raise_status(L, db, status, NULL);
        case AGAIN:
            if (outer > 0) {
                db->live = NULL;
                return raise_unusable(L, db);
            }
            revive(db);
            lua_settop(L, last);
            TRY(status, L, db, NULL, perilune_retry(db->live));
            break;
        }
    }
}

/* db:transaction([options,] f, ...) */
static int database_transaction(lua_State *L)
{
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;
    int at = AT_EITHER;
    database *db = to_database(L, 1);
    if (db == NULL && lua_istable(L, 1)) { /* tx:transaction(f): a nested level */
        lua_getfield(L, 1, "db");
        lua_replace(L, 1);
    }
    db = check_database(L, 1);
    int function = 2;
    if (!lua_isfunction(L, 2)) {
        if (!lua_isnil(L, 2) && !lua_istable(L, 2) && lua_type(L, 2) != LUA_TSTRING)
            return raise_argument(L, "a transaction takes options and a function, not %s", described(L, 2));
        if (!lua_isfunction(L, 3))
            return raise_argument(L, "a transaction takes a function, not %s", described(L, 3));
        if (!lua_isnil(L, 2))
            read_options(L, 2, &options, &at);
        function = 3;
    }
    return run(L, db, &options, at, function, 1);
}

/* What perilune.transaction returns: upvalues 5 = database or nil (the default one), 6 = id, 7 = f. */
static int call_transaction(lua_State *L)
{
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;
    int at = AT_EITHER;
    lua_pushvalue(L, lua_upvalueindex(UPVALUES + 3));
    lua_insert(L, 1);
    if (lua_isnil(L, lua_upvalueindex(UPVALUES + 1)))
        push_default(L);
    else
        lua_pushvalue(L, lua_upvalueindex(UPVALUES + 1));
    lua_insert(L, 1);
    lua_pushvalue(L, lua_upvalueindex(UPVALUES + 2));
    int id = lua_gettop(L);
    if (!lua_isnil(L, id))
        read_options(L, id, &options, &at);
    lua_pop(L, 1);
    return run(L, check_database(L, 1), &options, at, 2, 0);
}

/* perilune.transaction([id,] f): a function that runs f as a transaction of the default database. */
static int transaction(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isfunction(L, 1)) {
        lua_pushnil(L);
        lua_replace(L, 2);
        lua_insert(L, 1);
    }
    if (!lua_isnil(L, 1) && !lua_istable(L, 1) && lua_type(L, 1) != LUA_TSTRING)
        return raise_argument(L, "a transaction's id must be a string or options, not %s", described(L, 1));
    if (!lua_isfunction(L, 2))
        return raise_argument(L, "a transaction takes a function, not %s", described(L, 2));
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushnil(L);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, call_transaction, UPVALUES + 3);
    return 1;
}

/* The database of db:f(), tx:f() or perilune.f(), which is put at 1. */
static database *database_of(lua_State *L)
{
    database *db = to_database(L, 1);
    if (db != NULL)
        return db;
    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, "db");
        db = to_database(L, -1);
        if (db != NULL) {
            lua_replace(L, 1);
            return db;
        }
        lua_pop(L, 1);
    }
    db = push_default(L);
    lua_insert(L, 1);
    return db;
}

static database *in_transaction(lua_State *L, const char *what)
{
    database *db = database_of(L);
    if (db->session == NULL || perilune_depth(db->session) == 0)
        raise_argument(L, "no transaction is open: %s is for the function that a transaction runs", what);
    if (db->in_sql > 0 && perilune_depth(db->session) == db->sql_base)
        raise_argument(L, "%s is not for a function of SQL, whose transaction is its statement's: raise an error", what);
    return db;
}

/* tx:rollback([value]): the innermost transaction returns `value` and has written nothing. */
static int rollback(lua_State *L)
{
    database *db = in_transaction(L, "rollback");
    if (db->doom == DOOM_NONE) {
        lua_settop(L, 2);
        push_environment(L, 1);
        lua_pushlightuserdata(L, (void *)&rollback_key);
        lua_pushvalue(L, 2);
        lua_rawset(L, -3);
        db->doom = DOOM_ROLLBACK;
        db->doom_status = PERILUNE_ROLLBACK;
        db->live = NULL;
    }
    return raise_unusable(L, db);
}

/* tx:restart(): runs the outermost transaction again. */
static int restart(lua_State *L)
{
    database *db = in_transaction(L, "restart");
    if (db->doom == DOOM_NONE) {
        db->doom = DOOM_AGAIN;
        db->doom_status = PERILUNE_RESTART;
        db->live = NULL;
    }
    return raise_unusable(L, db);
}

/* tx:restarts(): how often this transaction was run again. */
static int restarts(lua_State *L)
{
    database *db = database_of(L);
    lua_pushinteger(L, db->session == NULL ? 0 : (lua_Integer)perilune_restarts(db->session));
    return 1;
}

/* db:level(): how many levels are open. */
static int level(lua_State *L)
{
    database *db = database_of(L);
    lua_pushinteger(L, db->session == NULL ? 0 : (lua_Integer)perilune_depth(db->session));
    return 1;
}

const luaL_Reg transaction_functions[] = {{"transaction", database_transaction}, {"rollback", rollback},
                                          {"restart", restart},                  {"restarts", restarts},
                                          {"level", level},                      {NULL, NULL}};

/* Adds perilune.transaction, rollback and restart to the module at the top of the stack. */
int open_transactions(lua_State *L)
{
    const luaL_Reg functions[] = {
        {"transaction", transaction}, {"rollback", rollback}, {"restart", restart}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    return 0;
}

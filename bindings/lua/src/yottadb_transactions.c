/*
 * tp: the loop of a transaction with M's answers.
 *
 * Invariants
 * - The body runs in a protected call; every level that was begun is ended here.
 * - A restart ends all levels. It dooms the database as the native module does: every later call and the
 *   commit raise it again, so that no pcall can swallow it.
 */
#include "yottadb_transactions.h"

#include "errors.h"
#include "yottadb_data.h"
#include "yottadb_errors.h"

static void close_levels(database *db, uint32_t depth)
{
    while (db->session != NULL && perilune_depth(db->session) > depth) {
        uint32_t before = perilune_depth(db->session);
        perilune_rollback(db->session);
        if (perilune_depth(db->session) >= before)
            return;
    }
}

static void revive(database *db)
{
    db->doom = DOOM_NONE;
    db->live = db->session;
}

static void doom(database *db, int status)
{
    db->doom = DOOM_AGAIN;
    db->doom_status = status;
    db->live = NULL;
}

/* What a body answered, at the top of the stack, as a code. */
static int answer(lua_State *L, int failed)
{
    int code = CODE_TPCALLBACKINVRETVAL;
    if (failed)
        return code_in(L, -1, &code) ? code : 0;
    if (lua_isnil(L, -1))
        return 0;
    if (lua_isnumber(L, -1)) {
        double number = lua_tonumber(L, -1);
        if (number >= INT32_MIN && number <= INT32_MAX)
            code = (int)number;
    }
    return code;
}

/* The hook ended(level, kept), if locks may have been noted. */
static void level_ended(lua_State *L, uint32_t level, int kept)
{
    lua_getfield(L, HOOKS_INDEX, "ended");
    lua_pushinteger(L, (lua_Integer)level);
    lua_pushboolean(L, kept);
    lua_call(L, 2, 0);
}

enum outcome { COMMITTED, AGAIN, RAISE_ERROR, RAISE_CODE, RAISE_STATUS };

/* Decides what comes of a body in the level above `outer`, and ends that level. */
static enum outcome settle(database *db, uint32_t outer, int failed, int *code)
{
    close_levels(db, outer + 1);
    if (db->doom == DOOM_NONE && perilune_depth(db->session) != outer + 1) {
        close_levels(db, outer);
        *code = PERILUNE_TRANSACTION_STATE;
        return RAISE_STATUS;
    }
    if (db->doom == DOOM_NONE && *code == CODE_RESTART)
        doom(db, PERILUNE_RESTART);
    if (db->doom == DOOM_NONE && !failed && *code == 0) {
        int status = perilune_commit(db->session);
        if (status == PERILUNE_OK)
            return COMMITTED;
        if (status != PERILUNE_CONFLICT && status != PERILUNE_RESTART) {
            close_levels(db, outer);
            *code = status;
            return RAISE_STATUS;
        }
        doom(db, status);
    }
    /* NB: an error that rests on halves of two states never happened. */
    if (db->doom == DOOM_NONE && outer == 0 && perilune_validate(db->session) == PERILUNE_CONFLICT)
        doom(db, PERILUNE_CONFLICT);
    close_levels(db, outer);
    if (db->doom == DOOM_AGAIN)
        return AGAIN;
    if (db->doom == DOOM_ROLLBACK) {
        revive(db);
        *code = CODE_ROLLBACK;
        return RAISE_CODE;
    }
    return failed ? RAISE_ERROR : RAISE_CODE;
}

static int raise_body_error(lua_State *L)
{
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (strstr(text, "attempt to yield across") != NULL || strstr(text, "attempt to yield from outside") != NULL)
        return luaL_error(L, "a transaction cannot be left by coroutine.yield: finish it first");
    return lua_error(L);
}

/* Gives the local variables back what they had; frees what was kept of them when `finally`. */
static int restore(lua_State *L, int function, int finally)
{
    if (lua_isnil(L, function))
        return 0;
    lua_pushvalue(L, function);
    lua_pushboolean(L, finally);
    return lua_pcall(L, 1, 0, 0);
}

static void begin(lua_State *L, address *at, const perilune_transaction_options *options)
{
    int status;
    for (;;) {
        status = perilune_begin(at->db->live, options);
        if (status != PERILUNE_FORKED || !reopened(L, at->db))
            break;
    }
    if (status == PERILUNE_LIMIT_REACHED && perilune_depth(at->db->session) > 0)
        raise_code(L, CODE_TPTOODEEP);
    if (!ANSWERED(status))
        raise_perilune(L, at, status);
}

/* tp(batch, restore|nil, f, ...): runs f(...) as a transaction; see yottadb.tp. */
static int tp(lua_State *L)
{
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;
    address at = {.kind = KIND_GLOBAL};
    layer *y = layer_of(L);
    int last = lua_gettop(L);
    at.db = current_database(L);
    if (at.db->live == NULL)
        return raise_doomed(L, at.db);
    database *db = at.db;
    uint32_t outer = perilune_depth(db->session);
    if (lua_toboolean(L, 1))
        options.durability = PERILUNE_DURABILITY_NONE;
    options.timeout = y->time_limit > 0 ? y->time_limit : 1e9;
    int64_t held = y->held;
    if (outer == 0)
        y->held_before = held;
    for (;;) {
        begin(L, &at, &options);
        luaL_checkstack(L, last + 8, "transaction");
        for (int i = 3; i <= last; i++)
            lua_pushvalue(L, i);
        int failed = lua_pcall(L, last - 3, 1, 0);
        int code = answer(L, failed);
        enum outcome outcome = settle(db, outer, failed, &code);
        level_ended(L, outer + 1, outcome == COMMITTED);
        if (outcome != COMMITTED)
            y->held = held;
        if (outcome == COMMITTED) {
            restore(L, 2, 1);
            return 0;
        }
        if (outcome == AGAIN && restore(L, 2, 0) == 0) {
            if (outer > 0) {
                restore(L, 2, 1);
                return raise_doomed(L, db);
            }
            revive(db);
            lua_settop(L, last);
            int status = perilune_retry(db->live);
            if (status == PERILUNE_OK)
                continue;
            restore(L, 2, 1);
            return raise_perilune(L, &at, status);
        }
        if (outer == 0) {
            revive(db);
            perilune_give_up(db->session);
        }
        restore(L, 2, 1);
        if (outcome == RAISE_CODE)
            return raise_code(L, code);
        if (outcome == RAISE_STATUS)
            return raise_perilune(L, &at, code);
        return raise_body_error(L);
    }
}

/* doom(): asks for a restart of the open transaction, whoever catches the error that follows. */
static int ask_restart(lua_State *L)
{
    state *s = state_of(L);
    if (s->default_db != LUA_NOREF) {
        database *db = current_database(L);
        if (perilune_depth(db->session) > 0 && db->doom == DOOM_NONE)
            doom(db, PERILUNE_RESTART);
    }
    return 0;
}

/* levels(): $TLEVEL and $TRESTART. */
static int levels(lua_State *L)
{
    state *s = state_of(L);
    uint32_t level = 0, restarts = 0;
    if (s->default_db != LUA_NOREF) {
        database *db = current_database(L);
        level = perilune_depth(db->session);
        restarts = level > 0 ? perilune_restarts(db->session) : 0;
    }
    lua_pushinteger(L, (lua_Integer)level);
    lua_pushinteger(L, (lua_Integer)(restarts > 4 ? 4 : restarts));
    return 2;
}

/* time_limit([seconds]): $ZMAXTPTIME, after setting it if one is given. */
static int time_limit(lua_State *L)
{
    layer *y = layer_of(L);
    if (lua_isnumber(L, 1)) {
        double seconds = lua_tonumber(L, 1);
        y->time_limit = seconds > 0 && seconds < 1e9 ? seconds : 0;
    }
    lua_pushnumber(L, y->time_limit);
    return 1;
}

const luaL_Reg tp_functions[] = {{"tp", tp}, {"doom", ask_restart}, {"levels", levels},
                                {"time_limit", time_limit}, {NULL, NULL}};

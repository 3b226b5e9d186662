/*
 * Locks by name: lock, lock_incr, lock_decr.
 *
 * Invariants
 * - They are locks of the session, shared with the native module: each sees what the other has taken.
 * - What a transaction takes is counted by level (a hook in Lua), so that it can release no lock that was held
 *   before.
 */
#include "yottadb_locks.h"

#include "yottadb_address.h"
#include "yottadb_data.h"
#include "yottadb_errors.h"

#include <math.h>

/* A limit in seconds; -1 for none. */
static double to_limit(lua_State *L, int index)
{
    if (lua_isnoneornil(L, index))
        return PERILUNE_FOREVER;
    if (!lua_isnumber(L, index))
        luaL_error(L, "bad argument #%d (timeout: number expected, got %s)", index, luaL_typename(L, index));
    double seconds = lua_tonumber(L, index);
    if (!(seconds >= 0 && seconds <= 2147483.647))
        raise_code(L, CODE_TIME2LONG);
    return seconds;
}

/* Checks that `at` can name a lock, and gives the database whose lock it is. */
static database *lockable(lua_State *L, address *at)
{
    perilune_value sub;
    if (at->kind != KIND_GLOBAL && at->kind != KIND_LOCAL)
        session_for(L, at);
    for (uint32_t i = 1; i <= at->key->depth; i++)
        if (perilune_node_subscript(at->key, i, &sub) == PERILUNE_OK && sub.type == PERILUNE_STRING
            && sub.as.s.n > MAX_LOCK_SUB)
            raise_code(L, CODE_LOCKSUB2LONG);
    at->db = current_database(L);
    if (at->db->live == NULL)
        raise_doomed(L, at->db);
    return at->db;
}

#define LOCKING(status, L, at, expression)                                     \
    do {                                                                       \
        perilune_session *session = lockable(L, at)->live;                     \
        (status) = (expression);                                               \
        if ((status) != PERILUNE_FORKED || !reopened(L, (at)->db))             \
            break;                                                             \
    } while (1)

/* Calls hook taken(key, private, change, level): the lock's count in the open transaction. */
static int64_t noted(lua_State *L, const address *at, int change)
{
    lua_getfield(L, HOOKS_INDEX, "taken");
    lua_pushlstring(L, (const char *)PERILUNE_NODE_KEY(at->key), at->key->key_size);
    lua_pushboolean(L, at->kind == KIND_LOCAL);
    lua_pushinteger(L, change);
    lua_pushinteger(L, (lua_Integer)perilune_depth(at->db->session));
    lua_call(L, 4, 1);
    int64_t count = (int64_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return count;
}

static int refused(lua_State *L, const address *at, int status, double limit)
{
    if (status == PERILUNE_TIMED_OUT || (status == PERILUNE_DEADLOCK && limit >= 0))
        return raise_code(L, CODE_LOCK_TIMEOUT);
    if (status == PERILUNE_KEY_TOO_LONG)
        return raise_code(L, CODE_LOCKSUB2LONG);
    return raise_perilune(L, at, status);
}

/* lock_incr(varname[, {subs}][, timeout]), (varname, sub..., timeout), (node[, timeout]) */
static int lock_incr(lua_State *L)
{
    address at;
    uint32_t count = 0;
    int status, top = lua_gettop(L), last = top;
    int listed = lua_istable(L, 2);
    if (top > 1 + listed)
        last--;
    double limit = last < top ? to_limit(L, top) : PERILUNE_FOREVER;
    resolve(L, 1, last, &at);
    LOCKING(status, L, &at, perilune_lock_count(session, PERILUNE_OWNER_SESSION, at.key, &count));
    if (status == PERILUNE_OK && count >= MAX_LOCK_COUNT)
        return raise_code(L, CODE_LOCKINCR2HIGH);
    LOCKING(status, L, &at, perilune_lock(session, PERILUNE_OWNER_SESSION, at.key, PERILUNE_LOCK_EXCLUSIVE, limit));
    if (status != PERILUNE_OK)
        return refused(L, &at, status, limit);
    layer_of(L)->held++;
    if (perilune_depth(at.db->session) > 0)
        noted(L, &at, 1);
    return 0;
}

/* lock_decr(varname|node, ...) */
static int lock_decr(lua_State *L)
{
    address at;
    uint32_t count = 0;
    int status;
    resolve(L, 1, lua_gettop(L), &at);
    LOCKING(status, L, &at, perilune_lock_count(session, PERILUNE_OWNER_SESSION, at.key, &count));
    int inside = status == PERILUNE_OK && perilune_depth(at.db->session) > 0;
    if (inside && count == 1 && noted(L, &at, 0) <= 0)
        return raise_code(L, CODE_TPLOCK);
    LOCKING(status, L, &at, perilune_unlock(session, PERILUNE_OWNER_SESSION, at.key));
    if (!ANSWERED(status))
        return raise_perilune(L, &at, status);
    if (status == PERILUNE_OK) {
        layer_of(L)->held--;
        if (inside)
            noted(L, &at, -1);
    }
    return 0;
}

/* lock(list|nil[, timeout]): releases all, then takes all of the list's nodes or none. */
static int lock(lua_State *L)
{
    address at;
    int status;
    lua_settop(L, 2);
    if (!lua_isnil(L, 1) && !lua_istable(L, 1))
        return luaL_error(L, "bad argument #1 to 'lock' (table of node specifiers expected, got %s)", luaL_typename(L, 1));
    double limit = to_limit(L, 2);
    size_t count = lua_istable(L, 1) ? lua_rawlen(L, 1) : 0;
    perilune_lock_request *requests = new_userdata(L, (count + 1) * sizeof *requests);
    luaL_checkstack(L, count < 10000 ? (int)count + 16 : 10016, "nodes to lock");
    if (count > 10000)
        return luaL_error(L, "bad argument #1 to 'lock' (at most 10000 node specifiers expected, got more)");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 1, (int)i + 1);
        if (to_address_node(L, -1) == NULL)
            return luaL_error(L, "bad argument #1 to 'lock' (table of node specifiers expected: they must all be cachearrays)");
        resolve(L, lua_gettop(L), lua_gettop(L), &at);
        lockable(L, &at);
        requests[i] = (perilune_lock_request){at.key, PERILUNE_LOCK_EXCLUSIVE, 0};
    }
    at = (address){.kind = KIND_GLOBAL, .db = current_database(L)};
    if (at.db->live == NULL)
        return raise_doomed(L, at.db);
    layer *y = layer_of(L);
    if (perilune_depth(at.db->session) > 0 && y->held_before > 0)
        return raise_code(L, CODE_TPLOCK);
    ON(status, L, &at, perilune_unlock_all(session, PERILUNE_OWNER_SESSION));
    y->held = 0;
    if (count == 0)
        return 0;
    ON(status, L, &at, perilune_lock_many(session, PERILUNE_OWNER_SESSION, requests, count, limit));
    if (status != PERILUNE_OK)
        return refused(L, &at, status, limit);
    y->held = (int64_t)count;
    return 0;
}

const luaL_Reg named_lock_functions[] = {
    {"lock", lock}, {"lock_incr", lock_incr}, {"lock_decr", lock_decr}, {NULL, NULL}};

/*
 * Locks of nodes, and waiting until a node changes: grab, release, lock, lock_count, wait, watch.
 *
 * Invariants
 * - Locks belong to the session of the database, of which a Lua state has one: coroutines share them.
 * - A wait sleeps in the kernel; there is no polling here.
 */
#include "locks.h"

#include "database.h"
#include "errors.h"
#include "handles.h"
#include "values.h"

static const char watch_key;

typedef struct watch {
    uint64_t number;
    database *db; /* NULL: ended */
} watch;

/* n:grab([timeout]): takes the lock once more; false when the time is over. */
int node_grab(lua_State *L)
{
    handle h;
    int status;
    check_handle(L, 1, &h);
    double timeout = to_timeout(L, 2);
    TRY(status, L, h.db, h.key,
        perilune_lock(h.db->live, PERILUNE_OWNER_SESSION, h.key, PERILUNE_LOCK_EXCLUSIVE, timeout));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

/* n:release(): counts the lock down; false when it was not held. */
int node_release(lua_State *L)
{
    handle h;
    int status;
    check_handle(L, 1, &h);
    TRY(status, L, h.db, h.key, perilune_unlock(h.db->live, PERILUNE_OWNER_SESSION, h.key));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

int node_lock_count(lua_State *L)
{
    handle h;
    uint32_t count = 0;
    int status;
    check_handle(L, 1, &h);
    TRY(status, L, h.db, h.key, perilune_lock_count(h.db->live, PERILUNE_OWNER_SESSION, h.key, &count));
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

/* n:lock([timeout]): releases all locks, then takes this one. */
int node_lock(lua_State *L)
{
    handle h;
    int status;
    check_handle(L, 1, &h);
    double timeout = to_timeout(L, 2);
    TRY(status, L, h.db, h.key, perilune_unlock_all(h.db->live, PERILUNE_OWNER_SESSION));
    TRY(status, L, h.db, h.key,
        perilune_lock(h.db->live, PERILUNE_OWNER_SESSION, h.key, PERILUNE_LOCK_EXCLUSIVE, timeout));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

/* The requests for the nodes in the list at `index`; what they point to stays on the stack. */
static perilune_lock_request *requests_of(lua_State *L, int index, const database *db, size_t *count)
{
    *count = lua_rawlen(L, index);
    perilune_lock_request *requests = new_userdata(L, (*count + 1) * sizeof *requests);
    lua_createtable(L, (int)*count, 0);
    int keep = lua_gettop(L);
    for (size_t i = 0; i < *count; i++) {
        handle h;
        lua_rawgeti(L, index, (int)i + 1);
        if (!to_handle(L, -1, &h) || h.db != db)
            raise_argument(L, "entry %d of the list must be a node of this database", (int)i + 1);
        size_t size = PERILUNE_NODE_SIZE(h.key);
        requests[i].node = memcpy(new_userdata(L, size), h.key, size);
        requests[i].mode = PERILUNE_LOCK_EXCLUSIVE;
        requests[i].reserved = 0;
        lua_rawseti(L, keep, (int)i + 1);
        lua_settop(L, keep);
    }
    return requests;
}

/* db:lock([nodes[, timeout]]): releases all locks, then takes all of `nodes` or none of them. */
static int database_lock(lua_State *L)
{
    database *db = to_database(L, 1);
    if (db == NULL) {
        db = push_default(L);
        lua_insert(L, 1);
    }
    int status;
    size_t count = 0;
    perilune_lock_request *requests = NULL;
    lua_settop(L, 3);
    double timeout = to_timeout(L, 3);
    if (!lua_isnil(L, 2)) {
        if (!lua_istable(L, 2))
            return raise_argument(L, "lock takes a list of nodes, not %s", described(L, 2));
        requests = requests_of(L, 2, db, &count);
    }
    TRY(status, L, db, NULL, perilune_unlock_all(db->live, PERILUNE_OWNER_SESSION));
    if (count > 0)
        TRY(status, L, db, NULL, perilune_lock_many(db->live, PERILUNE_OWNER_SESSION, requests, count, timeout));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

static watch *check_watch(lua_State *L)
{
    watch *w = lua_touserdata(L, 1);
    if (w == NULL || !lua_getmetatable(L, 1))
        raise_argument(L, "argument 1 must be a watch, not %s", luaL_typename(L, 1));
    lua_pushlightuserdata(L, (void *)&watch_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_rawequal(L, -1, -2))
        raise_argument(L, "argument 1 must be a watch");
    lua_pop(L, 2);
    if (w->db == NULL)
        raise_argument(L, "the watch was closed");
    return w;
}

static watch *push_watch(lua_State *L, database *db, const perilune_watch_request *requests, size_t count, int owner)
{
    watch *w = new_userdata_with_environment(L, sizeof *w);
    int status;
    w->db = NULL;
    lua_pushlightuserdata(L, (void *)&watch_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    /* The node's class, which holds the database. */
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, owner);
    lua_rawseti(L, -2, 1);
    set_environment(L, -2);
    TRY(status, L, db, requests->node, perilune_watch(db->live, requests, count, &w->number));
    w->db = db;
    return w;
}

/* n:watch([scope]): notices what happens to the node ('node') or to all below it, too ('subtree'). */
int node_watch(lua_State *L)
{
    handle h;
    check_handle(L, 1, &h);
    perilune_watch_request request = {h.key, PERILUNE_WATCH_SUBTREE, 0};
    if (!lua_isnoneornil(L, 2)) {
        const char *scope = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
        if (strcmp(scope, "node") == 0)
            request.scope = PERILUNE_WATCH_NODE;
        else if (strcmp(scope, "subtree") != 0)
            return raise_argument(L, "a watch takes 'node' or 'subtree'");
    }
    push_class(L, 1);
    push_watch(L, h.db, &request, 1, lua_gettop(L));
    return 1;
}

static int wait_for(lua_State *L, watch *w, double timeout)
{
    int status;
    TRY(status, L, w->db, NULL, perilune_wait(w->db->live, w->number, timeout));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

static void end_watch(watch *w)
{
    database *db = w->db;
    w->db = NULL;
    if (db != NULL && db->session != NULL)
        perilune_unwatch(db->session, w->number);
}

/* n:wait([timeout[, known]]): sleeps until the node or something below it is written, or, with
 * `known`, until its value is another. False when the time is over. */
int node_wait(lua_State *L)
{
    handle h;
    perilune_value value;
    int status;
    check_handle(L, 1, &h);
    int with_known = lua_gettop(L) >= 3;
    double timeout = to_timeout(L, 2);
    lua_settop(L, 3);
    perilune_watch_request request = {h.key, PERILUNE_WATCH_SUBTREE, 0};
    push_class(L, 1);
    watch *w = push_watch(L, h.db, &request, 1, 4);
    for (;;) {
        if (with_known) {
            TRY(status, L, h.db, h.key, perilune_get(h.db->live, h.key, &value));
            push_value(L, &value);
            if (!lua_rawequal(L, -1, 3)) {
                lua_pushboolean(L, 1);
                break;
            }
            lua_pop(L, 1);
        }
        wait_for(L, w, timeout);
        if (!with_known || !lua_toboolean(L, -1))
            break;
        lua_pop(L, 1);
    }
    end_watch(w);
    return 1;
}

/* w:wait([timeout]): sleeps until something was written since the watch began or last told. */
static int watch_wait(lua_State *L)
{
    watch *w = check_watch(L);
    return wait_for(L, w, to_timeout(L, 2));
}

/* w:descriptor(): a file descriptor that becomes readable then, for poll(). */
static int watch_descriptor(lua_State *L)
{
    watch *w = check_watch(L);
    int32_t descriptor = -1;
    int status;
    TRY(status, L, w->db, NULL, perilune_watch_descriptor(w->db->live, w->number, &descriptor));
    lua_pushinteger(L, descriptor);
    return 1;
}

/* w:close(), and the end of its life. */
static int watch_close(lua_State *L)
{
    watch *w = lua_touserdata(L, 1);
    if (w != NULL && lua_rawlen(L, 1) == sizeof *w && lua_getmetatable(L, 1)) {
        lua_pushlightuserdata(L, (void *)&watch_key);
        lua_rawget(L, LUA_REGISTRYINDEX);
        if (lua_rawequal(L, -1, -2))
            end_watch(w);
    }
    return 0;
}

/* A channel's name and, at 3, its message. */
static const char *channel(lua_State *L, size_t *size)
{
    if (lua_type(L, 2) != LUA_TSTRING)
        raise_argument(L, "a channel's name must be a string, not %s", described(L, 2));
    return lua_tolstring(L, 2, size);
}

/* db:post(channel, text): sends a message; its number. */
static int database_post(lua_State *L)
{
    database *db = check_database(L, 1);
    size_t size, body_size;
    uint64_t number = 0;
    int status;
    const char *name = channel(L, &size);
    if (lua_type(L, 3) != LUA_TSTRING)
        return raise_argument(L, "a message must be a string, not %s", described(L, 3));
    const char *body = lua_tolstring(L, 3, &body_size);
    TRY(status, L, db, NULL, perilune_post(db->live, name, size, body, body_size, &number));
    lua_pushinteger(L, (lua_Integer)number);
    return 1;
}

static int push_received(lua_State *L, int status, const perilune_received *message)
{
    if (status != PERILUNE_OK)
        return 0;
    push_bytes(L, message->body, message->body_size);
    lua_pushinteger(L, (lua_Integer)message->number);
    lua_pushinteger(L, (lua_Integer)message->missed);
    return 3;
}

/* db:receive(channel[, timeout]): takes the oldest message: text, number, how many were missed. */
static int database_receive(lua_State *L)
{
    database *db = check_database(L, 1);
    size_t size;
    perilune_received message;
    int status;
    const char *name = channel(L, &size);
    double timeout = to_timeout(L, 3);
    TRY(status, L, db, NULL, perilune_receive(db->live, name, size, timeout, &message));
    return push_received(L, status, &message);
}

/* db:follow(channel, number[, timeout]): reads the first message after `number` and leaves it. */
static int database_follow(lua_State *L)
{
    database *db = check_database(L, 1);
    size_t size;
    perilune_received message;
    int64_t after = 0;
    int status;
    const char *name = channel(L, &size);
    if (lua_type(L, 3) != LUA_TNUMBER || !integral(L, 3, &after) || after < 0)
        return raise_argument(L, "follow takes a message's number, from 0");
    double timeout = to_timeout(L, 4);
    TRY(status, L, db, NULL, perilune_follow(db->live, name, size, (uint64_t)after, timeout, &message));
    return push_received(L, status, &message);
}

const luaL_Reg lock_functions[] = {
    {"lock", database_lock}, {"post", database_post}, {"receive", database_receive}, {"follow", database_follow},
    {NULL, NULL}};

int open_locks(lua_State *L)
{
    const luaL_Reg methods[] = {{"wait", watch_wait},   {"descriptor", watch_descriptor}, {"close", watch_close},
                                {"__gc", watch_close}, {"__close", watch_close},         {NULL, NULL}};
    const luaL_Reg functions[] = {{"lock", database_lock}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    lua_pushlightuserdata(L, (void *)&watch_key);
    lua_createtable(L, 0, 8);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, methods, UPVALUES);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

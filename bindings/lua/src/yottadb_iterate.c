/*
 * Loops over children: iterate(node, reverse, shape), a cursor behind an iterator.
 *
 * Invariants
 * - The loop remembers its last subscript. A cursor that is no longer good (another database, another
 *   level of a transaction, after fork) is opened again behind it, so a loop may do what it likes.
 * - It sees what this process writes ahead of it and never shows the subscript "".
 */
#include "yottadb_iterate.h"

#include "yottadb_address.h"
#include "yottadb_data.h"
#include "yottadb_errors.h"

enum shape { SHAPE_SUBSCRIPTS = 0, SHAPE_PAIRS = 1, SHAPE_DATA = 2 };

enum { NODE = UPVALUES + 3, LAST = UPVALUES + 4, ITERATION = UPVALUES + 5 };

typedef struct iteration {
    perilune_cursor *cursor; /* NULL: not open */
    perilune_session *session;
    uint32_t depth; /* of the transaction that the cursor was opened in */
    int shape;
    int reverse;
    int done;
    int busy; /* values are being pushed: finalizers run, which must not go on with it */
} iteration;

static void close_cursor(iteration *it)
{
    perilune_cursor *cursor = it->cursor;
    it->cursor = NULL;
    perilune_cursor_close(cursor);
}

static int iteration_gc(lua_State *L)
{
    close_cursor(lua_touserdata(L, 1));
    return 0;
}

static int open_cursor(lua_State *L, iteration *it, const address *at, perilune_session *session)
{
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value from;
    options.flags = PERILUNE_CURSOR_WITHOUT_EMPTY;
    if (it->reverse)
        options.flags |= PERILUNE_CURSOR_REVERSE;
    if (it->shape != SHAPE_SUBSCRIPTS)
        options.flags |= PERILUNE_CURSOR_VALUES;
    if (it->shape == SHAPE_DATA)
        options.flags |= PERILUNE_CURSOR_DATA;
    if (!lua_isnil(L, lua_upvalueindex(LAST))) {
        size_t size;
        const char *text = lua_tolstring(L, lua_upvalueindex(LAST), &size);
        from = perilune_string(text, size);
        options.from = &from;
        options.flags |= PERILUNE_CURSOR_FROM_EXCLUSIVE;
    }
    it->session = session;
    it->depth = perilune_depth(session);
    return perilune_cursor_open(session, at->key, &options, &it->cursor);
}

/* Goes one step; a cursor that fails after it was good is opened again, once. */
static int step(lua_State *L, iteration *it, address *at, perilune_value *sub, perilune_value *value, int32_t *data)
{
    for (int fresh = 0;;) {
        perilune_session *session = session_for(L, at);
        int status = PERILUNE_OK;
        if (it->cursor != NULL && (it->session != session || it->depth != perilune_depth(session)))
            close_cursor(it);
        if (it->cursor == NULL) {
            fresh = 1;
            status = open_cursor(L, it, at, session);
        }
        if (status == PERILUNE_OK)
            status = perilune_cursor_next(it->cursor, sub, it->shape == SHAPE_SUBSCRIPTS ? NULL : value,
                                          it->shape == SHAPE_DATA ? data : NULL);
        if (ANSWERED(status))
            return status;
        close_cursor(it);
        if (status == PERILUNE_FORKED && after_fork(L, at))
            continue;
        if (fresh || status == PERILUNE_CONFLICT || status == PERILUNE_RESTART)
            raise_perilune(L, at, status);
    }
}

/* Pushes the node where the cursor is, with the class of the loop's node. */
static void push_child_node(lua_State *L, iteration *it, address *at)
{
    size_t size = 0;
    int status = perilune_cursor_node(it->cursor, at->block, sizeof at->block, &size);
    at->key = (perilune_node *)at->block;
    if (status == PERILUNE_BUFFER_TOO_SMALL) {
        void *block = new_userdata(L, size);
        status = perilune_cursor_node(it->cursor, block, size, &size);
        at->key = block;
    }
    if (status != PERILUNE_OK)
        raise_perilune(L, at, status);
    int with_class = lua_getmetatable(L, lua_upvalueindex(NODE));
    push_address(L, at, with_class ? lua_gettop(L) : 0);
}

/* The iterator. */
static int next_child(lua_State *L)
{
    iteration *it = lua_touserdata(L, lua_upvalueindex(ITERATION));
    address at;
    perilune_value sub, value;
    int32_t data = 0;
    lua_settop(L, 0);
    if (it->done)
        return 0;
    if (it->busy)
        return luaL_error(L, "the iterator is in use: a finalizer must not go on with the loop that it interrupts");
    lua_pushvalue(L, lua_upvalueindex(NODE));
    resolve(L, 1, 1, &at);
    if (step(L, it, &at, &sub, &value, &data) != PERILUNE_OK) {
        it->done = 1;
        close_cursor(it);
        return 0;
    }
    it->busy = it->shape != SHAPE_SUBSCRIPTS;
    push_text(L, &sub);
    lua_pushvalue(L, 2);
    lua_replace(L, lua_upvalueindex(LAST));
    if (it->shape == SHAPE_SUBSCRIPTS)
        return 1;
    push_text(L, &value);
    push_child_node(L, it, &at);
    it->busy = 0;
    lua_pushvalue(L, 3);
    lua_pushvalue(L, 2);
    if (it->shape == SHAPE_PAIRS)
        return 3;
    lua_pushinteger(L, data);
    return 4;
}

/*
 * iterate(node, reverse, shape): an iterator of the children's subscripts (shape 0), of child, value and
 * subscript (1), or these and data (2).
 */
static int iterate(lua_State *L)
{
    static const char key;
    lua_settop(L, 3);
    if (to_address_node(L, 1) == NULL)
        return luaL_error(L, "bad argument #1 (node expected, got %s)", luaL_typename(L, 1));
    for (int i = 1; i <= LAYER_UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    iteration *it = new_userdata(L, sizeof *it);
    memset(it, 0, sizeof *it);
    it->reverse = lua_toboolean(L, 2);
    it->shape = (int)lua_tointeger(L, 3);
    lua_pushlightuserdata(L, (void *)&key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, iteration_gc);
        lua_setfield(L, -2, "__gc");
        lua_pushlightuserdata(L, (void *)&key);
        lua_pushvalue(L, -2);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    lua_setmetatable(L, -2);
    lua_pushcclosure(L, next_child, LAYER_UPVALUES + 3);
    return 1;
}

const luaL_Reg iterate_functions[] = {{"iterate", iterate}, {NULL, NULL}};

/*
 * Going through nodes: next, previous, subscripts, pairs, ipairs, children, nodes.
 *
 * Invariants
 * - An iteration is one cursor; it is closed at its end, when its loop is left (Lua 5.4 on) or by the collector,
 *   and it sees what the loop writes ahead of it.
 * - Each node that a loop gets is a new one, so that the loop may keep it.
 * - What a step gave lies in the cursor until the next step. A hook or a finalizer may run before all of it is on
 *   the Lua stack: it must not step that iterator, nor close it (`busy`).
 * - On LuaJIT perilune/ffi.lua makes the iterators of subscripts and pairs, which step the cursor by themselves.
 *   What they do not read (values but integers, strings and booleans, the end, errors) they pass to hand_over().
 */
#include "walk.h"

#include "errors.h"
#include "handles.h"
#include "nodes.h"
#include "stored.h"
#include "values.h"

static const char cursor_key, loop_key;

enum shape { SHAPE_SUBSCRIPTS, SHAPE_PAIRS, SHAPE_CHILDREN, SHAPE_NODES, SHAPE_LIST };

enum { IDLE = 0, STEPPING = 1, HANDED_OVER = 2 };

/* NB: perilune/ffi.lua mirrors it as far as `busy`. */
typedef struct walk {
    perilune_cursor *cursor;
    database *db;
    perilune_value subscript; /* what the last step gave */
    perilune_value value;
    int32_t status; /* what the last step answered */
    int32_t busy;   /* whether it is being taken */
    enum shape shape;
    int64_t index; /* of SHAPE_LIST: the next one expected */
    int64_t step;
} walk;

static void end_walk(walk *w)
{
    perilune_cursor *cursor = w->cursor;
    w->cursor = NULL;
    /* NB: when the state ends, the session may be gone already; cursors outlive it. */
    perilune_cursor_close(cursor);
}

/* Closes the cursor of the walk at 1 when its loop is left; one in use, by what interrupted it, is the collector's. */
static int walk_close(lua_State *L)
{
    walk *w = lua_touserdata(L, 1);
    if (w != NULL && lua_rawlen(L, 1) == sizeof *w && w->busy == IDLE)
        end_walk(w);
    return 0;
}

static int walk_gc(lua_State *L)
{
    walk *w = lua_touserdata(L, 1);
    if (w != NULL && lua_rawlen(L, 1) == sizeof *w)
        end_walk(w);
    return 0;
}

static walk *check_walk(lua_State *L)
{
    walk *w = lua_touserdata(L, 1);
    if (w == NULL || lua_rawlen(L, 1) != sizeof *w || !lua_getmetatable(L, 1))
        raise_argument(L, "an iterator is for the loop that it was made for");
    lua_pushlightuserdata(L, (void *)&cursor_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_rawequal(L, -1, -2))
        raise_argument(L, "an iterator is for the loop that it was made for");
    lua_settop(L, 1);
    return w;
}

/* 1: `w` has what a step gave, and is busy until the caller has taken it; 0: the end. */
static int step(lua_State *L, walk *w)
{
    if (w->cursor == NULL)
        return 0;
    if (w->db->live == NULL)
        raise_unusable(L, w->db);
    if (w->busy == STEPPING)
        raise_argument(L, "the iterator was interrupted in a step: begin a new loop");
    if (w->busy == IDLE)
        w->status = perilune_cursor_next(w->cursor, &w->subscript, w->shape == SHAPE_SUBSCRIPTS ? NULL : &w->value, NULL);
    w->busy = IDLE;
    if (w->status == PERILUNE_OK) {
        w->busy = STEPPING;
        return 1;
    }
    if (!ANSWERED(w->status))
        raise_status(L, w->db, w->status, NULL);
    end_walk(w);
    return 0;
}

static int give_pair(lua_State *L, walk *w)
{
    if (!step(L, w))
        return 0;
    push_value(L, &w->subscript);
    if (w->shape == SHAPE_PAIRS)
        push_value(L, &w->value);
    w->busy = IDLE;
    return w->shape == SHAPE_PAIRS ? 2 : 1;
}

/* The iterator of subscripts and pairs; upvalue 5 is the walk, so that nothing is checked. */
static int next_pair(lua_State *L)
{
    return give_pair(L, lua_touserdata(L, lua_upvalueindex(UPVALUES + 1)));
}

/* For perilune/ffi.lua: what the last step of the walk at 1 gave, or if none was handed over, a step. */
int hand_over(lua_State *L)
{
    return give_pair(L, check_walk(L));
}

static void push_current(lua_State *L, walk *w)
{
    uint64_t block[256];
    void *buffer = block;
    size_t size = sizeof block;
    push_environment(L, 1);
    lua_rawgeti(L, -1, 1);
    int status = perilune_cursor_node(w->cursor, buffer, size, &size);
    if (status == PERILUNE_BUFFER_TOO_SMALL) {
        buffer = new_userdata(L, size);
        status = perilune_cursor_node(w->cursor, buffer, size, &size);
        lua_insert(L, -2);
    }
    if (status != PERILUNE_OK)
        raise_thread(L, status);
    push_node(L, w->db, lua_absindex(L, -1), buffer);
}

/* The iterator of children (node, value, subscript) and nodes (node, value). */
static int next_node(lua_State *L)
{
    walk *w = check_walk(L);
    if (!step(L, w))
        return 0;
    push_value(L, &w->value);
    push_value(L, &w->subscript);
    push_current(L, w);
    w->busy = IDLE;
    lua_pushvalue(L, 2);
    if (w->shape == SHAPE_NODES)
        return 2;
    lua_pushvalue(L, 3);
    return 3;
}

/* The iterator of ipairs: the integers while they follow one another. */
static int next_item(lua_State *L)
{
    walk *w = check_walk(L);
    if (!step(L, w))
        return 0;
    if (w->subscript.type != PERILUNE_INT || w->subscript.as.i != w->index || w->value.type == PERILUNE_ABSENT) {
        w->busy = IDLE;
        end_walk(w);
        return 0;
    }
    w->index += w->step;
    push_integer(L, w->subscript.as.i);
    push_value(L, &w->value);
    w->busy = IDLE;
    return 2;
}

/* Opens the cursor and pushes iterator, walk, nil and what to close. */
static int push_walk(lua_State *L, const handle *h, enum shape shape, perilune_cursor_options *options)
{
    int status;
    walk *w = new_userdata_with_environment(L, sizeof *w);
    memset(w, 0, sizeof *w);
    w->db = h->db;
    w->shape = shape;
    lua_pushlightuserdata(L, (void *)&cursor_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    lua_createtable(L, 1, 0);
    push_class(L, 1);
    lua_rawseti(L, -2, 1);
    set_environment(L, -2);
    TRY(status, L, h->db, h->key, perilune_cursor_open(h->db->live, h->key, options, &w->cursor));
    int at = lua_gettop(L);
    int iterators = h->db->state->iterators;
    if (shape <= SHAPE_PAIRS && iterators != LUA_NOREF) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, iterators);
        lua_pushvalue(L, at);
        lua_pushboolean(L, shape == SHAPE_PAIRS);
        lua_call(L, 2, 1);
    } else {
        for (int i = 1; i <= UPVALUES; i++)
            lua_pushvalue(L, lua_upvalueindex(i));
        lua_pushvalue(L, at);
        lua_pushcclosure(L, shape <= SHAPE_PAIRS ? next_pair : shape == SHAPE_LIST ? next_item : next_node, UPVALUES + 1);
    }
    lua_pushvalue(L, at);
    lua_pushnil(L);
    lua_pushvalue(L, at);
    return 4;
}

/* A bound of a range: one of two option names, the second of them exclusive. */
static const perilune_value *bound(lua_State *L, const char *inclusive, const char *exclusive, uint32_t flag,
                                   perilune_value *value, uint32_t *flags)
{
    lua_getfield(L, 2, inclusive);
    lua_getfield(L, 2, exclusive);
    if (!lua_isnil(L, -1)) {
        if (!lua_isnil(L, -2))
            raise_argument(L, "a range has %s or %s, not both", inclusive, exclusive);
        *flags |= flag;
        lua_remove(L, -2);
    } else {
        lua_pop(L, 1);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            return NULL;
        }
    }
    to_subscript(L, -1, value);
    return value; /* the string stays on the stack */
}

static int check_options(lua_State *L)
{
    static const char *const known[] = {"reverse", "from", "to", "after", "before"};
    if (!lua_istable(L, 2))
        return 0;
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        int found = 0;
        for (int i = 0; i < 5; i++)
            found |= lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), known[i]) == 0;
        if (!found)
            raise_argument(L, "unknown option '%s'; there are from, after, to, before and reverse",
                           lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2));
    }
    return 1;
}

static int walk_children(lua_State *L, enum shape shape)
{
    handle h;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value from, to;
    check_handle(L, 1, &h);
    lua_settop(L, 2);
    if (shape == SHAPE_PAIRS || shape == SHAPE_CHILDREN)
        options.flags |= PERILUNE_CURSOR_VALUES;
    if (lua_isboolean(L, 2)) {
        if (lua_toboolean(L, 2))
            options.flags |= PERILUNE_CURSOR_REVERSE;
    } else if (check_options(L)) {
        lua_getfield(L, 2, "reverse");
        int reverse = lua_toboolean(L, -1);
        lua_pop(L, 1);
        if (reverse)
            options.flags |= PERILUNE_CURSOR_REVERSE;
        options.from = bound(L, "from", "after", PERILUNE_CURSOR_FROM_EXCLUSIVE, &from, &options.flags);
        options.to = bound(L, "to", "before", PERILUNE_CURSOR_TO_EXCLUSIVE, &to, &options.flags);
    } else if (!lua_isnil(L, 2)) {
        return raise_argument(L, "a loop takes true (reverse) or a table of from, after, to, before, reverse; not %s",
                              described(L, 2));
    }
    return push_walk(L, &h, shape, &options);
}

int node_subscripts(lua_State *L)
{
    return walk_children(L, SHAPE_SUBSCRIPTS);
}

int node_pairs_method(lua_State *L)
{
    return walk_children(L, SHAPE_PAIRS);
}

int node_children(lua_State *L)
{
    return walk_children(L, SHAPE_CHILDREN);
}

/* n:ipairs([first[, last]]): i and value of first, first+1, ... (by default 1) while there are values;
 * downwards when last is below first. */
int node_ipairs(lua_State *L)
{
    handle h;
    int64_t first = 1, last = 0;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value from, to;
    check_handle(L, 1, &h);
    lua_settop(L, 3);
    if (!lua_isnil(L, 2) && (lua_type(L, 2) != LUA_TNUMBER || !integral(L, 2, &first)))
        return raise_argument(L, "ipairs takes integers");
    if (!lua_isnil(L, 3) && (lua_type(L, 3) != LUA_TNUMBER || !integral(L, 3, &last)))
        return raise_argument(L, "ipairs takes integers");
    int down = !lua_isnil(L, 3) && last < first;
    options.flags = PERILUNE_CURSOR_VALUES | (down ? PERILUNE_CURSOR_REVERSE : 0);
    from = perilune_int(first);
    options.from = &from;
    if (!lua_isnil(L, 3)) {
        to = perilune_int(last);
        options.to = &to;
    }
    push_walk(L, &h, SHAPE_LIST, &options);
    walk *w = lua_touserdata(L, -1);
    w->index = first;
    w->step = down ? -1 : 1;
    return 4;
}

/* n:nodes([reverse]): all nodes with a value, n included, depth first: node, value. */
int node_nodes(lua_State *L)
{
    handle h;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    check_handle(L, 1, &h);
    lua_settop(L, 2);
    options.kind = PERILUNE_CURSOR_SUBTREE;
    options.flags = PERILUNE_CURSOR_VALUES | (lua_toboolean(L, 2) ? PERILUNE_CURSOR_REVERSE : 0);
    if (lua_istable(L, 2))
        return raise_argument(L, "nodes takes true (reverse) only; use children for ranges");
    return push_walk(L, &h, SHAPE_NODES, &options);
}

static loop *push_loop_of(lua_State *L, database *db, const perilune_node *key, const perilune_cursor_options *options)
{
    int status;
    luaL_checkstack(L, 12, "tree");
    loop *open = new_userdata(L, sizeof *open);
    open->cursor = NULL;
    lua_pushlightuserdata(L, (void *)&loop_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    TRY(status, L, db, key, perilune_cursor_open(db->live, key, options, &open->cursor));
    return open;
}

/* A neighbour in a database behind a server: as a step of a cursor it is read ahead, with its value. */
static int remote_neighbour(lua_State *L, const handle *h, const perilune_value *from, int forwards)
{
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value found, value;
    options.flags = PERILUNE_CURSOR_VALUES | PERILUNE_CURSOR_FROM_EXCLUSIVE | (forwards ? 0 : PERILUNE_CURSOR_REVERSE);
    options.from = from;
    loop *open = push_loop_of(L, h->db, h->key, &options);
    int found_one = loop_step(L, h->db, open, &found, &value, NULL);
    if (found_one) {
        push_value(L, &found);
        push_value(L, &value);
    } else {
        lua_pushnil(L);
    }
    end_loop(open);
    return found_one ? 2 : 1;
}

/* n:next([subscript]): the first child after it: subscript, value; as Lua's next. */
static int neighbour(lua_State *L, int forwards)
{
    handle h;
    perilune_value beside, found, value;
    const perilune_value *from = NULL;
    int status;
    check_handle(L, 1, &h);
    lua_settop(L, 2);
    if (!lua_isnil(L, 2)) {
        to_subscript(L, 2, &beside);
        from = &beside;
    }
    if (h.db->is_remote)
        return remote_neighbour(L, &h, from, forwards);
    if (forwards)
        TRY(status, L, h.db, h.key, perilune_child_next(h.db->live, h.key, from, &found));
    else
        TRY(status, L, h.db, h.key, perilune_child_previous(h.db->live, h.key, from, &found));
    if (status == PERILUNE_NOT_FOUND) {
        lua_pushnil(L);
        return 1;
    }
    char number[128];
    if (found.type == PERILUNE_DECIMAL && found.as.s.n <= sizeof number)
        found.as.s.p = memcpy(number, found.as.s.p, found.as.s.n);
    push_value(L, &found);
    if (found.type == PERILUNE_STRING)
        found.as.s.p = lua_tostring(L, -1); /* the library's bytes may be gone */
    TRY(status, L, h.db, h.key, perilune_get_child(h.db->live, h.key, &found, 1, &value));
    push_value(L, &value);
    return 2;
}

int node_next(lua_State *L)
{
    return neighbour(L, 1);
}

int node_previous(lua_State *L)
{
    return neighbour(L, 0);
}

loop *push_loop(lua_State *L, database *db, const perilune_node *key, int kind, uint32_t flags)
{
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    options.kind = kind;
    options.flags = flags;
    return push_loop_of(L, db, key, &options);
}

void end_loop(loop *open)
{
    perilune_cursor *cursor = open->cursor;
    open->cursor = NULL;
    perilune_cursor_close(cursor);
}

int loop_step(lua_State *L, database *db, loop *open, perilune_value *subscript, perilune_value *value, int32_t *data)
{
    if (db->live == NULL)
        raise_unusable(L, db);
    int status = perilune_cursor_next(open->cursor, subscript, value, data);
    if (!ANSWERED(status))
        raise_status(L, db, status, NULL);
    return status == PERILUNE_OK;
}

static int loop_gc(lua_State *L)
{
    end_loop(lua_touserdata(L, 1));
    return 0;
}

int open_walk(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&loop_key);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, loop_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pushlightuserdata(L, (void *)&cursor_key);
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, walk_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, walk_close);
    lua_setfield(L, -2, "__close");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

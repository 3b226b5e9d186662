/*
 * n:gettree: a subtree as a Lua table.
 *
 * One cursor goes through the whole subtree, a batch of entries at a time. Whether an entry has children is seen
 * from the next one, which then shares its subscripts: nothing is searched for.
 *
 * Invariants
 * - The tables that are not yet complete lie on the Lua stack, from the root's upwards, each with its key below
 *   it, and with a filter its node above it. A complete table is stored in its parent, the one below.
 * - A filter may be called in the midst of a batch: it sees the entries of that batch as they were read.
 * - What a filter or the depth leaves out is skipped by a search, unless the rest of it lies in the batch.
 */
#include "gettree.h"

#include "errors.h"
#include "handles.h"
#include "nodes.h"
#include "tree.h"
#include "values.h"
#include "walk.h"

enum { FIRST = 8, BATCH = 64 };

typedef struct reading {
    database *db;
    const perilune_node *root;
    loop *open;
    int filter;        /* where it stands on the stack, or 0 */
    int64_t depth_max; /* -1: none */
    int base;          /* where the table of the root stands */
    int level;         /* how many tables are open below it */
    size_t at, count, capacity;
    int ended;
    perilune_entry entries[BATCH];
} reading;

static int stride(const reading *r)
{
    return r->filter != 0 ? 3 : 2;
}

static int table_at(const reading *r, int level)
{
    return level == 0 ? r->base : r->base + (level - 1) * stride(r) + 2;
}

/* Pushes a value as it stands in a table: empty lists and maps are tables. */
static void push_tree_value(lua_State *L, const perilune_value *value)
{
    if (value->type == PERILUNE_EMPTY_MAP || value->type == PERILUNE_EMPTY_LIST) {
        lua_createtable(L, 0, 0);
        if (value->type == PERILUNE_EMPTY_LIST) {
            push_sentinel(L, &list_key);
            lua_setmetatable(L, -2);
        }
        return;
    }
    push_value(L, value);
}

static int is_scalar(const perilune_value *value)
{
    return value->type != PERILUNE_ABSENT && value->type != PERILUNE_EMPTY_LIST && value->type != PERILUNE_EMPTY_MAP;
}

/* filter(node, subscript, value, recurse, depth): leaves the new value on the stack. 1: go into it. */
static int filter_entry(lua_State *L, const reading *r, int node_at, int key, int value, int recurse, int depth)
{
    lua_pushvalue(L, r->filter);
    lua_pushvalue(L, node_at);
    lua_pushvalue(L, key);
    lua_pushvalue(L, value);
    lua_pushboolean(L, recurse);
    lua_pushinteger(L, depth);
    lua_call(L, 5, 2);
    int into = lua_isnil(L, -1) ? recurse : lua_toboolean(L, -1) && recurse;
    lua_pop(L, 1);
    lua_replace(L, value);
    return into;
}

/* Puts the tables that are open below level `to` into theirs. */
static void close_levels(lua_State *L, reading *r, int to)
{
    while (r->level > to) {
        lua_settop(L, table_at(r, r->level));
        r->level--;
        lua_rawset(L, table_at(r, r->level));
    }
}

/* How much a table is made for, so that it need not grow at once. */
typedef struct size {
    int items;  /* 1, 2, ... */
    int fields; /* others */
} size;

/* What the batch tells of the children of a node with `own` subscripts, whose first child may be its next entry. */
static size children_ahead(const reading *r, int own)
{
    size found = {0, 0};
    for (size_t at = r->at; at < r->count && r->entries[at].shared >= own; at++) {
        const perilune_entry *entry = &r->entries[at];
        if (entry->depth != own + 1)
            continue;
        if (entry->subscript.type == PERILUNE_INT && entry->subscript.as.i == found.items + 1)
            found.items++;
        else
            found.fields++;
    }
    return found;
}

/* Places the subscript and value on the top of the stack in the table that is open, or, if there is more
 * below them that is wanted, opens a table there, for so many fields, and returns 1. */
static int place_entry(lua_State *L, reading *r, int more, size wanted)
{
    int key = lua_gettop(L) - 1, depth = r->level + 1;
    int into = more && (r->depth_max < 0 || depth < r->depth_max);
    luaL_checkstack(L, 16, "tree");
    if (r->filter != 0) {
        handle h;
        int parent = r->level == 0 ? 1 : table_at(r, r->level) + 1;
        to_handle(L, parent, &h);
        push_child(L, parent, &h, key);
        into = filter_entry(L, r, key + 2, key, key + 1, into, depth);
        if (r->db->live == NULL)
            raise_unusable(L, r->db);
    }
    if (!into) {
        lua_settop(L, key + 1);
        if (lua_isnil(L, -1))
            lua_settop(L, key - 1);
        else
            lua_rawset(L, table_at(r, r->level));
        return 0;
    }
    lua_createtable(L, wanted.items, wanted.fields + !lua_isnil(L, key + 1));
    if (!lua_isnil(L, key + 1)) {
        lua_pushvalue(L, key + 1);
        lua_setfield(L, -2, "__");
    }
    lua_replace(L, key + 1);
    r->level++;
    return 1;
}

/* Reads the next batch; 0 at the end. */
static int fetch(lua_State *L, reading *r)
{
    if (r->db->live == NULL)
        raise_unusable(L, r->db);
    int status = perilune_cursor_fetch(r->open->cursor, r->entries, r->capacity, &r->count);
    if (!ANSWERED(status))
        raise_status(L, r->db, status, NULL);
    r->at = 0;
    r->ended = status != PERILUNE_OK;
    if (r->ended)
        r->count = 0;
    r->capacity = r->capacity < BATCH ? 2 * r->capacity : BATCH;
    return !r->ended;
}

/* Goes on behind the ancestor of `node`, the last entry of its batch, that lies `depth` levels below the root. */
static void skip_below(lua_State *L, reading *r, const perilune_node *node, int depth)
{
    uint64_t block[256];
    size_t size;
    int status = perilune_node_ancestor(block, sizeof block, node, r->root->depth + (uint32_t)depth, &size);
    /* NB: a longer key is read through instead: that is slower, not wrong. */
    if (status == PERILUNE_OK)
        status = perilune_cursor_skip(r->open->cursor, (perilune_node *)block);
    if (!ANSWERED(status) && status != PERILUNE_BUFFER_TOO_SMALL)
        raise_status(L, r->db, status, NULL);
    r->capacity = FIRST;
}

/* Opens the tables on the way to `entry`, for nodes without a value; the depth of one that is left out, or 0. */
static int open_levels(lua_State *L, reading *r, const perilune_entry *entry, int depth)
{
    while (r->level < depth - 1) {
        perilune_value subscript;
        int at = r->level + 1;
        if (perilune_node_subscript(entry->node, r->root->depth + (uint32_t)at, &subscript) != PERILUNE_OK)
            raise_status(L, r->db, PERILUNE_INTERNAL, NULL);
        push_value(L, &subscript);
        lua_pushnil(L);
        if (!place_entry(L, r, 1, (size){0, 1}))
            return at;
    }
    return 0;
}

/* Places `entry`, `depth` levels below the root; 1 if what lies below it is left out. */
static int read_entry(lua_State *L, reading *r, const perilune_entry *entry, int depth)
{
    perilune_value value = entry->value;
    int scalar = is_scalar(&value), own = entry->depth;
    size wanted = {0, 0};
    push_value(L, &entry->subscript);
    if (scalar)
        push_value(L, &value);
    else
        lua_pushnil(L);
    /* NB: this may end the batch in which `entry` lies. */
    int more = (r->at < r->count || fetch(L, r)) && r->entries[r->at].shared >= own;
    if (more)
        wanted = children_ahead(r, own);
    if (!scalar && !(more && (r->depth_max < 0 || depth < r->depth_max))) {
        lua_pop(L, 1);
        push_tree_value(L, &value);
    }
    return !place_entry(L, r, more, wanted) && more;
}

/* Fills the table on the top of the stack with what lies below the root. */
static void read_below(lua_State *L, reading *r)
{
    int skip = 0; /* what lies below this depth is left out */
    r->base = lua_gettop(L);
    while (r->at < r->count || (!r->ended && fetch(L, r))) {
        const perilune_entry *entry = &r->entries[r->at++];
        int depth = (int)entry->depth - (int)r->root->depth;
        int shared = (int)entry->shared - (int)r->root->depth;
        if (skip == 0 || shared < skip) {
            skip = 0;
            if (depth == 0)
                continue; /* the root's own value */
            close_levels(L, r, shared < 0 ? 0 : shared < r->level ? shared : r->level);
            skip = open_levels(L, r, entry, depth);
            if (skip == 0 && read_entry(L, r, entry, depth))
                skip = depth;
            else if (skip == 0)
                continue;
        }
        /* NB: after read_entry left out something, entries of it are in the batch. */
        if (r->at == r->count)
            skip_below(L, r, entry->node, skip);
    }
    close_levels(L, r, 0);
    end_loop(r->open);
}

/* n:gettree([depth[, filter]]) or n:gettree(filter): a table, or nil when there is nothing. */
int node_gettree(lua_State *L)
{
    handle h;
    reading r;
    memset(&r, 0, sizeof r);
    perilune_value value;
    int32_t data = 0;
    int status;
    check_handle(L, 1, &h);
    if (lua_isfunction(L, 2) && lua_isnoneornil(L, 3)) {
        lua_settop(L, 2);
        lua_pushnil(L);
        lua_insert(L, 2);
    }
    lua_settop(L, 3);
    r.db = h.db;
    r.filter = lua_isnil(L, 3) ? 0 : 3;
    r.depth_max = -1;
    r.root = h.key;
    r.capacity = FIRST;
    if (r.filter != 0 && !lua_isfunction(L, 3))
        return raise_argument(L, "a filter must be a function, not %s", described(L, 3));
    if (!lua_isnil(L, 2) && (lua_type(L, 2) != LUA_TNUMBER || !integral(L, 2, &r.depth_max) || r.depth_max < 0))
        return raise_argument(L, "gettree's depth must be an integer from 0, or nil for all");
    TRY(status, L, h.db, h.key, perilune_data(h.db->live, h.key, &data));
    if (data == 0)
        return 0;
    TRY(status, L, h.db, h.key, perilune_get(h.db->live, h.key, &value));
    if (is_scalar(&value))
        push_value(L, &value);
    else
        lua_pushnil(L);
    if (r.filter != 0) {
        lua_pushliteral(L, "");
        lua_insert(L, 4);
        filter_entry(L, &r, 1, 4, 5, data >= 10, 0);
        lua_replace(L, 4);
        lua_settop(L, 4);
    }
    int below = data >= 10 && r.depth_max != 0;
    r.open = below ? push_loop(L, r.db, h.key, PERILUNE_CURSOR_SUBTREE, PERILUNE_CURSOR_VALUES | PERILUNE_CURSOR_NODES) : NULL;
    lua_createtable(L, 0, 4);
    if (value.type == PERILUNE_EMPTY_LIST && data == 1) {
        push_sentinel(L, &list_key);
        lua_setmetatable(L, -2);
    }
    if (!lua_isnil(L, 4)) {
        lua_pushvalue(L, 4);
        lua_setfield(L, -2, "__");
    }
    if (below)
        read_below(L, &r);
    return 1;
}


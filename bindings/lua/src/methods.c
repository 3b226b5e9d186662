/*
 * The methods of nodes about one node: values, counters, what is there, subscripts; and the list of all methods.
 *
 * Invariant: a method's number is its place in `node_methods`, from 1; light nodes have 6 bits for it.
 */
#include "methods.h"

#include "database.h"
#include "errors.h"
#include "gettree.h"
#include "handles.h"
#include "json.h"
#include "jsonread.h"
#include "light.h"
#include "locks.h"
#include "nodes.h"
#include "pieces.h"
#include "stored.h"
#include "tree.h"
#include "values.h"
#include "walk.h"

#include <stdio.h>

int node_get(lua_State *L)
{
    handle h;
    perilune_value value;
    int64_t integer;
    int status;
    const place *light = light_parts(L, 1, &integer);
    if (light != NULL) {
        TRY(status, L, light->db, light->root, perilune_get_child_int(light->db->live, light->root, integer, &value));
    } else {
        check_handle(L, 1, &h);
        TRY(status, L, h.db, h.key, perilune_get(h.db->live, h.key, &value));
    }
    if (status == PERILUNE_NOT_FOUND) {
        lua_settop(L, 2);
        return 1;
    }
    push_value(L, &value);
    return 1;
}

int node_set(lua_State *L)
{
    handle h;
    perilune_value value;
    int64_t integer;
    int status;
    const place *light = light_parts(L, 1, &integer);
    to_value(L, 2, "a value", &value);
    if (light != NULL) {
        TRY(status, L, light->db, light->root, perilune_set_child_int(light->db->live, light->root, integer, &value));
    } else {
        check_handle(L, 1, &h);
        TRY(status, L, h.db, h.key, perilune_set(h.db->live, h.key, &value));
    }
    lua_settop(L, 2);
    return 1;
}

static int node_incr(lua_State *L)
{
    handle h;
    perilune_value by = perilune_int(1), result;
    int status;
    check_handle(L, 1, &h);
    if (!lua_isnoneornil(L, 2)) {
        if (lua_type(L, 2) != LUA_TNUMBER && lua_type(L, 2) != LUA_TSTRING)
            return raise_argument(L, "an increment must be a number or its text, not %s", described(L, 2));
        to_value(L, 2, "an increment", &by);
        if (by.type == PERILUNE_STRING)
            by.type = PERILUNE_DECIMAL;
    }
    TRY(status, L, h.db, h.key, perilune_incr(h.db->live, h.key, &by, &result));
    push_value(L, &result);
    return 1;
}

static int node_cas(lua_State *L)
{
    handle h;
    perilune_value expected, desired;
    int status;
    check_handle(L, 1, &h);
    if (lua_gettop(L) < 3)
        return raise_argument(L, "cas takes two values, the expected and the desired one (nil: none)");
    to_value(L, 2, "the expected value", &expected);
    to_value(L, 3, "the desired value", &desired);
    TRY(status, L, h.db, h.key, perilune_cas(h.db->live, h.key, &expected, &desired));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

static int data_of(lua_State *L)
{
    handle h;
    int32_t data = 0;
    int status;
    check_handle(L, 1, &h);
    TRY(status, L, h.db, h.key, perilune_data(h.db->live, h.key, &data));
    return (int)data;
}

static int node_data(lua_State *L)
{
    lua_pushinteger(L, data_of(L));
    return 1;
}

static int node_has_value(lua_State *L)
{
    lua_pushboolean(L, data_of(L) % 2 == 1);
    return 1;
}

static int node_has_tree(lua_State *L)
{
    lua_pushboolean(L, data_of(L) >= 10);
    return 1;
}

static int node_delete(lua_State *L)
{
    handle h;
    int status;
    check_handle(L, 1, &h);
    TRY(status, L, h.db, h.key, perilune_delete(h.db->live, h.key));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

static int node_kill(lua_State *L)
{
    handle h;
    int status;
    check_handle(L, 1, &h);
    TRY(status, L, h.db, h.key, perilune_kill(h.db->live, h.key));
    return 0;
}

static int copy(lua_State *L, int merging)
{
    handle from, to;
    int status;
    check_handle(L, 1, &from);
    check_handle(L, 2, &to);
    if (from.db != to.db)
        return raise_argument(L, "both nodes must be of one database: use to:settree(from:gettree())");
    TRY(status, L, from.db, to.key,
        merging ? perilune_merge(from.db->live, from.key, to.key) : perilune_copy(from.db->live, from.key, to.key));
    lua_settop(L, 2);
    return 1;
}

static int node_copy(lua_State *L)
{
    return copy(L, 0);
}

static int node_merge(lua_State *L)
{
    return copy(L, 1);
}

static int node_count(lua_State *L)
{
    handle h;
    uint64_t count = 0;
    int status;
    check_handle(L, 1, &h);
    const char *what = lua_isnoneornil(L, 2) ? "children" : lua_tostring(L, 2);
    if (what != NULL && strcmp(what, "children") == 0)
        TRY(status, L, h.db, h.key, perilune_count_children(h.db->live, h.key, &count));
    else if (what != NULL && strcmp(what, "nodes") == 0)
        TRY(status, L, h.db, h.key, perilune_count_nodes(h.db->live, h.key, &count));
    else
        return raise_argument(L, "count takes 'children' or 'nodes'");
    if (!push_integer(L, (int64_t)count))
        lua_pushnumber(L, (lua_Number)count);
    return 1;
}

static int node_depth(lua_State *L)
{
    handle h;
    check_handle(L, 1, &h);
    lua_pushinteger(L, h.key->depth);
    return 1;
}

static void push_subscript(lua_State *L, const handle *h, uint32_t index)
{
    perilune_value value;
    int status = index == 0 ? perilune_node_name(h->key, &value) : perilune_node_subscript(h->key, index, &value);
    if (status == PERILUNE_OK)
        push_value(L, &value);
    else if (ANSWERED(status))
        lua_pushnil(L);
    else
        raise_thread(L, status);
}

/* n:name(): the last subscript, or of a name the name. */
static int node_name(lua_State *L)
{
    handle h;
    check_handle(L, 1, &h);
    push_subscript(L, &h, h.key->depth);
    return 1;
}

static int node_varname(lua_State *L)
{
    handle h;
    check_handle(L, 1, &h);
    push_subscript(L, &h, 0);
    return 1;
}

/* n:subscript(i): subscript i; negative counts from the last. */
static int node_subscript(lua_State *L)
{
    handle h;
    int64_t index = -1;
    check_handle(L, 1, &h);
    if (!lua_isnoneornil(L, 2) && (lua_type(L, 2) != LUA_TNUMBER || !integral(L, 2, &index)))
        return raise_argument(L, "subscript takes an integer");
    if (index < 0)
        index += h.key->depth + 1;
    if (index < 1 || index > h.key->depth)
        lua_pushnil(L);
    else
        push_subscript(L, &h, (uint32_t)index);
    return 1;
}

/* n:subsarray(): all subscripts in a table. */
static int node_subsarray(lua_State *L)
{
    handle h;
    check_handle(L, 1, &h);
    lua_createtable(L, h.key->depth, 0);
    for (uint32_t i = 1; i <= h.key->depth; i++) {
        push_subscript(L, &h, i);
        lua_rawseti(L, -2, (int)i);
    }
    return 1;
}

/* n:parent([depth]): the ancestor with `depth` subscripts, by default one fewer; nil above a name. */
static int node_parent(lua_State *L)
{
    handle h;
    int64_t depth;
    size_t size = 0;
    check_handle(L, 1, &h);
    depth = (int64_t)h.key->depth - 1;
    if (!lua_isnoneornil(L, 2) && (lua_type(L, 2) != LUA_TNUMBER || !integral(L, 2, &depth)))
        return raise_argument(L, "parent takes a number of subscripts");
    if (depth < 0 || depth > h.key->depth) {
        lua_pushnil(L);
        return 1;
    }
    push_class(L, 1);
    void *buffer = new_userdata(L, PERILUNE_NODE_SIZE(h.key));
    int status = perilune_node_ancestor(buffer, PERILUNE_NODE_SIZE(h.key), h.key, (uint32_t)depth, &size);
    if (status != PERILUNE_OK)
        return raise_thread(L, status);
    push_node(L, h.db, lua_absindex(L, -2), buffer);
    return 1;
}

/* n:contains(m): whether m is n or below it. */
static int node_contains(lua_State *L)
{
    handle a, b;
    check_handle(L, 1, &a);
    check_handle(L, 2, &b);
    lua_pushboolean(L, a.db == b.db && perilune_node_contains(a.key, b.key));
    return 1;
}

/* The functions of the module on a node, or a name, with subscripts: db:get(node, 1, "x"). They make no
 * node for the address. Returns how many subscripts are in `subscripts`. */
static size_t address(lua_State *L, int last, handle *h, perilune_value *subscripts)
{
    if (lua_type(L, 2) == LUA_TSTRING) {
        database *db = check_database(L, 1);
        push_own_class(L, 1);
        lua_insert(L, 1);
        push_named(L, db, 1, 3, lua_gettop(L) + 1);
        lua_replace(L, 3);
        lua_remove(L, 1);
    }
    check_handle(L, 2, h);
    if (last - 2 > SUBSCRIPTS_MAX)
        raise_argument(L, "at most 255 subscripts");
    for (int i = 3; i <= last; i++)
        to_subscript(L, i, &subscripts[i - 3]);
    return last > 2 ? (size_t)(last - 2) : 0;
}

static int database_get(lua_State *L)
{
    handle h;
    perilune_value value, subscripts[SUBSCRIPTS_MAX];
    int status;
    size_t count = address(L, lua_gettop(L), &h, subscripts);
    TRY(status, L, h.db, h.key, perilune_get_child(h.db->live, h.key, subscripts, count, &value));
    push_value(L, &value);
    return 1;
}

static int database_set(lua_State *L)
{
    handle h;
    perilune_value value, subscripts[SUBSCRIPTS_MAX];
    int status, last = lua_gettop(L);
    if (last < 3)
        return raise_argument(L, "set takes a node, subscripts and a value (nil deletes)");
    size_t count = address(L, last - 1, &h, subscripts);
    to_value(L, last, "a value", &value);
    TRY(status, L, h.db, h.key, perilune_set_child(h.db->live, h.key, subscripts, count, &value));
    lua_settop(L, last);
    return 1;
}

static int database_incr(lua_State *L)
{
    handle h;
    perilune_value by, result, subscripts[SUBSCRIPTS_MAX];
    int status, last = lua_gettop(L);
    if (last < 3 || (lua_type(L, last) != LUA_TNUMBER && lua_type(L, last) != LUA_TNIL))
        return raise_argument(L, "incr takes a node, subscripts and last the increment, a number or nil for 1");
    size_t count = address(L, last - 1, &h, subscripts);
    to_value(L, last, "an increment", &by);
    if (by.type == PERILUNE_ABSENT)
        by = perilune_int(1);
    TRY(status, L, h.db, h.key, perilune_incr_child(h.db->live, h.key, subscripts, count, &by, &result));
    push_value(L, &result);
    return 1;
}

static int database_data(lua_State *L)
{
    handle h;
    perilune_value subscripts[SUBSCRIPTS_MAX];
    int32_t data = 0;
    int status;
    size_t count = address(L, lua_gettop(L), &h, subscripts);
    TRY(status, L, h.db, h.key, perilune_data_child(h.db->live, h.key, subscripts, count, &data));
    lua_pushinteger(L, data);
    return 1;
}

/* The keys of the nodes in the list at `index`, in a block of memory that stays on the stack. */
static const perilune_node **keys_of(lua_State *L, int index, const database *db, size_t *count)
{
    if (!lua_istable(L, index))
        raise_argument(L, "argument %d must be a list of nodes, not %s", index - 1, luaL_typename(L, index));
    *count = lua_rawlen(L, index);
    const perilune_node **keys = new_userdata(L, (*count + 1) * sizeof *keys);
    int block = lua_gettop(L);
    lua_createtable(L, 0, 0);
    for (size_t i = 0; i < *count; i++) {
        handle h;
        lua_rawgeti(L, index, (int)i + 1);
        if (!to_handle(L, -1, &h) || h.db != db)
            raise_argument(L, "entry %d of the list must be a node of this database", (int)i + 1);
        if (h.key == &h.block.head) {
            size_t size = PERILUNE_NODE_SIZE(h.key);
            keys[i] = memcpy(new_userdata(L, size), h.key, size);
            lua_rawseti(L, block + 1, (int)i + 1);
        } else {
            keys[i] = h.key;
        }
        /* NB: cdata were replaced on the stack: keep what the key lies in. */
        lua_pushvalue(L, -1);
        lua_rawseti(L, block + 1, -(int)i - 1);
        lua_settop(L, block + 1);
    }
    return keys;
}

static int has_bytes(const perilune_value *value)
{
    return (value->type == PERILUNE_STRING || value->type == PERILUNE_DECIMAL) && value->as.s.n > 0;
}

/* db:get_many(nodes): their values in a table, as of one moment. */
static int database_get_many(lua_State *L)
{
    size_t count;
    int status;
    database *db = check_database(L, 1);
    const perilune_node **keys = keys_of(L, 2, db, &count);
    perilune_value *values = new_userdata(L, (count + 1) * sizeof *values);
    lua_createtable(L, (int)count, 0);
    int table = lua_gettop(L);
    /* Pushing one may run finalizers that take the others away: their bytes are copied before, all at once. */
    size_t capacity = 0, size = 0;
    for (char *copy = NULL;; capacity = size, copy = new_userdata(L, size)) {
        TRY(status, L, db, NULL, perilune_get_many(db->live, keys, count, values));
        size = 0;
        for (size_t i = 0; i < count; i++)
            size += has_bytes(&values[i]) ? values[i].as.s.n : 0;
        if (size > capacity)
            continue;
        for (size_t i = 0; i < count; i++) {
            if (!has_bytes(&values[i]))
                continue;
            values[i].as.s.p = memcpy(copy, values[i].as.s.p, values[i].as.s.n);
            copy += values[i].as.s.n;
        }
        break;
    }
    lua_pushvalue(L, table);
    for (size_t i = 0; i < count; i++) {
        push_value(L, &values[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

typedef int set_all(perilune_session *, const perilune_node *const *, size_t, const perilune_value *);

static int set_by(lua_State *L, set_all *set)
{
    size_t count;
    int status;
    database *db = check_database(L, 1);
    lua_settop(L, 3);
    if (!lua_istable(L, 3))
        return raise_argument(L, "argument 2 must be a list of values, not %s", luaL_typename(L, 3));
    const perilune_node **keys = keys_of(L, 2, db, &count);
    perilune_value *values = new_userdata(L, (count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        char what[48];
        snprintf(what, sizeof what, "value %d", (int)i + 1);
        lua_rawgeti(L, 3, (int)i + 1);
        to_value(L, -1, what, &values[i]);
        lua_pop(L, 1); /* the table at 3 keeps its string */
    }
    TRY(status, L, db, NULL, set(db->live, keys, count, values));
    return 0;
}

/* db:set_many(nodes, values): all or none; a value that is nil deletes. */
static int database_set_many(lua_State *L)
{
    return set_by(L, perilune_set_many);
}

/* db:set_each(nodes, values): one after the other, fast where nodes ascend. */
static int database_set_each(lua_State *L)
{
    return set_by(L, perilune_set_each);
}

const luaL_Reg batch_functions[] = {{"get", database_get},           {"set", database_set},
                                    {"incr", database_incr},         {"data", database_data},
                                    {"get_many", database_get_many}, {"set_many", database_set_many},
                                    {"set_each", database_set_each},
                                    {NULL, NULL}};

/* NB: the order is part of the form of light nodes within one process; at most 63. */
const luaL_Reg node_methods[] = {
    [METHOD_GET - 1] = {"get", node_get},
    [METHOD_SET - 1] = {"set", node_set},
    {"incr", node_incr},
    {"cas", node_cas},
    {"data", node_data},
    {"has_value", node_has_value},
    {"has_tree", node_has_tree},
    {"delete", node_delete},
    {"kill", node_kill},
    {"copy", node_copy},
    {"merge", node_merge},
    {"count", node_count},
    {"depth", node_depth},
    {"name", node_name},
    {"varname", node_varname},
    {"subscript", node_subscript},
    {"subsarray", node_subsarray},
    {"parent", node_parent},
    {"contains", node_contains},
    {"next", node_next},
    {"previous", node_previous},
    {"subscripts", node_subscripts},
    [METHOD_PAIRS - 1] = {"pairs", node_pairs_method},
    {"ipairs", node_ipairs},
    {"children", node_children},
    {"nodes", node_nodes},
    {"settree", node_settree},
    {"gettree", node_gettree},
    {"dump", node_dump},
    {"tojson", node_tojson},
    {"fromjson", node_fromjson},
    {"grab", node_grab},
    {"release", node_release},
    {"lock_incr", node_grab},
    {"lock_decr", node_release},
    {"lock", node_lock},
    {"lock_count", node_lock_count},
    {"wait", node_wait},
    {"watch", node_watch},
    {"getpiece", node_getpiece},
    {"setpiece", node_setpiece},
    {NULL, NULL}};

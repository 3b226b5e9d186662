/*
 * Graphs as perilune/graph.lua needs them: functions over perilune_graph_*, without the comfort that it adds.
 *
 * Invariants
 * - A graph lies in a userdata (graphask.c), which frees it; it holds no session, so a closed database does not matter to it.
 * - A vertex that is given as a node of the database is the one that stands for it: its text.
 */
#include "graph.h"

#include "errors.h"
#include "graphask.h"
#include "handles.h"
#include "nodes.h"
#include "stored.h"
#include "values.h"

enum { LABELS_MAX = 100 };

void to_vertex(lua_State *L, int index, perilune_value *vertex)
{
    handle h;
    int type = lua_type(L, index);
    if ((type == LUA_TUSERDATA || type == LUA_TLIGHTUSERDATA || type == TYPE_CDATA) && to_handle(L, index, &h)) {
        char text[1024];
        size_t size = 0;
        int status = perilune_node_text(h.key, text, sizeof text, &size);
        if (!ANSWERED(status))
            raise_thread(L, status);
        lua_pushlstring(L, text, size);
        lua_replace(L, index);
    }
    type = lua_type(L, index);
    if (type != LUA_TSTRING && type != LUA_TNUMBER)
        raise_argument(L, "a vertex must be a string, an integer or a node, not %s", described(L, index));
    to_subscript(L, index, vertex);
}

static int64_t to_edge(lua_State *L, int index)
{
    int64_t edge = 0;
    if (lua_type(L, index) != LUA_TNUMBER || !integral(L, index, &edge))
        raise_argument(L, "an edge must be its number, not %s", described(L, index));
    return edge;
}

/* Pushes a graph that is still to be made, and the database of the node at 1. */
static graph *new_graph(lua_State *L, handle *h)
{
    check_handle(L, 1, h);
    graph *g = push_graph(L);
    push_class(L, 1);
    push_class_database(L, lua_gettop(L));
    lua_remove(L, -2);
    return g;
}

/* create(node[, weight]): the graph and its database. */
static int graph_create(lua_State *L)
{
    handle h;
    size_t size;
    int status;
    const char *weight = optional_text(L, 2, &size);
    graph *g = new_graph(L, &h);
    TRY(status, L, h.db, h.key, perilune_graph_create(h.db->live, h.key, weight, size, &g->at));
    return 2;
}

/* open(node): the graph and its database. */
static int graph_open(lua_State *L)
{
    handle h;
    int status;
    graph *g = new_graph(L, &h);
    TRY(status, L, h.db, h.key, perilune_graph_open(h.db->live, h.key, &g->at));
    return 2;
}

static int add_vertex(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id, labels[LABELS_MAX];
    size_t count = 0;
    int status;
    to_vertex(L, 3, &id);
    if (!lua_isnoneornil(L, 4)) {
        luaL_checktype(L, 4, LUA_TTABLE);
        count = lua_rawlen(L, 4);
        if (count > LABELS_MAX)
            raise_argument(L, "a vertex is made with at most %d labels: add others later", LABELS_MAX);
        /* The strings stay in the table. */
        for (size_t i = 0; i < count; i++) {
            lua_rawgeti(L, 4, (int)i + 1);
            labels[i] = perilune_string(NULL, 0);
            labels[i].as.s.p = to_name(L, -1, "a label", &labels[i].as.s.n);
            lua_pop(L, 1);
        }
    }
    TRY(status, L, db, NULL, perilune_graph_add_vertex(db->live, g, &id, labels, count));
    return 0;
}

static int delete_vertex(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id;
    int status;
    to_vertex(L, 3, &id);
    TRY(status, L, db, NULL, perilune_graph_delete_vertex(db->live, g, &id, lua_toboolean(L, 4)));
    return 0;
}

static int has_vertex(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id;
    int status;
    to_vertex(L, 3, &id);
    TRY(status, L, db, NULL, perilune_graph_has_vertex(db->live, g, &id));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

static int set_label(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id;
    size_t size;
    int status;
    to_vertex(L, 3, &id);
    const char *label = to_name(L, 4, "a label", &size);
    TRY(status, L, db, NULL, perilune_graph_set_label(db->live, g, &id, label, size, lua_toboolean(L, 5)));
    return 0;
}

static int set_index(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    size_t label_size, property_size;
    int status;
    const char *label = to_name(L, 3, "a label", &label_size);
    const char *property = to_name(L, 4, "a property", &property_size);
    TRY(status, L, db, NULL,
        perilune_graph_index(db->live, g, label, label_size, property, property_size, lua_toboolean(L, 5)));
    return 0;
}

static int push_property(lua_State *L, int status, const perilune_value *value)
{
    if (status == PERILUNE_NOT_FOUND)
        lua_pushnil(L);
    else
        push_value(L, value);
    return 1;
}

static int get_property(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id, value;
    size_t size;
    int status;
    to_vertex(L, 3, &id);
    const char *name = to_name(L, 4, "a property", &size);
    TRY(status, L, db, NULL, perilune_graph_get(db->live, g, &id, name, size, &value));
    return push_property(L, status, &value);
}

static int set_property(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id, value;
    size_t size;
    int status;
    to_vertex(L, 3, &id);
    const char *name = to_name(L, 4, "a property", &size);
    to_value(L, 5, "a property", &value);
    TRY(status, L, db, NULL, perilune_graph_set(db->live, g, &id, name, size, &value));
    return 0;
}

static int get_edge_property(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    int64_t edge = to_edge(L, 3);
    perilune_value value;
    size_t size;
    int status;
    const char *name = to_name(L, 4, "a property", &size);
    TRY(status, L, db, NULL, perilune_graph_get_edge(db->live, g, edge, name, size, &value));
    return push_property(L, status, &value);
}

static int set_edge_property(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    int64_t edge = to_edge(L, 3);
    perilune_value value;
    size_t size;
    int status;
    const char *name = to_name(L, 4, "a property", &size);
    to_value(L, 5, "a property", &value);
    TRY(status, L, db, NULL, perilune_graph_set_edge(db->live, g, edge, name, size, &value));
    return 0;
}

static int add_edge(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value source, target;
    size_t size;
    int64_t edge = 0;
    int status;
    to_vertex(L, 3, &source);
    const char *type = to_name(L, 4, "a type", &size);
    to_vertex(L, 5, &target);
    TRY(status, L, db, NULL, perilune_graph_add_edge(db->live, g, &source, type, size, &target, &edge));
    if (!push_integer(L, edge))
        lua_pushnumber(L, (lua_Number)edge);
    return 1;
}

static int delete_edge(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    int64_t edge = to_edge(L, 3);
    int status;
    TRY(status, L, db, NULL, perilune_graph_delete_edge(db->live, g, edge));
    return 0;
}

/* degree(graph, db, vertex, direction[, type]) */
static int degree(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value id;
    size_t size;
    uint64_t found = 0;
    int status;
    to_vertex(L, 3, &id);
    const char *type = optional_text(L, 5, &size);
    int direction = (int)lua_tointeger(L, 4);
    TRY(status, L, db, NULL, perilune_graph_degree(db->live, g, &id, direction, type, size, &found));
    lua_pushinteger(L, (lua_Integer)found);
    return 1;
}

/* vertex(x): the id that a vertex has when it comes back. */
static int normal_vertex(lua_State *L)
{
    perilune_value id, number;
    to_vertex(L, 1, &id);
    if (id.type == PERILUNE_STRING && perilune_number_is_canonical(id.as.s.p, id.as.s.n) == 1
        && perilune_number_parse(id.as.s.p, id.as.s.n, &number) == PERILUNE_OK && number.type == PERILUNE_INT)
        id = number;
    push_value(L, &id);
    return 1;
}

const luaL_Reg graph_functions[] = {{"create", graph_create},
                                    {"open", graph_open},
                                    {"add_vertex", add_vertex},
                                    {"delete_vertex", delete_vertex},
                                    {"has_vertex", has_vertex},
                                    {"set_label", set_label},
                                    {"set_index", set_index},
                                    {"get", get_property},
                                    {"set", set_property},
                                    {"get_edge", get_edge_property},
                                    {"set_edge", set_edge_property},
                                    {"add_edge", add_edge},
                                    {"delete_edge", delete_edge},
                                    {"degree", degree},
                                    {"ask", graph_ask},
                                    {"vertex", normal_vertex},
                                    {NULL, NULL}};

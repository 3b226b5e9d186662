/*
 * Walks over graphs, a path at a time, and luaopen__perilune_graph: the C part of perilune.graph.
 *
 * It is loaded by require '_perilune.graph', after _perilune, whose state it shares and which preloads it.
 *
 * Invariant: a walk lies in a userdata, which ends it; functions of Lua are called between two paths alone, by perilune/graph.lua.
 */
#include "graphwalk.h"

#include "errors.h"
#include "graph.h"
#include "graphask.h"
#include "handles.h"
#include "values.h"

static const char walk_key;

enum { STARTS_MAX = 1000 };

typedef struct graph_walk {
    perilune_graph_walk *at;
} graph_walk;

static int walk_close(lua_State *L)
{
    graph_walk *w = lua_touserdata(L, 1);
    perilune_graph_walk_close(w->at);
    w->at = NULL;
    return 0;
}

static perilune_graph_walk *check_walk(lua_State *L)
{
    int is_walk = 0;
    if (lua_type(L, 1) == LUA_TUSERDATA && lua_getmetatable(L, 1)) {
        lua_pushlightuserdata(L, (void *)&walk_key);
        lua_rawget(L, LUA_REGISTRYINDEX);
        is_walk = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    graph_walk *w = is_walk ? lua_touserdata(L, 1) : NULL;
    if (w == NULL || w->at == NULL)
        raise_argument(L, "argument 1 must be a walk that has not ended, not %s", described(L, 1));
    return w->at;
}

/* sees_one_state(db): whether it is a snapshot, or in a transaction. */
static int sees_one_state(lua_State *L)
{
    database *db = check_database(L, 1);
    lua_pushboolean(L, db->is_snapshot || (db->session != NULL && perilune_depth(db->session) > 0));
    return 1;
}

/* walk(graph, db, starts, options) */
static int walk_open(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    size_t options_size;
    int status;
    luaL_checktype(L, 3, LUA_TTABLE);
    int count = (int)lua_rawlen(L, 3);
    const char *options = optional_text(L, 4, &options_size);
    if (count > STARTS_MAX)
        raise_argument(L, "a walk starts at most at %d vertices", STARTS_MAX);
    lua_settop(L, 4);
    graph_walk *w = new_userdata(L, sizeof *w);
    w->at = NULL;
    lua_pushlightuserdata(L, (void *)&walk_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    perilune_value *starts = new_userdata(L, sizeof *starts * (size_t)(count + 1));
    /* Their texts stay in a table: a node's is made here. */
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 3, i + 1);
        to_vertex(L, lua_gettop(L), &starts[i]);
        lua_rawseti(L, -2, i + 1);
    }
    TRY(status, L, db, NULL,
        perilune_graph_walk_open(db->live, g, starts, (size_t)count, options, options_size, &w->at));
    lua_settop(L, 5);
    return 1;
}

static void push_number_of(lua_State *L, int64_t number)
{
    if (!push_integer(L, number))
        lua_pushnumber(L, (lua_Number)number);
}

/* next(walk, db): vertex, depth, cost, edge (0: none) of the next path, or nothing. */
static int walk_next(lua_State *L)
{
    perilune_graph_walk *w = check_walk(L);
    database *db = check_database(L, 2);
    perilune_graph_step step;
    int status;
    TRY(status, L, db, NULL, perilune_graph_walk_next(db->live, w, &step));
    if (status == PERILUNE_NOT_FOUND)
        return 0;
    push_value(L, &step.vertex);
    lua_pushinteger(L, (lua_Integer)step.depth);
    lua_pushnumber(L, step.cost);
    push_number_of(L, step.edge);
    return 4;
}

static void set_value(lua_State *L, const char *name, const perilune_value *value)
{
    if (value->type == PERILUNE_ABSENT)
        return;
    push_value(L, value);
    lua_setfield(L, -2, name);
}

/* path(walk): lists of the vertices and the edges of the last path. */
static int walk_path(lua_State *L)
{
    perilune_graph_walk *w = check_walk(L);
    perilune_graph_step step;
    lua_createtable(L, 4, 0);
    lua_createtable(L, 4, 0);
    for (uint64_t depth = 0; perilune_graph_walk_step(w, depth, &step) == PERILUNE_OK; depth++) {
        push_value(L, &step.vertex);
        lua_rawseti(L, -3, (int)depth + 1);
        if (depth == 0)
            continue;
        lua_createtable(L, 0, 5);
        push_number_of(L, step.edge);
        lua_setfield(L, -2, "id");
        set_value(L, "source", &step.source);
        set_value(L, "type", &step.type);
        set_value(L, "target", &step.target);
        set_value(L, "weight", &step.weight);
        lua_rawseti(L, -2, (int)depth);
    }
    return 2;
}

static int walk_prune(lua_State *L)
{
    int status = perilune_graph_walk_prune(check_walk(L));
    return ANSWERED(status) ? 0 : raise_thread(L, status);
}

/* A number in the list at `list`, or `other` if there is no list. */
static double number_in(lua_State *L, int list, int at, double other)
{
    if (lua_isnil(L, list))
        return other;
    lua_rawgeti(L, list, at);
    if (lua_type(L, -1) != LUA_TNUMBER)
        raise_argument(L, "a cost and a rank must be numbers, not %s", described(L, -1));
    other = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return other;
}

/* lead(walk, db, edges, costs or nil, ranks or nil): whether the last path is followed. */
static int walk_lead(lua_State *L)
{
    perilune_graph_walk *w = check_walk(L);
    database *db = check_database(L, 2);
    int status;
    lua_settop(L, 5);
    luaL_checktype(L, 3, LUA_TTABLE);
    int count = (int)lua_rawlen(L, 3);
    perilune_graph_lead *leads = new_userdata(L, sizeof *leads * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 3, i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER || !integral(L, -1, &leads[i].edge))
            raise_argument(L, "an expander answers edges, not %s", described(L, -1));
        lua_pop(L, 1);
        leads[i].cost = number_in(L, 4, i + 1, 1.0);
        leads[i].rank = number_in(L, 5, i + 1, 0.0);
    }
    TRY(status, L, db, NULL, perilune_graph_walk_lead(db->live, w, leads, (size_t)count));
    lua_pushboolean(L, status == PERILUNE_OK);
    return 1;
}

static int walk_end(lua_State *L)
{
    check_walk(L);
    return walk_close(L);
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen__perilune_graph(lua_State *L)
{
    const luaL_Reg functions[] = {{"sees_one_state", sees_one_state},
                                  {"walk", walk_open},
                                  {"next", walk_next},
                                  {"path", walk_path},
                                  {"prune", walk_prune},
                                  {"lead", walk_lead},
                                  {"close", walk_end},
                                  {NULL, NULL}};
    const luaL_Reg *const all[] = {graph_functions, functions};
    lua_settop(L, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "_perilune");
    lua_call(L, 1, 1);
    lua_getfield(L, 1, "use");
    int base = 3;
    for (int i = 1; i <= UPVALUES; i++)
        if (lua_getupvalue(L, 2, i) == NULL)
            return luaL_error(L, "_perilune is of another version");
    open_graphs(L);
    lua_pushlightuserdata(L, (void *)&walk_key);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, walk_close);
    lua_setfield(L, -2, "__gc");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_createtable(L, 0, 32);
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < UPVALUES; i++)
            lua_pushvalue(L, base + i);
        set_functions(L, all[part], UPVALUES);
    }
    return 1;
}

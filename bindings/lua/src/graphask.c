/*
 * Graphs as userdata, and questions to them, whose rows become tables.
 *
 * Invariant: rows lie in a userdata while they are read, so that an error of Lua frees them.
 */
#include "graphask.h"

#include "errors.h"
#include "handles.h"
#include "stored.h"
#include "values.h"

static const char graph_key;

enum { ARGUMENTS_MAX = 8 };

static int graph_gc(lua_State *L)
{
    graph *g = lua_touserdata(L, 1);
    perilune_graph_close(g->at);
    g->at = NULL;
    return 0;
}

perilune_graph *check_graph(lua_State *L, int index)
{
    int is_graph = 0;
    if (lua_type(L, index) == LUA_TUSERDATA && lua_getmetatable(L, index)) {
        lua_pushlightuserdata(L, (void *)&graph_key);
        lua_rawget(L, LUA_REGISTRYINDEX);
        is_graph = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    graph *g = is_graph ? lua_touserdata(L, index) : NULL;
    if (g == NULL || g->at == NULL)
        raise_argument(L, "argument %d must be a graph, not %s", index, described(L, index));
    return g->at;
}

const char *to_name(lua_State *L, int index, const char *what, size_t *size)
{
    if (lua_type(L, index) != LUA_TSTRING)
        raise_argument(L, "%s must be a string, not %s", what, described(L, index));
    return lua_tolstring(L, index, size);
}

const char *optional_text(lua_State *L, int index, size_t *size)
{
    *size = 0;
    return lua_isnoneornil(L, index) ? NULL : to_name(L, index, "a type", size);
}

graph *push_graph(lua_State *L)
{
    graph *g = new_userdata(L, sizeof *g);
    g->at = NULL;
    lua_pushlightuserdata(L, (void *)&graph_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    return g;
}

/* Pushes the rows as a list of tables by the names of columns. */
static void push_rows(lua_State *L, const perilune_sql_rows *rows)
{
    size_t count = perilune_sql_count(rows), columns = perilune_sql_columns(rows);
    perilune_value value, name;
    lua_createtable(L, (int)(count < 1 << 20 ? count : 1 << 20), 0);
    for (size_t row = 0; row < count; row++) {
        lua_createtable(L, 0, (int)columns);
        for (size_t column = 0; column < columns; column++) {
            perilune_sql_value(rows, row, column, &value);
            if (value.type == PERILUNE_NULL)
                continue;
            perilune_sql_column(rows, column, &name);
            push_bytes(L, name.as.s.p, name.as.s.n);
            push_value(L, &value);
            lua_rawset(L, -3);
        }
        lua_rawseti(L, -2, (int)row + 1);
    }
}

/* Holds rows, so that an error of Lua frees them. */
static int rows_gc(lua_State *L)
{
    perilune_sql_rows **rows = lua_touserdata(L, 1);
    perilune_sql_close(*rows);
    *rows = NULL;
    return 0;
}

/* ask(graph, db, question, arguments, options): a list of rows. */
int graph_ask(lua_State *L)
{
    perilune_graph *g = check_graph(L, 1);
    database *db = check_database(L, 2);
    perilune_value arguments[ARGUMENTS_MAX];
    size_t question_size, options_size;
    int status, count;
    const char *question = to_name(L, 3, "a question", &question_size);
    luaL_checktype(L, 4, LUA_TTABLE);
    count = (int)lua_rawlen(L, 4);
    const char *options = optional_text(L, 5, &options_size);
    if (count > ARGUMENTS_MAX)
        raise_argument(L, "a question has at most %d arguments", ARGUMENTS_MAX);
    lua_settop(L, 5);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 4, i + 1);
        to_value(L, 6 + i, "an argument", &arguments[i]);
    }
    perilune_sql_rows **rows = new_userdata(L, sizeof *rows);
    *rows = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, rows_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    TRY(status, L, db, NULL,
        perilune_graph_ask(db->live, g, question, question_size, arguments, (size_t)count, options, options_size,
                           rows));
    push_rows(L, *rows);
    perilune_sql_close(*rows);
    *rows = NULL;
    return 1;
}

int open_graphs(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&graph_key);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, graph_gc);
    lua_setfield(L, -2, "__gc");
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

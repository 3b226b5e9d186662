/* What a graph is in Lua, and how one is asked. */
#ifndef PERILUNE_LUA_GRAPHASK_H
#define PERILUNE_LUA_GRAPHASK_H

#include "state.h"

typedef struct graph {
    perilune_graph *at;
} graph;

/* Makes what a graph is. */
int open_graphs(lua_State *L);
/* Pushes a graph that is still to be made. */
graph *push_graph(lua_State *L);
/* The graph at `index`; raises if it is none. */
perilune_graph *check_graph(lua_State *L, int index);
/* The text at `index`, which `what` must be. */
const char *to_name(lua_State *L, int index, const char *what, size_t *size);
/* The text at `index` and its size, or NULL if there is nothing. */
const char *optional_text(lua_State *L, int index, size_t *size);
/* ask(graph, db, question, arguments, options): a list of rows. */
int graph_ask(lua_State *L);

#endif

/* The C part of perilune.graph, one table of functions. */
#ifndef PERILUNE_LUA_GRAPH_H
#define PERILUNE_LUA_GRAPH_H

#include "state.h"

/* Each is called with a graph and a database, but create and open. */
extern const luaL_Reg graph_functions[];
/* The vertex at `index`: a string, a number, or a node, whose text it is. */
void to_vertex(lua_State *L, int index, perilune_value *vertex);

#endif

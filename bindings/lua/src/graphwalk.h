/* Walks over graphs, and the module of both. */
#ifndef PERILUNE_LUA_GRAPHWALK_H
#define PERILUNE_LUA_GRAPHWALK_H

#include "state.h"

int luaopen__perilune_graph(lua_State *L);

#endif

/* Trees of nodes as tables. */
#ifndef PERILUNE_LUA_GETTREE_H
#define PERILUNE_LUA_GETTREE_H

#include "state.h"

int node_gettree(lua_State *L);

#endif

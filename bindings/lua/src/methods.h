/* Methods of nodes, and functions of databases that take many. */
#ifndef PERILUNE_LUA_METHODS_H
#define PERILUNE_LUA_METHODS_H

#include "state.h"

extern const luaL_Reg batch_functions[];
int node_get(lua_State *L);
int node_set(lua_State *L);

#endif

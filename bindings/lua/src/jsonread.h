/* Trees of nodes from JSON. */
#ifndef PERILUNE_LUA_JSONREAD_H
#define PERILUNE_LUA_JSONREAD_H

#include "state.h"

int node_fromjson(lua_State *L);

#endif

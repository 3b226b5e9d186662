/* Trees of nodes as JSON. */
#ifndef PERILUNE_LUA_JSON_H
#define PERILUNE_LUA_JSON_H

#include "state.h"

int node_tojson(lua_State *L);

#endif

/* Pieces of strings. */
#ifndef PERILUNE_LUA_PIECES_H
#define PERILUNE_LUA_PIECES_H

#include "state.h"

int node_getpiece(lua_State *L);
int node_setpiece(lua_State *L);

#endif

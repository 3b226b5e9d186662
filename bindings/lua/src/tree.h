/* Trees of nodes from tables, and as text. */
#ifndef PERILUNE_LUA_TREE_H
#define PERILUNE_LUA_TREE_H

#include "state.h"

/* Calls the C function `body` with the arguments on the stack as a transaction of the node at 1. */
int in_one_transaction(lua_State *L, lua_CFunction body);
enum { SUBSCRIPTS_MAX = 255 };
int node_settree(lua_State *L);
int node_dump(lua_State *L);

#endif

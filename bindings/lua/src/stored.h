/* Lua values that nodes are set to. */
#ifndef PERILUNE_LUA_STORED_H
#define PERILUNE_LUA_STORED_H

#include "state.h"

/* Reads the value at `index`, which messages call `what`; raises if no node can be set to it. */
void to_value(lua_State *L, int index, const char *what, perilune_value *value);

#endif

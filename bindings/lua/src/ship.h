/* Functions that are sent to a server. */
#ifndef PERILUNE_LUA_SHIP_H
#define PERILUNE_LUA_SHIP_H

#include "state.h"

int ship(lua_State *L, const perilune_transaction_options *options, int function, int with_tx, int must);
int open_shipping(lua_State *L);

#endif

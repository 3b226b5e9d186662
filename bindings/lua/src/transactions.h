/* Transactions. */
#ifndef PERILUNE_LUA_TRANSACTIONS_H
#define PERILUNE_LUA_TRANSACTIONS_H

#include "state.h"

extern const luaL_Reg transaction_functions[];
int open_transactions(lua_State *L);

#endif

/* Transactions. */
#ifndef PERILUNE_LUA_YOTTADB_TRANSACTIONS_H
#define PERILUNE_LUA_YOTTADB_TRANSACTIONS_H

#include "yottadb.h"

extern const luaL_Reg tp_functions[];

#endif

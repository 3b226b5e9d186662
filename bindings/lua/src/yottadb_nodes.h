/* Functions of nodes. */
#ifndef PERILUNE_LUA_YOTTADB_NODES_H
#define PERILUNE_LUA_YOTTADB_NODES_H

#include "yottadb.h"

extern const luaL_Reg address_functions[];

#endif

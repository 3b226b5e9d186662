/* Locks by name. */
#ifndef PERILUNE_LUA_YOTTADB_LOCKS_H
#define PERILUNE_LUA_YOTTADB_LOCKS_H

#include "yottadb.h"

extern const luaL_Reg named_lock_functions[];

#endif

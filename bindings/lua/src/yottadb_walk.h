/* Walks over nodes. */
#ifndef PERILUNE_LUA_YOTTADB_WALK_H
#define PERILUNE_LUA_YOTTADB_WALK_H

#include "yottadb.h"

extern const luaL_Reg walk_functions[];

#endif

/* Iterators over subscripts. */
#ifndef PERILUNE_LUA_YOTTADB_ITERATE_H
#define PERILUNE_LUA_YOTTADB_ITERATE_H

#include "yottadb.h"

extern const luaL_Reg iterate_functions[];

#endif

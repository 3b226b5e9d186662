/* The module itself. */
#ifndef PERILUNE_LUA_YOTTADB_MODULE_H
#define PERILUNE_LUA_YOTTADB_MODULE_H

#include <lua.h>

int luaopen__perilune_yottadb(lua_State *L);

#endif

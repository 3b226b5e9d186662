/* The module itself. */
#ifndef PERILUNE_LUA_MODULE_H
#define PERILUNE_LUA_MODULE_H

#include <lua.h>

int luaopen__perilune(lua_State *L);

#endif

/* Locks, waits and watches. */
#ifndef PERILUNE_LUA_LOCKS_H
#define PERILUNE_LUA_LOCKS_H

#include "state.h"

int node_grab(lua_State *L);
int node_release(lua_State *L);
int node_lock(lua_State *L);
int node_lock_count(lua_State *L);
int node_wait(lua_State *L);
int node_watch(lua_State *L);
int open_locks(lua_State *L);
extern const luaL_Reg lock_functions[];

#endif

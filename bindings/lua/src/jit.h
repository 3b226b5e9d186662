/* What LuaJIT's FFI calls. */
#ifndef PERILUNE_LUA_JIT_H
#define PERILUNE_LUA_JIT_H

#include "state.h"

int push_jit(lua_State *L, state *s);

#endif

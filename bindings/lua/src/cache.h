/* Children of nodes that are likely to be used again. */
#ifndef PERILUNE_LUA_CACHE_H
#define PERILUNE_LUA_CACHE_H

#include "state.h"

int cached_string(lua_State *L, const handle *of, const char *string);
void keep_string(lua_State *L, const handle *of, int text, const node *child);
int cached_integer(lua_State *L, const handle *of, int64_t subscript);
void keep_integer(lua_State *L, const handle *of, int64_t subscript, const node *child);
void forget_cached(lua_State *L, const database *db);

#endif

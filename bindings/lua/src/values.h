/* Values of the library as Lua values, and numbers, subscripts and timeouts from Lua. */
#ifndef PERILUNE_LUA_VALUES_H
#define PERILUNE_LUA_VALUES_H

#include "state.h"

/* The number at `index`, an integer if it is one; raises for NaN and infinities, which `what` must not be. */
void to_number(lua_State *L, int index, const char *what, perilune_value *value);
void to_subscript(lua_State *L, int index, perilune_value *value);
/* What is at `index`, for messages: "a table", "nil", "nothing". */
const char *described(lua_State *L, int index);
/* Pushes a value that the library gave. NB: this may run finalizers, which may call the library: where values
 * lie that another call replaces, only the first that is pushed is what was read. */
void push_value(lua_State *L, const perilune_value *value);
/* Pushes bytes that the library gave. */
void push_bytes(lua_State *L, const char *bytes, size_t size);
double to_timeout(lua_State *L, int index);
int open_values(lua_State *L);
extern const char empty_list_key, empty_map_key, list_key, delete_key;
int is_sentinel(lua_State *L, int index, const char *key);
void push_sentinel(lua_State *L, const char *key);
double nearest(const char *text, size_t size);
void shortest_text(double number, char text[40]);
/* 1 when the table at `index` was marked by perilune.list. */
int is_list(lua_State *L, int index);

#endif

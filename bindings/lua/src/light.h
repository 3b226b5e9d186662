/* Nodes that fit in a word. */
#ifndef PERILUNE_LUA_LIGHT_H
#define PERILUNE_LUA_LIGHT_H

#include "state.h"

int light_of(lua_State *L, int index, handle *out);
/* The name and the subscript of a light node without a method: NULL if the value is none. */
const place *light_parts(lua_State *L, int index, int64_t *subscript);
int push_light_integer(lua_State *L, const handle *of, int64_t subscript);
int push_light_method(lua_State *L, int parent, const handle *of, int method);
/* The light form of `key`, if it has one: pushes it and returns 1. */
int may_be_light(lua_State *L, const perilune_node *key, int method);
int push_light_key(lua_State *L, uint32_t number, const perilune_node *key);
uint32_t place_of(lua_State *L, database *db, int class, uint16_t class_id, int derived, const perilune_node *root);
void forget_places(lua_State *L, const database *db);
int open_light(lua_State *L);

#endif

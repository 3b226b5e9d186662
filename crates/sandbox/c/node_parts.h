/* The Lua parts of the library of nodes, and the function by which they ask the host. */
#ifndef PERILUNE_SANDBOX_NODE_PARTS_H
#define PERILUNE_SANDBOX_NODE_PARTS_H

#include "sandbox.h"

/* Pushes the function that a part in Lua is. */
void load_part(lua_State *L, const char *part, size_t length);
/* Pushes what reads and writes trees as JSON: json.lua. */
void load_json(lua_State *L);
/* ask(operation, count, subscript, ..., value), for Lua: `count` is how many are the name and the subscripts. */
int ask_node(lua_State *L);

#endif

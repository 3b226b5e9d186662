/* Parts of the library of nodes that are written in Lua, and what they ask with. */
#ifndef PERILUNE_SANDBOX_PARTS_H
#define PERILUNE_SANDBOX_PARTS_H

#include "sandbox.h"

/* Pushes the function that a part in Lua is. */
void load_part(lua_State *L, const char *part, size_t length);
/* Pushes what reads and writes trees as JSON: json.lua. */
void load_json(lua_State *L);
/* ask(operation, count, subscript, ..., value), for Lua: `count` is how many are the name and the subscripts. */
int ask_node(lua_State *L);

#endif

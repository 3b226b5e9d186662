/* Where a call goes: names and nodes with subscripts. */
#ifndef PERILUNE_LUA_YOTTADB_ADDRESS_H
#define PERILUNE_LUA_YOTTADB_ADDRESS_H

#include "yottadb.h"

/* Kind of a variable's name; `code` says what is wrong with it. */
int kind_of(const char *name, size_t size, int *code);
const address_node *to_address_node(lua_State *L, int index);
/* Reads (varname[, {subs}][, sub...]) or (node[, {subs}][, sub...]) from `first` to `last`. */
void resolve(lua_State *L, int first, int last, address *at);
/* Pushes the number at `index` as M writes it. */
void push_number_text(lua_State *L, int index, const char *what);
void push_text(lua_State *L, const perilune_value *value);
/* Pushes a node at `at`, with the metatable at `class` (0: none). */
void push_address(lua_State *L, const address *at, int class);
/* What the node means. */
void from_node(const address_node *node, address *at);
/* Reads the subscript at `index`, which messages call `what` and a number. */
void to_sub(lua_State *L, int index, const char *what, int number, perilune_value *sub);
/* Makes `at` the descendant of `parent` with these subscripts. */
void extend_address(lua_State *L, address *at, const perilune_node *parent, const perilune_value *subs, size_t count);

#endif

/* Nodes and their classes. */
#ifndef PERILUNE_LUA_NODES_H
#define PERILUNE_LUA_NODES_H

#include "state.h"

/* Pushes the node whose key is `key`, of the class whose metatable is at `class`. */
void push_node(lua_State *L, database *db, int class, const perilune_node *key);
/* Pushes the node `name` with the subscripts in the stack from `first` to the top. */
void push_named(lua_State *L, database *db, int class, int name, int first);
/* Pushes the descendant of the node at the top with the subscripts from `first` to `last`, in its place. */
void descend(lua_State *L, int first, int last);
/* Pushes the child of the node at `parent` with the subscript at `subscript`. */
void push_child(lua_State *L, int parent, const handle *of, int subscript);
int push_class_made(lua_State *L, int index);
int open_nodes(lua_State *L);
/* Makes a class of `db` whose parent class is at `parent`, or with 0 the first of the database at
 * `database_at`, and pushes it. */
void push_new_class(lua_State *L, database *db, int parent, int database_at);
/* Pushes the database of the class at `class`. */
database *push_class_database(lua_State *L, int class);

#endif

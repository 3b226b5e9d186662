/* Tells what an argument is: a node in any form, its class, a database. */
#ifndef PERILUNE_LUA_HANDLES_H
#define PERILUNE_LUA_HANDLES_H

#include "state.h"

/* The node in the full userdata at `index`, or NULL. */
static inline node *full_node(lua_State *L, int index)
{
    node *n = lua_touserdata(L, index);
    if (n != NULL && lua_rawlen(L, index) >= sizeof(node) && n->magic == NODE_MAGIC)
        return n;
    return NULL;
}

static inline void handle_of(node *n, handle *out)
{
    out->db = n->db;
    out->key = &n->key;
    out->class_id = n->class_id;
    out->derived = n->derived;
    out->method = n->method;
    out->place = n->place;
    out->identity = n->serial;
}

/* The method node of a node that can have no child: good for a call and nothing else. */
static inline node *bare_method(lua_State *L, int index)
{
    node *n = lua_touserdata(L, index);
    if (n != NULL && lua_rawlen(L, index) >= sizeof(node) && n->magic == METHOD_MAGIC)
        return n;
    return NULL;
}

/* The node at `index`, or 0 if it is none. */
int to_handle(lua_State *L, int index, handle *out);
/* The node at `index`; raises if it is none. */
void check_handle(lua_State *L, int index, handle *out);
/* Pushes the class (metatable) of a node. */
void push_class(lua_State *L, int index);
/* The database at `index`, or NULL if it is none. */
database *to_database(lua_State *L, int index);
/* The database at `index`; raises if it is none. */
database *check_database(lua_State *L, int index);

#endif

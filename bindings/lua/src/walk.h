/* Walks over nodes. */
#ifndef PERILUNE_LUA_WALK_H
#define PERILUNE_LUA_WALK_H

#include "state.h"

int node_next(lua_State *L);
int node_previous(lua_State *L);
int node_subscripts(lua_State *L);
int node_pairs_method(lua_State *L);
int node_ipairs(lua_State *L);
int node_children(lua_State *L);
int node_nodes(lua_State *L);
int hand_over(lua_State *L);
int open_walk(lua_State *L);

/* A cursor that the collector closes, opened at `key`, in a userdata that is pushed. */
typedef struct loop {
    perilune_cursor *cursor;
} loop;
loop *push_loop(lua_State *L, database *db, const perilune_node *key, int kind, uint32_t flags);
void end_loop(loop *open);
/* 1: a step; 0: the end. */
int loop_step(lua_State *L, database *db, loop *open, perilune_value *subscript, perilune_value *value, int32_t *data);

#endif

/*
 * Cursors: many steps in one direction.
 *
 * A cursor is an external value of JavaScript, closed when it is collected, or before. Closing its database ends it:
 * the next step is the error CLOSED.
 */
#ifndef PERILUNE_NODE_CURSORS_H
#define PERILUNE_NODE_CURSORS_H

#include "state.h"

/*
 * cursor(node, flags, subtree, bounds, ...): opens one over the children or the subtree. Children: bounds 1 `from`,
 * 2 `to`, which follow. Subtree: what follows are the subscripts of `from` below the node.
 */
napi_value cursor_open(napi_env env, napi_callback_info info);

/* cursorChild(cursor): steps; the subscript, or null at the end. foundValue and foundData tell the rest. */
napi_value cursor_child(napi_env env, napi_callback_info info);

/* cursorNode(cursor): steps; subscripts * 256 + how many of them are those of the step before; or -1 at the end. */
napi_value cursor_node(napi_env env, napi_callback_info info);

/*
 * cursorBatch(cursor, count, ends): steps up to `count` times over the children. Answers one string of all subscripts
 * and values, and where each ends in `ends`, an Int32Array: subscript, value, subscript, ...; the value of a node
 * without one ends at -1. How many they are is ends[0]. Where not all is ASCII, an array of the parts; null at the end.
 */
napi_value cursor_batch(napi_env env, napi_callback_info info);

/* cursorClose(cursor). */
napi_value cursor_close(napi_env env, napi_callback_info info);

#endif

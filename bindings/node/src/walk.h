/*
 * Going through the tree: siblings, nodes with a value, names.
 *
 * A step leaves what it has found in the environment and answers as little as it can; JavaScript asks for the parts
 * that it wants before it does anything else. An array or an object made here would cost more than those calls.
 */
#ifndef PERILUNE_NODE_WALK_H
#define PERILUNE_NODE_WALK_H

#include "state.h"

/* next(node, ..., seed), previous(node, ..., seed): a subscript, or null at the end. */
napi_value walk_next(napi_env env, napi_callback_info info);
napi_value walk_previous(napi_env env, napi_callback_info info);

/* child(node, backwards[, subscript]): the first or last child, or the one beside the subscript; null: none. */
napi_value walk_child(napi_env env, napi_callback_info info);

/* name(database, backwards, name): the name after it, with its ^; null at the end. */
napi_value walk_name(napi_env env, napi_callback_info info);

/* query(node, backwards, ...): steps to the next node with a value; the number of its subscripts, or -1 at the end. */
napi_value walk_query(napi_env env, napi_callback_info info);

/* foundSubscript(database, i, mode), foundValue(database, mode), foundData(): of the last step. */
napi_value walk_subscript(napi_env env, napi_callback_info info);
napi_value walk_value(napi_env env, napi_callback_info info);
napi_value walk_data(napi_env env, napi_callback_info info);

#endif

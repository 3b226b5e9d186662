/*
 * Values of nodes: read, written, counted up, deleted.
 *
 * Each function has a node in front, then the subscripts below it; the last argument of `set` and `increment` is
 * the value, as in mg-dbx. In the flavours (texts only) a node with an empty subscript has never a value: a read
 * finds nothing.
 */
#ifndef PERILUNE_NODE_DATA_H
#define PERILUNE_NODE_DATA_H

#include "state.h"

/*
 * get(node, ...): the value. getBytes(node, ...): as a Buffer. `undefined`: none (the status is 0); of a flavour's node
 * get answers '' then.
 */
napi_value data_get(napi_env env, napi_callback_info info);
napi_value data_get_bytes(napi_env env, napi_callback_info info);

/* set(node, ..., value): 0. */
napi_value data_set(napi_env env, napi_callback_info info);

/* data(node, ...): 0, 1, 10 or 11. */
napi_value data_defined(napi_env env, napi_callback_info info);

/* increment(node, ..., by): the new value; in the flavours as M counts, else exactly. */
napi_value data_increment(napi_env env, napi_callback_info info);

/* kill(node, ...): 0. remove(node, ...): 1 if there was a value, which alone is deleted. */
napi_value data_kill(napi_env env, napi_callback_info info);
napi_value data_remove(napi_env env, napi_callback_info info);

/* compareAndSet(node, isExpected, isDesired, expected, desired): 1 if it was set. */
napi_value data_compare_and_set(napi_env env, napi_callback_info info);

/* merge(to, from, replace, count, ...below `to`, ...below `from`): 0. */
napi_value data_merge(napi_env env, napi_callback_info info);

/* count(node, values, ...): children, or values below. */
napi_value data_count(napi_env env, napi_callback_info info);

#endif

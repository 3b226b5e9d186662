/*
 * Many nodes in one call: written all or none or one after the other, read as of one moment.
 */
#ifndef PERILUNE_NODE_BATCHES_H
#define PERILUNE_NODE_BATCHES_H

#include "state.h"

/* setMany(node, each, list): list is [count, ...subscripts, value, ...] over and over. */
napi_value batch_set(napi_env env, napi_callback_info info);

/* getMany(node, list): list is [count, ...subscripts, ...] over and over; an array, as of one moment. */
napi_value batch_get(napi_env env, napi_callback_info info);

#endif

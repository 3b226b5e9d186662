/*
 * Locks of nodes.
 *
 * Locks are taken for an owner that is made when the environment opens the database. So a thread that waits for a
 * lock, with a session of its own, takes it for the environment; and two workers exclude each other.
 *
 * NB: a worker that is ended while it waits here must come back: a wait is cut into slices, and between two of
 * them JavaScript is asked whether it still runs.
 */
#ifndef PERILUNE_NODE_LOCKS_H
#define PERILUNE_NODE_LOCKS_H

#include "state.h"

/* Seconds of a slice. */
#define LOCK_SLICE 0.5

/* lock(node, shared, ..., seconds): 1, or 0 when the time is over; less than 0 waits for ever. */
napi_value lock_take(napi_env env, napi_callback_info info);

/* unlock(node, ...): 1 if it was held. */
napi_value lock_release(napi_env env, napi_callback_info info);

/* unlockAll(database): 1. */
napi_value lock_release_all(napi_env env, napi_callback_info info);

/* lockCount(node, ...): how often it is held. */
napi_value lock_count(napi_env env, napi_callback_info info);

#endif

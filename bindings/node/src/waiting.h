/*
 * Waiting without stopping the event loop: for a lock, for a change, for a message.
 *
 * Each wait has a thread and a session of its own; what it has found goes to the event loop, which calls the callback
 * with an answer and, in front of it, a status. A wait is cut into slices, so that a wait that was cancelled, or whose
 * environment has ended, ends within one.
 *
 * Invariants
 * - A thread touches nothing of its environment: all it needs lies in its own block, which the last user frees.
 * - The library is never unloaded (it is linked so), since a thread may outlive the environment that loaded it.
 */
#ifndef PERILUNE_NODE_WAITING_H
#define PERILUNE_NODE_WAITING_H

#include "state.h"

/* lockLater(node, callback, shared, ..., seconds): a wait; calls back with 1 or 0. */
napi_value wait_lock(napi_env env, napi_callback_info info);

/* watch(node, callback, subtree, seconds, ...): calls back with 1 (touched) or 0, again and again until cancelled. */
napi_value wait_watch(napi_env env, napi_callback_info info);

/* receive(database, callback, channel, after, seconds): calls back with [body, number, missed] or undefined. */
napi_value wait_receive(napi_env env, napi_callback_info info);

/* cancel(wait): ends it; its callback is called no more, or once with the status CLOSED. */
napi_value wait_cancel(napi_env env, napi_callback_info info);

/* Cancels all waits of an environment, which is ending. */
void waits_end(struct here *here);

#endif

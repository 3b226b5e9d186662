/*
 * Opening and closing.
 *
 * JavaScript opens a database once for each environment and its options (lib/opening.js); another session of it is
 * had by a worker, which is an environment of its own, or by a snapshot. What is still open when the environment
 * ends is closed by its hook.
 */
#ifndef PERILUNE_NODE_DATABASES_H
#define PERILUNE_NODE_DATABASES_H

#include "state.h"

/* open(path or null, create, readOnly, durability, timeout, fileMode, flags, shmDir, waitLimit, maxSize): a handle. */
napi_value database_open(napi_env env, napi_callback_info info);

/* openLater(callback, ...as open): calls back with a handle, or undefined and the status, on another thread's work. */
napi_value database_open_later(napi_env env, napi_callback_info info);

/* close(database): closes its session; true if it was open. */
napi_value database_close(napi_env env, napi_callback_info info);

/* snapshot(database): a handle that reads what is there now. */
napi_value database_snapshot(napi_env env, napi_callback_info info);

/* path(database): where it is. */
napi_value database_path(napi_env env, napi_callback_info info);

/* latin1(database, truth): whether strings are bytes from now on. */
napi_value database_latin1(napi_env env, napi_callback_info info);

/* stat(database): JSON. checkpoint(database): whether anything had changed. verify(database): faults as text. */
napi_value database_stat(napi_env env, napi_callback_info info);
napi_value database_checkpoint(napi_env env, napi_callback_info info);
napi_value database_verify(napi_env env, napi_callback_info info);

/* Closes one, or all of an environment. */
void database_end(struct database *database);
void databases_end(struct here *here);

#endif

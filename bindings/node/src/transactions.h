/*
 * The single steps of a transaction: begin, commit, rollback, retry. The loop is in JavaScript
 * (lib/transactions.js).
 */
#ifndef PERILUNE_NODE_TRANSACTIONS_H
#define PERILUNE_NODE_TRANSACTIONS_H

#include "state.h"

/* begin(database, readOnly, durability, timeout, exclusive): how many levels are open now. */
napi_value transaction_begin(napi_env env, napi_callback_info info);

/* commit(database): 0, of the innermost level. */
napi_value transaction_commit(napi_env env, napi_callback_info info);

/* rollback(database, all): 0; the innermost level or all of them. */
napi_value transaction_rollback(napi_env env, napi_callback_info info);

/* retry(database), giveUp(database), validate(database): 0. */
napi_value transaction_retry(napi_env env, napi_callback_info info);
napi_value transaction_give_up(napi_env env, napi_callback_info info);
napi_value transaction_validate(napi_env env, napi_callback_info info);

/* level(database), restarts(database). */
napi_value transaction_level(napi_env env, napi_callback_info info);
napi_value transaction_restarts(napi_env env, napi_callback_info info);

#endif

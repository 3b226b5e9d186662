#include "transactions.h"

static napi_value ended(struct call *call, int status)
{
    if (status < 0)
        return failed(call->here, call->database->session, status);
    return integer(call->env, 0);
}

napi_value transaction_begin(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    options.read_only = integer_at(&call, 1, 0);
    options.durability = integer_at(&call, 2, 0);
    options.timeout = number_at(&call, 3, 0);
    options.exclusive = integer_at(&call, 4, 0);
    int status = perilune_begin(call.database->session, &options);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    return integer(env, (int32_t)perilune_depth(call.database->session));
}

napi_value transaction_commit(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    return ended(&call, perilune_commit(call.database->session));
}

napi_value transaction_rollback(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    perilune_session *session = call.database->session;
    int status = perilune_rollback(session);
    while (status == PERILUNE_OK && integer_at(&call, 1, 0) && perilune_depth(session) > 0)
        status = perilune_rollback(session);
    return ended(&call, status);
}

napi_value transaction_retry(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    return ended(&call, perilune_retry(call.database->session));
}

napi_value transaction_give_up(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    perilune_give_up(call.database->session);
    return integer(env, 0);
}

napi_value transaction_validate(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    return ended(&call, perilune_validate(call.database->session));
}

napi_value transaction_level(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    return integer(env, (int32_t)perilune_depth(call.database->session));
}

napi_value transaction_restarts(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    return integer(env, (int32_t)perilune_restarts(call.database->session));
}

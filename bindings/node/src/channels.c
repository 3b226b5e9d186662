#include "channels.h"

#include "text.h"
#include "values.h"

/* The channel's name in argument 1, in the arena. */
static bool name_in(struct call *call, size_t *offset, size_t *size)
{
    if (call->count > 1 && text_in(call->here, call->given[1], false, offset, size))
        return true;
    refuse(call->here, STATUS_TYPE, "the name of a channel is a string");
    return false;
}

napi_value channel_post(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    size_t offset = 0;
    size_t size = 0;
    uint64_t number = 0;
    napi_value result = NULL;
    enum { BODY = 2 };

    if (!call_at_database(&call, env, info, few) || !name_in(&call, &offset, &size))
        return NULL;
    if (call.count <= BODY || !value_in(&call, call.given[BODY], BODY, BODY))
        return call.count > BODY ? NULL : refuse(call.here, STATUS_TYPE, "a message is a string or bytes");
    settle(&call, BODY, BODY + 1);
    const perilune_value *body = &call.here->values[BODY];
    if (body->type != PERILUNE_STRING)
        return refuse(call.here, STATUS_TYPE, "a message is a string or bytes");
    int status = perilune_post(call.database->session, call.here->arena + offset, size, body->as.s.p, body->as.s.n, &number);
    text_rest(call.here);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    napi_create_double(env, (double)number, &result);
    return result;
}

napi_value channel_create(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_channel_options options = PERILUNE_CHANNEL_OPTIONS_INIT;
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_database(&call, env, info, few) || !name_in(&call, &offset, &size))
        return NULL;
    double messages = number_at(&call, 3, 0);
    double bytes = number_at(&call, 4, 0);
    options.when_full = integer_at(&call, 2, 0);
    options.messages = messages > 0 && messages < 9e15 ? (uint64_t)messages : 0;
    options.bytes = bytes > 0 && bytes < 9e15 ? (uint64_t)bytes : 0;
    int status = perilune_channel_create(call.database->session, call.here->arena + offset, size, &options);
    return status < 0 ? failed(call.here, call.database->session, status) : integer(env, 1);
}

napi_value channel_remove(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_database(&call, env, info, few) || !name_in(&call, &offset, &size))
        return NULL;
    int status = perilune_channel_remove(call.database->session, call.here->arena + offset, size);
    return status < 0 ? failed(call.here, call.database->session, status) : integer(env, status == PERILUNE_OK);
}

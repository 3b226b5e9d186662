#include "locks.h"

#include <stdlib.h>

#include "places.h"
#include "values.h"

/* Whether JavaScript may still be called: not so once the environment is being ended. */
static bool still_runs(napi_env env)
{
    napi_value script = NULL;
    napi_value result = NULL;

    return napi_create_string_latin1(env, "0", 1, &script) == napi_ok &&
           napi_run_script(env, script, &result) == napi_ok;
}

static int take(struct call *call, const perilune_node *node, int mode, double seconds)
{
    struct database *database = call->database;

    for (;;) {
        bool last = seconds >= 0 && seconds <= LOCK_SLICE;
        int status = perilune_lock(database->session, database->owner, node, mode, last ? seconds : LOCK_SLICE);
        if (status != PERILUNE_TIMED_OUT || last || !still_runs(call->env))
            return status;
        if (seconds > 0)
            seconds -= LOCK_SLICE;
    }
}

/* Encodes the node of arguments `first` to `end`. */
static int node_in(struct call *call, size_t first, size_t end, perilune_node **node)
{
    size_t capacity = 0;

    if (!subscripts_in(call, first, end, call->place->mode == MODE_TYPED))
        return STATUS_TYPE;
    int status = encode(call->here, call->place->node, first, end - first, node, &capacity);
    if (status != PERILUNE_OK)
        failed(call->here, NULL, status);
    return status;
}

napi_value lock_take(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *node = NULL;
    double seconds = 0;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    if (call.count < 3 || napi_get_value_double(env, call.given[call.count - 1], &seconds) != napi_ok ||
        seconds != seconds)
        return refuse(call.here, STATUS_TYPE, "the last argument of lock is the number of seconds to wait");
    int status = node_in(&call, 2, call.count - 1, &node);
    if (status != PERILUNE_OK) {
        free(node);
        return NULL;
    }
    status = take(&call, node, integer_at(&call, 1, 0), seconds);
    free(node);
    if (status < 0)
        return failed(call.here, call.database->session, status);
    return integer(env, status == PERILUNE_OK);
}

napi_value lock_release(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *node = NULL;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    int status = node_in(&call, 1, call.count, &node);
    if (status == PERILUNE_OK) {
        status = perilune_unlock(call.database->session, call.database->owner, node);
        if (status < 0)
            failed(call.here, call.database->session, status);
    } else {
        status = PERILUNE_INVALID;
    }
    free(node);
    return status < 0 ? NULL : integer(env, status == PERILUNE_OK);
}

napi_value lock_release_all(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    int status = perilune_unlock_all(call.database->session, call.database->owner);
    return status < 0 ? failed(call.here, call.database->session, status) : integer(env, 1);
}

napi_value lock_count(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *node = NULL;
    uint32_t count = 0;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    int status = node_in(&call, 1, call.count, &node);
    if (status == PERILUNE_OK) {
        status = perilune_lock_count(call.database->session, call.database->owner, node, &count);
        if (status < 0)
            failed(call.here, call.database->session, status);
    } else {
        status = PERILUNE_INVALID;
    }
    free(node);
    return status < 0 ? NULL : integer(env, (int32_t)count);
}

#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "text.h"
#include "values.h"

/* Begins a call whose arguments from 1 on are subscripts. `missing`: one is empty and may be, since it names nothing. */
static bool begin(struct call *call, napi_env env, napi_callback_info info, napi_value *few, bool *missing)
{
    if (!call_at_node(call, env, info, few))
        return false;
    if (missing)
        *missing = false;
    if (subscripts_in(call, 1, call->count, call->place->mode == MODE_TYPED))
        return true;
    if (!missing || call->here->status != PERILUNE_INVALID)
        return false;
    *missing = true;
    return true;
}

static inline const perilune_value *below(const struct call *call)
{
    return call->here->values + 1;
}

static napi_value done(struct call *call, int status, int32_t answer)
{
    if (status < 0)
        return failed(call->here, call->database->session, status);
    return integer(call->env, answer);
}

napi_value data_get(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_value value;
    bool missing = false;

    if (!begin(&call, env, info, few, &missing))
        return NULL;
    int status = missing ? PERILUNE_NOT_FOUND
                         : perilune_get_child(call.database->session, call.place->node, below(&call), call.count - 1,
                                              &value);
    if (status == PERILUNE_OK)
        return value_out(call.here, &value, call.place->mode, call.database->latin1);
    if (status != PERILUNE_NOT_FOUND)
        return failed(call.here, call.database->session, status);
    return call.place->mode == MODE_TEXT ? text_out(call.here, "", 0, true) : nothing(call.here);
}

napi_value data_get_bytes(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_value value;
    bool missing = false;
    char number[512];
    size_t size = 0;
    napi_value result = NULL;

    if (!begin(&call, env, info, few, &missing))
        return NULL;
    if (missing)
        return nothing(call.here);
    int status = perilune_get_child(call.database->session, call.place->node, below(&call), call.count - 1, &value);
    if (status == PERILUNE_NOT_FOUND)
        return nothing(call.here);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    if (value.type != PERILUNE_STRING) {
        perilune_value_text(&value, number, sizeof number, &size);
        value = perilune_string(number, size);
    }
    if (napi_create_buffer_copy(env, value.as.s.n, value.as.s.p, NULL, &result) != napi_ok)
        return refuse(call.here, PERILUNE_OUT_OF_MEMORY, "no memory for %zu bytes", value.as.s.n);
    return result;
}

/*
 * Begins a call whose last argument is a value of its own kind. The subscripts are settled with it, since reading it
 * may move the arena.
 */
static bool begin_with(struct call *call, napi_env env, napi_callback_info info, napi_value *few,
                       bool (*read)(struct call *, napi_value, size_t, size_t))
{
    if (!call_at_node(call, env, info, few))
        return false;
    if (call->count < 2) {
        refuse(call->here, STATUS_TYPE, "the last argument, a value, is missing");
        return false;
    }
    size_t last = call->count - 1;
    call->here->status = PERILUNE_OK;
    for (size_t i = 1; i < last; i++) {
        const perilune_value *value = &call->here->values[i];
        if (!subscript_in(call, call->given[i], i, i))
            return false;
        if (value->type == PERILUNE_STRING && value->as.s.n == 0 && call->place->mode == MODE_TEXT) {
            refuse(call->here, PERILUNE_INVALID, "argument %zu is an empty subscript", i);
            return false;
        }
    }
    if (!read(call, call->given[last], last, last))
        return false;
    settle(call, 1, call->count);
    return true;
}

napi_value data_set(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];

    if (!begin_with(&call, env, info, few, value_in))
        return NULL;
    size_t last = call.count - 1;
    int status = perilune_set_child(call.database->session, call.place->node, below(&call), last - 1,
                                    &call.here->values[last]);
    text_rest(call.here);
    return done(&call, status, 0);
}

napi_value data_defined(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    bool missing = false;
    int32_t data = 0;

    if (!begin(&call, env, info, few, &missing))
        return NULL;
    int status = missing ? PERILUNE_OK
                         : perilune_data_child(call.database->session, call.place->node, below(&call),
                                               call.count - 1, &data);
    return done(&call, status, data);
}

napi_value data_increment(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_value sum;

    if (!begin_with(&call, env, info, few, subscript_in))
        return NULL;
    size_t last = call.count - 1;
    perilune_session *session = call.database->session;
    perilune_value *by = &call.here->values[last];
    if (call.place->mode == MODE_TYPED) {
        int status = perilune_incr_child(session, call.place->node, below(&call), last - 1, by, &sum);
        return status == PERILUNE_OK ? value_out(call.here, &sum, MODE_TYPED, false) : failed(call.here, session, status);
    }
    /* In M a string counts as the number that it begins with. */
    if (by->type == PERILUNE_STRING && perilune_number_lenient(by->as.s.p, by->as.s.n, by) != PERILUNE_OK)
        return failed(call.here, NULL, PERILUNE_NUMBER_OVERFLOW);
    int status = perilune_incr_truncating_child(session, call.place->node, below(&call), last - 1, by, &sum);
    return status == PERILUNE_OK ? value_out(call.here, &sum, MODE_TEXT, false) : failed(call.here, session, status);
}

napi_value data_kill(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    bool missing = false;

    if (!begin(&call, env, info, few, &missing))
        return NULL;
    int status = missing ? PERILUNE_OK
                         : perilune_kill_child(call.database->session, call.place->node, below(&call), call.count - 1);
    return done(&call, status, 0);
}

napi_value data_remove(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *node = NULL;
    size_t capacity = 0;

    if (!begin(&call, env, info, few, NULL))
        return NULL;
    int status = encode(call.here, call.place->node, 1, call.count - 1, &node, &capacity);
    if (status == PERILUNE_OK)
        status = perilune_delete(call.database->session, node);
    free(node);
    return done(&call, status, status == PERILUNE_OK);
}

napi_value data_compare_and_set(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_node(&call, env, info, few))
        return NULL;
    if (call.count < 5)
        return refuse(call.here, STATUS_TYPE, "compareAndSet takes the expected and the desired value");
    perilune_value *values = call.here->values;
    values[3] = perilune_absent();
    values[4] = perilune_absent();
    if ((integer_at(&call, 1, 0) && !value_in(&call, call.given[3], 1, 3)) ||
        (integer_at(&call, 2, 0) && !value_in(&call, call.given[4], 2, 4)))
        return NULL;
    settle(&call, 3, 5);
    int status = perilune_cas(call.database->session, call.place->node, &values[3], &values[4]);
    return done(&call, status, status == PERILUNE_OK);
}

napi_value data_merge(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *to = NULL;
    perilune_node *from = NULL;
    size_t capacity = 0;
    enum { FIRST = 4 };

    if (!call_at_node(&call, env, info, few))
        return NULL;
    struct place *other = place_at(&call, 1);
    if (!other)
        return NULL;
    if (other->database != call.database)
        return refuse(call.here, PERILUNE_INVALID, "merge: both trees lie in one database");
    size_t below_to = (size_t)integer_at(&call, 3, 0);
    if (call.count < FIRST + below_to)
        return refuse(call.here, STATUS_TYPE, "merge: subscripts are missing");
    if (!subscripts_in(&call, FIRST, call.count, call.place->mode == MODE_TYPED))
        return NULL;
    int status = encode(call.here, call.place->node, FIRST, below_to, &to, &capacity);
    capacity = 0;
    if (status == PERILUNE_OK)
        status = encode(call.here, other->node, FIRST + below_to, call.count - FIRST - below_to, &from, &capacity);
    if (status != PERILUNE_OK)
        failed(call.here, NULL, status);
    else if (integer_at(&call, 2, 0))
        status = perilune_copy(call.database->session, from, to);
    else
        status = perilune_merge(call.database->session, from, to);
    free(to);
    free(from);
    return done(&call, status, 0);
}

napi_value data_count(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *node = NULL;
    size_t capacity = 0;
    uint64_t count = 0;
    napi_value result = NULL;

    if (!call_at_node(&call, env, info, few) || !subscripts_in(&call, 2, call.count, call.place->mode == MODE_TYPED))
        return NULL;
    int status = encode(call.here, call.place->node, 2, call.count > 2 ? call.count - 2 : 0, &node, &capacity);
    if (status == PERILUNE_OK)
        status = integer_at(&call, 1, 0) ? perilune_count_nodes(call.database->session, node, &count)
                                         : perilune_count_children(call.database->session, node, &count);
    free(node);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    napi_create_double(env, (double)count, &result);
    return result;
}

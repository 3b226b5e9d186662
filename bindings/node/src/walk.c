#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "text.h"
#include "values.h"

static napi_value null(napi_env env)
{
    napi_value result = NULL;

    napi_get_null(env, &result);
    return result;
}

/* A subscript of a step, null at the end. */
static napi_value stepped(struct call *call, int status, const perilune_value *subscript)
{
    if (status == PERILUNE_NOT_FOUND)
        return null(call->env);
    if (status != PERILUNE_OK)
        return failed(call->here, call->database->session, status);
    return value_out(call->here, subscript, call->place ? call->place->mode : MODE_TEXT, call->database->latin1);
}

static napi_value sibling(napi_env env, napi_callback_info info, bool forwards)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_value subscript;

    if (!call_at_node(&call, env, info, few) || !subscripts_in(&call, 1, call.count, true))
        return NULL;
    perilune_session *session = call.database->session;
    const perilune_value *below = call.here->values + 1;
    int status = forwards ? perilune_next_child(session, call.place->node, below, call.count - 1, &subscript)
                          : perilune_previous_child(session, call.place->node, below, call.count - 1, &subscript);
    return stepped(&call, status, &subscript);
}

napi_value walk_next(napi_env env, napi_callback_info info)
{
    return sibling(env, info, true);
}

napi_value walk_previous(napi_env env, napi_callback_info info)
{
    return sibling(env, info, false);
}

napi_value walk_child(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_value subscript;

    if (!call_at_node(&call, env, info, few) || !subscripts_in(&call, 2, call.count, true))
        return NULL;
    const perilune_value *from = call.count > 2 ? &call.here->values[2] : NULL;
    int status = integer_at(&call, 1, 0)
                     ? perilune_child_previous(call.database->session, call.place->node, from, &subscript)
                     : perilune_child_next(call.database->session, call.place->node, from, &subscript);
    return stepped(&call, status, &subscript);
}

napi_value walk_name(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_value name;
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    if (call.count < 3 || !text_in(call.here, call.given[2], false, &offset, &size))
        return refuse(call.here, STATUS_TYPE, "the name of a global is a string");
    const char *from = call.here->arena + offset;
    int status = integer_at(&call, 1, 0) ? perilune_name_previous(call.database->session, from, size, &name)
                                         : perilune_name_next(call.database->session, from, size, &name);
    return stepped(&call, status, &name);
}

/* The last node with a value before all that lies behind the children of `parent`: its last descendant, or itself. */
static int last_below(struct call *call, const perilune_node *parent, struct found *found)
{
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_cursor *cursor = NULL;
    size_t size = 0;

    options.kind = PERILUNE_CURSOR_SUBTREE;
    options.flags = PERILUNE_CURSOR_REVERSE;
    int status = perilune_cursor_open(call->database->session, parent, &options, &cursor);
    if (status == PERILUNE_OK)
        status = perilune_cursor_next(cursor, NULL, NULL, NULL);
    if (status == PERILUNE_OK)
        status = perilune_cursor_node(cursor, found->node, PERILUNE_NODE_BYTES_MAX, &size);
    perilune_cursor_close(cursor);
    if (status == PERILUNE_OK)
        return perilune_get(call->database->session, found->node, &found->value);
    if (status != PERILUNE_NOT_FOUND)
        return status;
    return perilune_previous_valued(call->database->session, parent, found->node, PERILUNE_NODE_BYTES_MAX, NULL,
                                    &found->value);
}

napi_value walk_query(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_node *from = NULL;
    size_t capacity = 0;
    enum { FIRST = 2 };

    if (!call_at_node(&call, env, info, few) || !subscripts_in(&call, FIRST, call.count, true))
        return NULL;
    struct found *found = &call.here->found;
    size_t count = call.count > FIRST ? call.count - FIRST : 0;
    bool backwards = integer_at(&call, 1, 0) != 0;
    const perilune_value *last = &call.here->values[FIRST + count - 1];
    bool from_end = backwards && (count == 0 || (last->type == PERILUNE_STRING && last->as.s.n == 0));
    int status = encode(call.here, call.place->node, FIRST, from_end && count > 0 ? count - 1 : count, &from, &capacity);
    if (status != PERILUNE_OK) {
        failed(call.here, NULL, status);
    } else {
        if (from_end)
            status = last_below(&call, from, found);
        else if (backwards)
            status = perilune_previous_valued(call.database->session, from, found->node, PERILUNE_NODE_BYTES_MAX, NULL,
                                              &found->value);
        else
            status = perilune_next_valued(call.database->session, from, found->node, PERILUNE_NODE_BYTES_MAX, NULL,
                                          &found->value);
        if (status < 0)
            failed(call.here, call.database->session, status);
    }
    free(from);
    if (status < 0)
        return NULL;
    return integer(env, status == PERILUNE_OK ? (int32_t)perilune_node_depth(found->node) : -1);
}

napi_value walk_subscript(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_value subscript;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    int status = perilune_node_subscript(call.here->found.node, (uint32_t)integer_at(&call, 1, 1), &subscript);
    if (status != PERILUNE_OK)
        return nothing(call.here);
    return value_out(call.here, &subscript, integer_at(&call, 2, MODE_TEXT), call.database->latin1);
}

napi_value walk_value(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    return value_out(call.here, &call.here->found.value, integer_at(&call, 1, MODE_TEXT), call.database->latin1);
}

napi_value walk_data(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];

    return call_begin(&call, env, info, few) ? integer(env, call.here->found.data) : NULL;
}

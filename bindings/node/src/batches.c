#include "batches.h"

#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "text.h"
#include "values.h"

/* The nodes and values of a batch, in memory of its own. */
struct batch {
    size_t count;
    size_t room;
    perilune_node **nodes;
    perilune_value *values;
};

static void batch_free(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        free(batch->nodes[i]);
        if (batch->values[i].reserved)
            free((void *)batch->values[i].as.s.p);
    }
    free(batch->nodes);
    free(batch->values);
}

static bool batch_grow(struct batch *batch)
{
    if (batch->count < batch->room)
        return true;
    size_t room = batch->room ? 2 * batch->room : 64;
    perilune_node **nodes = realloc(batch->nodes, room * sizeof *nodes);
    if (nodes)
        batch->nodes = nodes;
    perilune_value *values = realloc(batch->values, room * sizeof *values);
    if (values)
        batch->values = values;
    if (!nodes || !values)
        return false;
    batch->room = room;
    return true;
}

/* A value of its own memory, marked by `reserved`. */
static bool batch_keep(perilune_value *value)
{
    if (value->type != PERILUNE_STRING && value->type != PERILUNE_DECIMAL)
        return true;
    char *bytes = malloc(value->as.s.n + 1);
    if (!bytes)
        return false;
    memcpy(bytes, value->as.s.p, value->as.s.n);
    value->as.s.p = bytes;
    value->reserved = 1;
    return true;
}

/* One entry of the list, from `*at` on. */
static bool entry_in(struct call *call, napi_value list, uint32_t *at, struct batch *batch, bool with_value)
{
    struct here *here = call->here;
    napi_value element = NULL;
    int32_t count = 0;
    size_t capacity = 0;

    here->arena_used = 0;
    here->status = PERILUNE_OK;
    if (napi_get_element(call->env, list, (*at)++, &element) != napi_ok ||
        napi_get_value_int32(call->env, element, &count) != napi_ok || count < 0 || count > 255 || !batch_grow(batch)) {
        refuse(here, STATUS_TYPE, "a batch is a list of counts, subscripts and values");
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        size_t slot = (size_t)i;
        if (napi_get_element(call->env, list, (*at)++, &element) != napi_ok ||
            !subscript_in(call, element, slot, slot))
            return false;
        if (here->values[i].type == PERILUNE_STRING && here->values[i].as.s.n == 0 && call->place->mode == MODE_TEXT) {
            refuse(here, PERILUNE_INVALID, "subscript %zu of a node is empty", slot + 1);
            return false;
        }
    }
    size_t last = (size_t)count;
    here->values[last] = perilune_absent();
    if (with_value && (napi_get_element(call->env, list, (*at)++, &element) != napi_ok ||
                       !value_in(call, element, last, last)))
        return false;
    settle(call, 0, last + 1);
    perilune_node *node = NULL;
    int status = encode(here, call->place->node, 0, last, &node, &capacity);
    if (status == PERILUNE_OK && !batch_keep(&here->values[last]))
        status = PERILUNE_OUT_OF_MEMORY;
    if (status != PERILUNE_OK) {
        free(node);
        failed(here, NULL, status);
        return false;
    }
    batch->nodes[batch->count] = node;
    batch->values[batch->count++] = here->values[last];
    return true;
}

/* The whole list in the argument at `index`. */
static bool list_in(struct call *call, size_t index, struct batch *batch, bool with_values)
{
    uint32_t length = 0;

    if (index >= call->count || napi_get_array_length(call->env, call->given[index], &length) != napi_ok) {
        refuse(call->here, STATUS_TYPE, "a batch is an array");
        return false;
    }
    napi_value list = call->given[index];
    for (uint32_t at = 0; at < length;) {
        napi_handle_scope scope = NULL;
        napi_open_handle_scope(call->env, &scope);
        bool good = entry_in(call, list, &at, batch, with_values);
        napi_close_handle_scope(call->env, scope);
        if (!good)
            return false;
    }
    return true;
}

napi_value batch_set(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    struct batch batch = {0};
    napi_value result = NULL;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    if (list_in(&call, 2, &batch, true)) {
        for (size_t i = 0; i < batch.count; i++)
            batch.values[i].reserved = 0;
        const perilune_node *const *nodes = (const perilune_node *const *)batch.nodes;
        int status = integer_at(&call, 1, 0)
                         ? perilune_set_each(call.database->session, nodes, batch.count, batch.values)
                         : perilune_set_many(call.database->session, nodes, batch.count, batch.values);
        for (size_t i = 0; i < batch.count; i++)
            batch.values[i].reserved = batch.values[i].type == PERILUNE_STRING || batch.values[i].type == PERILUNE_DECIMAL;
        result = status == PERILUNE_OK ? integer(env, 0) : failed(call.here, call.database->session, status);
    }
    batch_free(&batch);
    text_rest(call.here);
    return result;
}

napi_value batch_get(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    struct batch batch = {0};
    napi_value result = NULL;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    if (list_in(&call, 1, &batch, false)) {
        int status = perilune_get_many(call.database->session, (const perilune_node *const *)batch.nodes, batch.count,
                                       batch.values);
        if (status == PERILUNE_OK)
            napi_create_array_with_length(env, batch.count, &result);
        else
            failed(call.here, call.database->session, status);
        for (size_t i = 0; status == PERILUNE_OK && i < batch.count; i++) {
            napi_value value = value_out(call.here, &batch.values[i], call.place->mode, call.database->latin1);
            if (value)
                napi_set_element(env, result, (uint32_t)i, value);
            batch.values[i].reserved = 0;
        }
        for (size_t i = 0; i < batch.count; i++)
            batch.values[i].reserved = 0;
    }
    batch_free(&batch);
    return result;
}

#include "documents.h"

#include "text.h"
#include "values.h"

/* What is behind the handle and the call's name. */
enum { NAME = 1, FIRST = 2 };

/* Reads the arguments of the call; false: it failed, and said so. */
static bool arguments_in(struct call *call, size_t *offset, size_t *size)
{
    if (call->count <= NAME || !text_in(call->here, call->given[NAME], false, offset, size)) {
        refuse(call->here, STATUS_TYPE, "the name of a call is a string");
        return false;
    }
    for (size_t i = FIRST; i < call->count; i++)
        if (!value_in(call, call->given[i], i, i))
            return false;
    settle(call, FIRST, call->count);
    return true;
}

/* A value of an answer for JavaScript. */
static napi_value answer_at(struct here *here, const perilune_dom_answer *answer, size_t index)
{
    perilune_value value;

    if (perilune_dom_value(answer, index, &value) != PERILUNE_OK)
        return NULL;
    return value_out(here, &value, MODE_TYPED, false);
}

static napi_value answer_out(struct here *here, const perilune_dom_answer *answer)
{
    napi_value result = NULL;
    size_t count = perilune_dom_count(answer);

    switch (perilune_dom_kind(answer)) {
    case PERILUNE_DOM_NOTHING:
        napi_get_null(here->env, &result);
        return result;
    case PERILUNE_DOM_VALUE:
    case PERILUNE_DOM_NODE:
        return answer_at(here, answer, 0);
    default:
        if (count > UINT32_MAX || napi_create_array_with_length(here->env, count, &result) != napi_ok)
            return refuse(here, PERILUNE_OUT_OF_MEMORY, "no memory for %zu nodes", count);
        for (size_t i = 0; i < count; i++) {
            napi_handle_scope scope = NULL;
            napi_open_handle_scope(here->env, &scope);
            napi_set_element(here->env, result, (uint32_t)i, answer_at(here, answer, i));
            napi_close_handle_scope(here->env, scope);
        }
        return result;
    }
}

napi_value document_call(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_dom_answer *answer = NULL;
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_node(&call, env, info, few) || !arguments_in(&call, &offset, &size))
        return NULL;
    struct here *here = call.here;
    int status = perilune_dom_call(call.database->session, call.place->node, here->arena + offset, size,
                                   here->values + FIRST, call.count - FIRST, &answer);
    text_rest(here);
    if (status != PERILUNE_OK)
        return failed(here, call.database->session, status);
    napi_value result = answer_out(here, answer);
    perilune_dom_close(answer);
    return result;
}

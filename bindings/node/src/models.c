#include "models.h"

#include "text.h"
#include "values.h"

/* What is behind the handle and the call's name. */
enum { NAME = 1, FIRST = 2 };

napi_value models_call(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    napi_value result = NULL;
    perilune_value answer;
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    struct here *here = call.here;
    if (call.count <= NAME || !text_in(here, call.given[NAME], false, &offset, &size))
        return refuse(here, STATUS_TYPE, "the name of a call is a string");
    for (size_t i = FIRST; i < call.count; i++)
        if (!value_in(&call, call.given[i], i, i))
            return NULL;
    settle(&call, FIRST, call.count);
    int status = perilune_models_call(call.database->session, call.place->node, here->arena + offset, size,
                                      here->values + FIRST, call.count - FIRST, &answer);
    text_rest(here);
    if (status != PERILUNE_OK)
        return failed(here, call.database->session, status);
    if (answer.type != PERILUNE_ABSENT)
        return value_out(here, &answer, MODE_TYPED, false);
    napi_get_null(env, &result);
    return result;
}

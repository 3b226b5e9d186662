#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct here *here_new(napi_env env)
{
    struct here *here = calloc(1, sizeof *here);

    if (!here)
        return NULL;
    here->env = env;
    here->arena = malloc(ARENA_FIRST);
    here->arena_size = ARENA_FIRST;
    here->found.node = malloc(PERILUNE_NODE_BYTES_MAX);
    if (!here->arena || !here->found.node) {
        here_free(here);
        return NULL;
    }
    here->found.node->depth = 0;
    here->found.value = perilune_absent();
    return here;
}

void here_free(struct here *here)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        free(here->places[i].node);
    free(here->found.node);
    free(here->arena);
    free(here);
}

napi_value refuse(struct here *here, int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(here->message, sizeof here->message, format, arguments);
    va_end(arguments);
    here->status = status;
    return NULL;
}

napi_value failed(struct here *here, const perilune_session *session, int status)
{
    snprintf(here->message, sizeof here->message, "%s", perilune_message(session));
    here->status = status;
    return NULL;
}

napi_value nothing(struct here *here)
{
    here->status = PERILUNE_OK;
    return NULL;
}

bool call_begin(struct call *call, napi_env env, napi_callback_info info, napi_value *few)
{
    void *data = NULL;
    size_t count = ARGUMENTS_FEW;

    call->env = env;
    call->given = few;
    if (napi_get_cb_info(env, info, &count, few, NULL, &data) != napi_ok)
        return false;
    call->here = data;
    call->count = count;
    call->here->arena_used = 0;
    if (count <= ARGUMENTS_FEW)
        return true;
    if (count > ARGUMENTS_MAX) {
        refuse(call->here, PERILUNE_TOO_MANY_SUBSCRIPTS, "a node has at most 255 subscripts");
        return false;
    }
    call->given = call->here->given;
    return napi_get_cb_info(env, info, &count, call->given, NULL, NULL) == napi_ok;
}

struct database *database_of(struct here *here, double number)
{
    /* NB: a handle is whatever JavaScript hands over. */
    if (!(number >= 1 && number < 9007199254740992.0))
        return NULL;
    struct database *database = &here->databases[(uint64_t)number % DATABASES_MAX];
    return database->number == number ? database : NULL;
}

struct place *place_at(struct call *call, size_t index)
{
    double number = 0;

    if (index >= call->count || napi_get_value_double(call->env, call->given[index], &number) != napi_ok ||
        !(number >= 0 && number < 9007199254740992.0)) {
        refuse(call->here, STATUS_TYPE, "argument %zu is no handle of a node", index);
        return NULL;
    }
    struct place *place = &call->here->places[(uint64_t)number % PLACES_MAX];
    /* 0 is the handle of what was not encoded yet. */
    if (place->number != number || number == 0) {
        refuse(call->here, STATUS_STALE, "the node is to be encoded again");
        return NULL;
    }
    if (place->database->number != place->database_number) {
        refuse(call->here, PERILUNE_CLOSED, "the database was closed: open it again");
        return NULL;
    }
    return place;
}

bool call_at_node(struct call *call, napi_env env, napi_callback_info info, napi_value *few)
{
    if (!call_begin(call, env, info, few))
        return false;
    call->place = place_at(call, 0);
    if (!call->place)
        return false;
    call->database = call->place->database;
    return true;
}

bool call_at_database(struct call *call, napi_env env, napi_callback_info info, napi_value *few)
{
    if (!call_begin(call, env, info, few))
        return false;
    call->database = database_of(call->here, number_at(call, 0, 0));
    if (!call->database)
        refuse(call->here, PERILUNE_CLOSED, "the database is not open: call open first");
    return call->database != NULL;
}

int32_t integer_at(const struct call *call, size_t index, int32_t otherwise)
{
    int32_t number = otherwise;
    bool truth = false;

    if (index >= call->count)
        return otherwise;
    if (napi_get_value_int32(call->env, call->given[index], &number) == napi_ok)
        return number;
    return napi_get_value_bool(call->env, call->given[index], &truth) == napi_ok ? truth : otherwise;
}

double number_at(const struct call *call, size_t index, double otherwise)
{
    double number = otherwise;

    if (index < call->count)
        napi_get_value_double(call->env, call->given[index], &number);
    return number;
}

napi_value integer(napi_env env, int32_t number)
{
    napi_value result = NULL;

    napi_create_int32(env, number, &result);
    return result;
}

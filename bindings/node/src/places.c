#include "places.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "values.h"

/* Gives `*node` room for `size` bytes. */
static bool grow(perilune_node **node, size_t *capacity, size_t size)
{
    perilune_node *larger = realloc(*node, size);

    if (!larger)
        return false;
    *node = larger;
    *capacity = size;
    return true;
}

int encode(struct here *here, const perilune_node *parent, size_t first, size_t count, perilune_node **node,
           size_t *capacity)
{
    size_t needed = 0;
    int status = perilune_node_child(*node, *capacity, parent, here->values + first, count, &needed);

    if (status != PERILUNE_BUFFER_TOO_SMALL)
        return status;
    if (!grow(node, capacity, needed))
        return PERILUNE_OUT_OF_MEMORY;
    return perilune_node_child(*node, *capacity, parent, here->values + first, count, &needed);
}

/* The root of the name in argument 2, with a ^ in front where the flavours may leave it out. */
static bool root_in(struct call *call, int mode, void *buffer, size_t capacity)
{
    size_t offset = 0;
    size_t size = 0;

    if (call->count < 3 || !text_in(call->here, call->given[2], false, &offset, &size)) {
        refuse(call->here, STATUS_TYPE, "the name of a global is a string");
        return false;
    }
    char *name = call->here->arena + offset;
    if (mode == MODE_TEXT && (size == 0 || name[0] != '^')) {
        if (!text_room(call->here, size + 1))
            return false;
        name = call->here->arena + offset;
        memmove(name + 1, name, size);
        name[0] = '^';
        size++;
    }
    int status = perilune_node_root(buffer, capacity, name, size, NULL);
    if (status == PERILUNE_OK)
        return true;
    failed(call->here, NULL, status);
    return false;
}

napi_value place_new(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    _Alignas(8) char root[PERILUNE_NODE_BYTES_MAX];
    napi_value result = NULL;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    struct here *here = call.here;
    int mode = integer_at(&call, 1, MODE_TEXT);
    if (!root_in(&call, mode, root, sizeof root) || !subscripts_in(&call, 3, call.count, mode == MODE_TYPED))
        return NULL;
    double number = here->places_given + 1;
    struct place *place = &here->places[(uint64_t)number % PLACES_MAX];
    place->number = 0;
    int status = encode(here, (const perilune_node *)root, 3, call.count > 3 ? call.count - 3 : 0, &place->node,
                        &place->capacity);
    if (status != PERILUNE_OK)
        return failed(here, NULL, status);
    here->places_given = number;
    place->number = number;
    place->database = call.database;
    place->database_number = call.database->number;
    place->mode = mode;
    napi_create_double(env, number, &result);
    return result;
}

napi_value place_text(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_node *node = NULL;
    size_t capacity = 0;
    size_t size = 0;
    napi_value result = NULL;

    if (!call_at_node(&call, env, info, few) || !subscripts_in(&call, 1, call.count, true))
        return NULL;
    int status = encode(call.here, call.place->node, 1, call.count - 1, &node, &capacity);
    if (status == PERILUNE_OK) {
        status = perilune_node_text(node, NULL, 0, &size);
        char *text = malloc(size + 1);
        if (text && status == PERILUNE_BUFFER_TOO_SMALL)
            status = perilune_node_text(node, text, size, &size);
        if (text && status == PERILUNE_OK)
            result = text_out(call.here, text, size, false);
        free(text);
    }
    free(node);
    return status == PERILUNE_OK ? result : failed(call.here, NULL, status);
}

#include "cursors.h"

#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "text.h"
#include "values.h"

/* What the external value refers to. */
struct cursor {
    uint64_t mark; /* tells it from other addons' externals */
    perilune_cursor *cursor;
    struct here *here;
    double database_number;
    struct database *database;
    int mode;
    bool with_nodes;
};

static const uint64_t MARK = UINT64_C(0x7065726963757273);

static void collected(napi_env env, void *data, void *hint)
{
    struct cursor *cursor = data;

    (void)env;
    (void)hint;
    perilune_cursor_close(cursor->cursor);
    free(cursor);
}

/* The bounds of a cursor over children. */
static void bound_children(struct call *call, size_t first, perilune_cursor_options *options)
{
    int bounds = integer_at(call, 3, 0);
    size_t next = first;

    if ((bounds & 1) && next < call->count)
        options->from = &call->here->values[next++];
    if ((bounds & 2) && next < call->count)
        options->to = &call->here->values[next];
}

napi_value cursor_open(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_node *from = NULL;
    size_t capacity = 0;
    int status = PERILUNE_OK;
    napi_value result = NULL;
    enum { FIRST = 4 };

    if (!call_at_node(&call, env, info, few) || !subscripts_in(&call, FIRST, call.count, true))
        return NULL;
    options.flags = (uint32_t)integer_at(&call, 1, 0);
    options.kind = integer_at(&call, 2, 0) ? PERILUNE_CURSOR_SUBTREE : PERILUNE_CURSOR_CHILDREN;
    if (options.kind == PERILUNE_CURSOR_CHILDREN) {
        bound_children(&call, FIRST, &options);
    } else {
        options.flags |= PERILUNE_CURSOR_NODES;
        if (call.count > FIRST) {
            status = encode(call.here, call.place->node, FIRST, call.count - FIRST, &from, &capacity);
            options.from_node = from;
        }
    }
    struct cursor *cursor = calloc(1, sizeof *cursor);
    if (status == PERILUNE_OK && cursor)
        status = perilune_cursor_open(call.database->session, call.place->node, &options, &cursor->cursor);
    free(from);
    if (status != PERILUNE_OK || !cursor) {
        free(cursor);
        return failed(call.here, call.database->session, status);
    }
    cursor->mark = MARK;
    cursor->here = call.here;
    cursor->database = call.database;
    cursor->database_number = call.database->number;
    cursor->mode = call.place->mode;
    cursor->with_nodes = options.kind == PERILUNE_CURSOR_SUBTREE;
    if (napi_create_external(env, cursor, collected, NULL, &result) != napi_ok)
        collected(env, cursor, NULL);
    return result;
}

/* The cursor in front of a call; NULL: noted. */
static struct cursor *cursor_at(struct call *call, napi_env env, napi_callback_info info, napi_value *few)
{
    void *data = NULL;

    if (!call_begin(call, env, info, few))
        return NULL;
    if (call->count < 1 || napi_get_value_external(env, call->given[0], &data) != napi_ok ||
        ((struct cursor *)data)->mark != MARK) {
        refuse(call->here, STATUS_TYPE, "this is no cursor");
        return NULL;
    }
    struct cursor *cursor = data;
    if (!cursor->cursor || cursor->database->number != cursor->database_number) {
        refuse(call->here, PERILUNE_CLOSED, "the cursor was closed");
        return NULL;
    }
    call->database = cursor->database;
    return cursor;
}

napi_value cursor_child(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_value subscript;
    napi_value result = NULL;
    struct cursor *cursor = cursor_at(&call, env, info, few);

    if (!cursor)
        return NULL;
    struct found *found = &call.here->found;
    int status = perilune_cursor_next(cursor->cursor, &subscript, &found->value, &found->data);
    if (status == PERILUNE_OK)
        return value_out(call.here, &subscript, cursor->mode, call.database->latin1);
    if (status != PERILUNE_NOT_FOUND)
        return failed(call.here, call.database->session, status);
    napi_get_null(env, &result);
    return result;
}

napi_value cursor_node(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_entry entry;
    size_t count = 0;
    enum { DEPTH = 256 };
    struct cursor *cursor = cursor_at(&call, env, info, few);

    if (!cursor || !cursor->with_nodes)
        return cursor ? refuse(call.here, STATUS_TYPE, "this cursor goes over children") : NULL;
    int status = perilune_cursor_fetch(cursor->cursor, &entry, 1, &count);
    if (status == PERILUNE_NOT_FOUND || (status == PERILUNE_OK && count == 0))
        return integer(env, -1);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    memcpy(call.here->found.node, entry.node, PERILUNE_NODE_SIZE(entry.node));
    call.here->found.value = entry.value;
    return integer(env, entry.depth * DEPTH + entry.shared);
}

/* Appends the text of `value` to the arena; false: no memory. */
static bool append(struct here *here, const perilune_value *value)
{
    enum { NUMBER_TEXT = 512 };
    size_t size = value->type == PERILUNE_STRING ? value->as.s.n : NUMBER_TEXT;

    if (!text_room(here, size + 1))
        return false;
    if (value->type == PERILUNE_STRING) {
        memcpy(here->arena + here->arena_used, value->as.s.p, size);
        here->arena_used += size;
        return true;
    }
    if (value->type == PERILUNE_INT) {
        char text[INTEGER_TEXT];
        size = integer_text(value->as.i, text + sizeof text);
        memcpy(here->arena + here->arena_used, text + sizeof text - size, size);
        here->arena_used += size;
        return true;
    }
    if (perilune_value_text(value, here->arena + here->arena_used, size, &size) != PERILUNE_OK)
        return false;
    here->arena_used += size;
    return true;
}

/* The parts as strings of their own, where not all of it is ASCII and bytes are not units. */
static napi_value apart(struct here *here, const int32_t *ends, int32_t parts)
{
    napi_value list = NULL;
    int32_t before = 0;

    napi_create_array_with_length(here->env, (size_t)parts, &list);
    for (int32_t i = 1; i <= parts; i++) {
        if (ends[i] < 0)
            continue;
        napi_value part = text_out(here, here->arena + before, (size_t)(ends[i] - before), false);
        if (!part)
            return NULL;
        napi_set_element(here->env, list, (uint32_t)(i - 1), part);
        before = ends[i];
    }
    return list;
}

napi_value cursor_batch(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_entry entries[64];
    int32_t *ends = NULL;
    size_t room = 0;
    size_t count = 0;
    napi_value result = NULL;
    napi_typedarray_type type;
    struct cursor *cursor = cursor_at(&call, env, info, few);

    if (!cursor)
        return NULL;
    if (call.count < 3 || napi_get_typedarray_info(env, call.given[2], &type, &room, (void **)&ends, NULL, NULL) != napi_ok ||
        type != napi_int32_array || room < 3)
        return refuse(call.here, STATUS_TYPE, "a batch needs an Int32Array for the ends");
    size_t wanted = (size_t)integer_at(&call, 1, 1);
    if (wanted > (room - 1) / 2)
        wanted = (room - 1) / 2;
    struct here *here = call.here;
    int32_t parts = 0;
    int status = PERILUNE_OK;
    while (wanted > 0 && status == PERILUNE_OK && here->arena_used < ARENA_KEPT) {
        size_t few_entries = sizeof entries / sizeof entries[0];
        status = perilune_cursor_fetch(cursor->cursor, entries, wanted < few_entries ? wanted : few_entries, &count);
        for (size_t i = 0; status == PERILUNE_OK && i < count; i++) {
            bool there = entries[i].value.type != PERILUNE_ABSENT;
            if (!append(here, &entries[i].subscript))
                return refuse(here, PERILUNE_OUT_OF_MEMORY, "no memory for a batch");
            ends[++parts] = (int32_t)here->arena_used;
            if (there && !append(here, &entries[i].value))
                return refuse(here, PERILUNE_OUT_OF_MEMORY, "no memory for a batch");
            ends[++parts] = there ? (int32_t)here->arena_used : -1;
        }
        wanted -= status == PERILUNE_OK ? count : 0;
    }
    if (status < 0)
        return failed(here, call.database->session, status);
    ends[0] = parts / 2;
    if (parts == 0) {
        napi_get_null(env, &result);
        return result;
    }
    if (!call.database->latin1 && !text_is_ascii(here->arena, here->arena_used))
        return apart(here, ends, parts);
    return text_out(here, here->arena, here->arena_used, call.database->latin1);
}

napi_value cursor_close(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    void *data = NULL;

    if (!call_begin(&call, env, info, few))
        return NULL;
    if (call.count > 0 && napi_get_value_external(env, call.given[0], &data) == napi_ok &&
        ((struct cursor *)data)->mark == MARK) {
        struct cursor *cursor = data;
        perilune_cursor_close(cursor->cursor);
        cursor->cursor = NULL;
    }
    return integer(env, 0);
}

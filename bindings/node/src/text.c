#include "text.h"

#include <stdlib.h>
#include <string.h>

bool text_room(struct here *here, size_t size)
{
    size_t wanted = here->arena_size;

    if (here->arena_used + size <= wanted)
        return true;
    while (wanted < here->arena_used + size)
        wanted *= 2;
    char *arena = realloc(here->arena, wanted);
    if (!arena) {
        refuse(here, PERILUNE_OUT_OF_MEMORY, "no memory for a string of %zu bytes", size);
        return false;
    }
    here->arena = arena;
    here->arena_size = wanted;
    return true;
}

void text_rest(struct here *here)
{
    if (here->arena_size <= ARENA_KEPT)
        return;
    char *arena = malloc(ARENA_FIRST);
    if (!arena)
        return;
    free(here->arena);
    here->arena = arena;
    here->arena_size = ARENA_FIRST;
    here->arena_used = 0;
}

typedef napi_status (*reader)(napi_env, napi_value, char *, size_t, size_t *);

bool text_in(struct here *here, napi_value given, bool latin1, size_t *offset, size_t *size)
{
    reader read = latin1 ? napi_get_value_string_latin1 : napi_get_value_string_utf8;
    /* A character has at most four bytes, and a zero byte follows: a string that ends nearer may have been cut. */
    enum { NEAR = 5, LEAST = 256 };
    size_t copied = 0;

    if (!text_room(here, LEAST))
        return false;
    size_t room = here->arena_size - here->arena_used;
    if (read(here->env, given, here->arena + here->arena_used, room, &copied) != napi_ok)
        return false;
    if (copied + NEAR > room) {
        size_t whole = 0;
        if (read(here->env, given, NULL, 0, &whole) != napi_ok || !text_room(here, whole + NEAR))
            return false;
        room = here->arena_size - here->arena_used;
        if (read(here->env, given, here->arena + here->arena_used, room, &copied) != napi_ok)
            return false;
    }
    *offset = here->arena_used;
    *size = copied;
    here->arena_used += copied;
    return true;
}

bool text_is_ascii(const char *bytes, size_t size)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    size_t i = 0;
    uint64_t seen = 0;

    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        seen |= word;
    }
    for (; i < size; i++)
        seen |= (unsigned char)bytes[i];
    return (seen & high) == 0;
}

napi_value text_out(struct here *here, const char *bytes, size_t size, bool latin1)
{
    napi_value result = NULL;
    napi_status status;

    if (latin1 || text_is_ascii(bytes, size))
        status = napi_create_string_latin1(here->env, bytes, size, &result);
    else
        status = napi_create_string_utf8(here->env, bytes, size, &result);
    if (status == napi_ok)
        return result;
    return refuse(here, PERILUNE_VALUE_TOO_LONG, "%zu bytes are more than a string of JavaScript holds", size);
}

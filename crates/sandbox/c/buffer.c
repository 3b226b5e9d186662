/*
 * A growing array of bytes, whose size is counted as the script's memory before it is allocated. Replies, the
 * arguments of questions and the results of string functions are built in such buffers. A buffer doubles if the
 * script may have that much.
 */
#include "buffer.h"

#include "memory.h"

#include <stdlib.h>

/* Makes room for `more` bytes, and if it is to be had for as many as there are. */
static void enlarge(sandbox *S, lua_State *L, buffer *b, size_t more)
{
    size_t wanted = b->length + more, room = b->room * 2 > wanted ? b->room * 2 : wanted;
    if (wanted < more)
        luaL_error(L, "not enough memory");
    if (!count_in(S, room - b->room)) {
        room = wanted;
        count_in_or_raise(S, L, room - b->room);
    }
    char *bytes = realloc(b->bytes, room);
    if (bytes == NULL) {
        count_out(S, room - b->room);
        luaL_error(L, "not enough memory");
    }
    b->bytes = bytes;
    b->room = room;
}

char *buffer_room(sandbox *S, lua_State *L, buffer *b, size_t more)
{
    if (b->room - b->length < more)
        enlarge(S, L, b, more);
    return b->bytes + b->length;
}

void buffer_put(sandbox *S, lua_State *L, buffer *b, const void *bytes, size_t length)
{
    char *place = buffer_room(S, L, b, length);
    if (length > 0)
        memcpy(place, bytes, length);
    b->length += length;
}

void buffer_byte(sandbox *S, lua_State *L, buffer *b, char byte)
{
    *buffer_room(S, L, b, 1) = byte;
    b->length++;
}

void release(sandbox *S, buffer *b)
{
    count_out(S, b->room);
    free(b->bytes);
    b->bytes = NULL;
    b->room = 0;
}

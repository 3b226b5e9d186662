/* A growing array of bytes, counted as the script's memory. */
#ifndef PERILUNE_SANDBOX_BUFFER_H
#define PERILUNE_SANDBOX_BUFFER_H

#include "sandbox.h"

/* Makes room for `more` bytes; raises if the script may not have them. */
char *buffer_room(sandbox *S, lua_State *L, buffer *b, size_t more);
void buffer_put(sandbox *S, lua_State *L, buffer *b, const void *bytes, size_t length);
void buffer_byte(sandbox *S, lua_State *L, buffer *b, char byte);
/* Gives back its bytes. */
void release(sandbox *S, buffer *b);
/* Empties it, and gives back what it has more than SCRATCH_KEPT bytes of. */
static inline void shrink(sandbox *S, buffer *b)
{
    b->length = 0;
    if (b->room > SCRATCH_KEPT)
        release(S, b);
}

#endif

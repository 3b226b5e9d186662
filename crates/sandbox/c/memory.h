/* The memory of scripts, counted before it is taken. */
#ifndef PERILUNE_SANDBOX_MEMORY_H
#define PERILUNE_SANDBOX_MEMORY_H

#include "sandbox.h"

/* Lua's allocator. */
void *counted(void *ud, void *block, size_t old_size, size_t new_size);
/* Counts so many bytes more; 0 if the script may not have them. */
int count_in(sandbox *S, size_t more);
static inline void count_out(sandbox *S, size_t less)
{
    S->used -= less;
}
/* Counts what the host has taken, within the room that it was told. */
void count_taken(sandbox *S, size_t more);
/* Counts so many bytes more, if need be when what is no longer wanted has been given back; raises if the script may not
 * have them. */
void count_in_or_raise(sandbox *S, lua_State *L, size_t more);
/* How many more there may be. */
size_t room_left(const sandbox *S);
/* Gives back to the pool what is not used: between runs. */
void settle(sandbox *S);
void sandbox_limit(sandbox *S, size_t limit);
size_t sandbox_memory(const sandbox *S);

#endif

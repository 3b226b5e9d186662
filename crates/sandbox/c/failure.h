/* Where an error was raised, and errors that are told as they are. */
#ifndef PERILUNE_SANDBOX_FAILURE_H
#define PERILUNE_SANDBOX_FAILURE_H

#include "sandbox.h"

/* Raises a message that says all that is to be said, without a place. */
int raise_plain(sandbox *S, lua_State *L, text message);
/* The message of the error at `index`, if raise_plain() has raised it; else no bytes. */
text plain_message(const sandbox *S, lua_State *L, int index);
/* A message for whatever else was raised; a number becomes a string where it lies. */
text any_message(lua_State *L, int index);
/* The handler of runs: notes where an error was raised in S->source, S->line and S->tail. */
int note_failure(lua_State *L);

#endif

/* Lua values as bytes, for the host and from it: its form is told in values.c. */
#ifndef PERILUNE_SANDBOX_VALUES_H
#define PERILUNE_SANDBOX_VALUES_H

#include "sandbox.h"

/* Makes first..last of the stack the arguments of a question, each a value; 0, or the index of what is none: a table, a
 * function, a thread, a userdata. */
int collect_values(sandbox *S, lua_State *L, int first, int last);
/* Pushes the value that the host has answered; raises its error if it is one. */
void push_answer(sandbox *S, lua_State *L, text answer);
/* What a script returns as such a value, of tables those that are lists, and others by their keys. */
extern const format values_format;
/* The reply of such a format where there is no memory even for the error. NB: the length is written for machines whose lowest
 * byte comes first; Perilune runs on no others. */
#define NO_MEMORY_VALUE "e\x11\0\0\0\0\0\0\0not enough memory"

#endif

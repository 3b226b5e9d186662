/* Questions to the host. */
#ifndef PERILUNE_SANDBOX_ASK_H
#define PERILUNE_SANDBOX_ASK_H

#include "sandbox.h"

/* Asks the host; raises if the script must end. The answer lasts until the next question, or forget_answer(). */
text ask(sandbox *S, lua_State *L, int library, int function, size_t count);
/* The answer is not wanted any more. */
void forget_answer(sandbox *S);
/* Makes first..last of the stack the arguments of a question, numbers as texts; 0 if one is neither a string nor a
 * number. */
int collect(sandbox *S, lua_State *L, int first, int last);
/* Makes room for so many spans, which are more than there is room for. */
void room_for_spans(sandbox *S, lua_State *L, size_t count);

#endif

/* Functions are called with values, and answer one. */
#ifndef PERILUNE_SANDBOX_CALL_H
#define PERILUNE_SANDBOX_CALL_H

#include "sandbox.h"

/* Makes what calls are made with. */
void open_calls(sandbox *S);
/* Runs a function whose arguments these values are: RUN_... of run.h. Its answer lasts until the next call, as does an error,
 * which is VALUE_BYTES. */
int sandbox_call(sandbox *S, const sandbox_run *run, const value *given, size_t count, value *answer);

#endif

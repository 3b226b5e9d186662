/* Scripts are compiled and run. */
#ifndef PERILUNE_SANDBOX_RUN_H
#define PERILUNE_SANDBOX_RUN_H

#include "sandbox.h"

enum { RUN_REPLIED = 0, RUN_ENDED = 1, RUN_STOPPED = 2 };

/* A run begins, which ends by end_run(): what happens in between is in protected mode. */
void begin_run(sandbox *S, const sandbox_run *run);
/* RUN_...; `failed` is what the protected call has answered, and the error at the top becomes the reply, if it is one. The
 * stack is left as it is if nothing has failed. */
int end_run(sandbox *S, int failed, text *reply);
/* Appends the value at `index` to the reply; in protected mode. */
void write_reply_of(sandbox *S, lua_State *L, int index);
/* Makes what runs are made with. */
void open_runs(sandbox *S);
/* 1 and a reference, or 0 and why not, in memory that lasts until the next call. */
int sandbox_compile(sandbox *S, text source, const char *name, int *reference, text *error);
void sandbox_forget(sandbox *S, int reference);
/* Runs a script; RUN_... The reply lasts until the next call. */
int sandbox_do(sandbox *S, const sandbox_run *run, text *reply);

#endif

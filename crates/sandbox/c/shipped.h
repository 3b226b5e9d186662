/* Functions that programs send. */
#ifndef PERILUNE_SANDBOX_SHIPPED_H
#define PERILUNE_SANDBOX_SHIPPED_H

#include "sandbox.h"

/* Keeps the function that runs requests; the globals of scripts are at `globals`. */
void open_shipped(sandbox *S, int globals);
/* The reference of the function that runs a request, which is its argument, and returns the answer; LUA_NOREF if there is
 * no library of nodes. */
int sandbox_shipped(const sandbox *S);

#endif

/* What scripts see. */
#ifndef PERILUNE_SANDBOX_ENVIRONMENT_H
#define PERILUNE_SANDBOX_ENVIRONMENT_H

#include "sandbox.h"

/* Builds the globals; leaves nothing on the stack. */
void open_environment(sandbox *S);

#endif

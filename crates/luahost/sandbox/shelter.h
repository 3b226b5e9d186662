/* What scripts see. */
#ifndef PERILUNE_SANDBOX_SHELTER_H
#define PERILUNE_SANDBOX_SHELTER_H

#include "sandbox.h"

/* Builds the globals; leaves nothing on the stack. */
void open_shelter(sandbox *S);

#endif

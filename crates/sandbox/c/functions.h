/* Libraries that are tables of functions which the host answers. */
#ifndef PERILUNE_SANDBOX_FUNCTIONS_H
#define PERILUNE_SANDBOX_FUNCTIONS_H

#include "sandbox.h"

/* Adds the library to the table at `globals`. */
void open_functions(sandbox *S, const library *library, int number, int globals);

#endif

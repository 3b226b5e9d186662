/* math.random and math.randomseed. */
#ifndef PERILUNE_SANDBOX_RANDOM_H
#define PERILUNE_SANDBOX_RANDOM_H

#include "sandbox.h"

extern const luaL_Reg random_functions[];
void seed_random(sandbox *S, uint32_t seed);

#endif

/* math.random and math.randomseed. */
#ifndef PERILUNE_SANDBOX_CHANCE_H
#define PERILUNE_SANDBOX_CHANCE_H

#include "sandbox.h"

extern const luaL_Reg chance_functions[];
void seed_chance(sandbox *S, uint32_t seed);

#endif

/* string.find, match, gmatch and gsub. */
#ifndef PERILUNE_SANDBOX_PATTERNS_H
#define PERILUNE_SANDBOX_PATTERNS_H

#include "sandbox.h"

extern const luaL_Reg pattern_functions[];

#endif

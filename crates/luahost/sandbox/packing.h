/* The library `struct`. */
#ifndef PERILUNE_SANDBOX_PACKING_H
#define PERILUNE_SANDBOX_PACKING_H

#include "sandbox.h"

extern const luaL_Reg packing_functions[];

#endif

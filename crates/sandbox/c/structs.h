/* The library `struct`. */
#ifndef PERILUNE_SANDBOX_STRUCTS_H
#define PERILUNE_SANDBOX_STRUCTS_H

#include "sandbox.h"

extern const luaL_Reg struct_functions[];

#endif

/* Functions of `table` that write, and table.sort. */
#ifndef PERILUNE_SANDBOX_SORTING_H
#define PERILUNE_SANDBOX_SORTING_H

#include "sandbox.h"

extern const luaL_Reg table_functions[];

#endif

/* The library `cmsgpack`. */
#ifndef PERILUNE_SANDBOX_MSGPACK_H
#define PERILUNE_SANDBOX_MSGPACK_H

#include "sandbox.h"

extern const luaL_Reg msgpack_functions[];

#endif

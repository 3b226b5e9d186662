/* Text that becomes a function. */
#ifndef PERILUNE_SANDBOX_SOURCE_H
#define PERILUNE_SANDBOX_SOURCE_H

#include "sandbox.h"

enum { SOURCE_BYTES = 1 << 20 /* of one script or module */ };

/* Compiles text; what it must not have is an error. */
int load_text(lua_State *L, const char *bytes, size_t length, const char *name);

#endif

/* The library `cjson`. */
#ifndef PERILUNE_SANDBOX_JSON_H
#define PERILUNE_SANDBOX_JSON_H

#include "sandbox.h"

extern const luaL_Reg json_functions[];
/* Gives the options of the library their defaults: they last for one script. */
void reset_json(sandbox *S);

#endif

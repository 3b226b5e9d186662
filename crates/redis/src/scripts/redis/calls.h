/* The library `redis`, and `client` of LUA. */
#ifndef PERILUNE_SCRIPTS_CALLS_H
#define PERILUNE_SCRIPTS_CALLS_H

#include "redis.h"

extern const library redis_library;
/* What a script returns is a reply, and so is the error that ends it. */
extern const format redis_format;

#endif

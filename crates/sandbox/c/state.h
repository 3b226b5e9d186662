/* Makes sandboxes and frees them. */
#ifndef PERILUNE_SANDBOX_STATE_H
#define PERILUNE_SANDBOX_STATE_H

#include "sandbox.h"

/* A sandbox whose scripts may use `limit` bytes of the pool's, or NULL. What it offers lives as long as it does. */
sandbox *sandbox_new(size_t limit, pool *pool, const offer *offer);
void sandbox_free(sandbox *S);

#endif

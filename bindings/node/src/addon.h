/* The entry of the addon. */
#ifndef PERILUNE_NODE_ADDON_H
#define PERILUNE_NODE_ADDON_H

#include "state.h"

/* Adds the functions to `exports`. */
napi_value addon_init(napi_env env, napi_value exports);

#endif

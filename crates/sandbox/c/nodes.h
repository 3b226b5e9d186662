/* The library `perilune`. */
#ifndef PERILUNE_SANDBOX_NODES_H
#define PERILUNE_SANDBOX_NODES_H

#include "sandbox.h"

extern const library node_library;

#endif

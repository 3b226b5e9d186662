/*
 * The table of encoded nodes.
 *
 * The problem: programs make a JavaScript object for a node (a global with its first subscripts) and drop it,
 * 150,000 times in a second. If each owned memory of C, each would need a finalizer. So an object keeps what it
 * was made of and the number of an entry here, and the 4,096 entries are used in turn. An object whose entry
 * another one uses by now has its node encoded again (STATUS_STALE). Example: node 1 and node 4097 use one entry.
 */
#ifndef PERILUNE_NODE_PLACES_H
#define PERILUNE_NODE_PLACES_H

#include "state.h"

/* node(database, mode, name, ...subscripts): the number of an entry. */
napi_value place_new(napi_env env, napi_callback_info info);

/* text(node, ...subscripts): the node as ^name(1,"x"). */
napi_value place_text(napi_env env, napi_callback_info info);

/*
 * Encodes the descendant of `parent` with `count` of the environment's values, from `first` on, to `*node`, a
 * block of `*capacity` bytes that grows. A status.
 */
int encode(struct here *here, const perilune_node *parent, size_t first, size_t count, perilune_node **node,
           size_t *capacity);

#endif

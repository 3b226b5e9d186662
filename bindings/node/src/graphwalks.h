/*
 * Questions to graphs, and walks over them, for lib/graph.
 *
 * A walk is an external value of JavaScript, closed when it is collected, or before. Closing its database ends it: the next
 * step is the error CLOSED. A step that conflicts with another process is an error with which the transaction runs again.
 */
#ifndef PERILUNE_NODE_GRAPHWALKS_H
#define PERILUNE_NODE_GRAPHWALKS_H

#include "state.h"

/* graphAsk(node, graph, question, options, ...arguments): arrays of values, the first of the columns' names. */
napi_value graph_ask(napi_env env, napi_callback_info info);

/* graphWalk(node, graph, options, ...starts): a walk in the open transaction or in the snapshot that the node is of. */
napi_value graph_walk(napi_env env, napi_callback_info info);

/* graphNext(walk): [vertex, depth, cost] of the next path; null at the end. */
napi_value graph_next(napi_env env, napi_callback_info info);

/* graphPath(walk): the last path, its start and then for each edge [edge, source, type, target, weight, vertex]. */
napi_value graph_path(napi_env env, napi_callback_info info);

/* graphPrune(walk): 0; the last path is not followed. */
napi_value graph_prune(napi_env env, napi_callback_info info);

/*
 * graphLead(walk, leads): 1, or 0 where the last path is not to be followed. `leads` is a Float64Array of three numbers for
 * each edge by which it goes on: the edge, what it costs, its rank.
 */
napi_value graph_lead(napi_env env, napi_callback_info info);

/* graphWalkClose(walk): 0. */
napi_value graph_walk_close(napi_env env, napi_callback_info info);

#endif

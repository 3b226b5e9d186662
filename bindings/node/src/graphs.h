/*
 * Graphs: vertices, edges and their properties, for lib/graph. Questions and walks: graphwalks.h.
 *
 * A graph is an external value of JavaScript, freed when it is collected; it holds no session, so a closed database does not
 * matter to it. Each function has the graph's node in front, which says by which session, and then the graph. An id of a
 * vertex is a string or an integer: lib/graph has looked at it.
 */
#ifndef PERILUNE_NODE_GRAPHS_H
#define PERILUNE_NODE_GRAPHS_H

#include "state.h"

/* graphCreate(node, weight or null), graphOpen(node): the graph. */
napi_value graph_create(napi_env env, napi_callback_info info);
napi_value graph_open(napi_env env, napi_callback_info info);

/* graphAddVertex(node, graph, id, ...labels): 0. graphDeleteVertex(node, graph, id, withEdges): 0. */
napi_value graph_add_vertex(napi_env env, napi_callback_info info);
napi_value graph_delete_vertex(napi_env env, napi_callback_info info);

/* graphHasVertex(node, graph, id): 1 or 0. */
napi_value graph_has_vertex(napi_env env, napi_callback_info info);

/* graphLabel(node, graph, id, label, isSet): 0. graphIndex(node, graph, label, property, isKept): 0. */
napi_value graph_label(napi_env env, napi_callback_info info);
napi_value graph_index(napi_env env, napi_callback_info info);

/* graphGet(node, graph, isEdge, id, name): the value, or undefined. graphSet(node, graph, isEdge, id, name, value): 0. */
napi_value graph_get(napi_env env, napi_callback_info info);
napi_value graph_set(napi_env env, napi_callback_info info);

/* graphUnset(node, graph, isEdge, id, name): 0; there is no such property then. */
napi_value graph_unset(napi_env env, napi_callback_info info);

/* graphAddEdge(node, graph, source, type, target): its number. graphDeleteEdge(node, graph, edge): 0. */
napi_value graph_add_edge(napi_env env, napi_callback_info info);
napi_value graph_delete_edge(napi_env env, napi_callback_info info);

/* graphDegree(node, graph, id, direction, type or null): how many edges. */
napi_value graph_degree(napi_env env, napi_callback_info info);

/* The graph that argument 1 of a call is; NULL: it failed, and said so. */
perilune_graph *graph_at(struct call *call);

/* Reads the text that argument `index` is, called `what`; where it lies in the arena. False: it failed, and said so. */
bool graph_text(struct call *call, size_t index, const char *what, size_t *offset, size_t *size);

/* Reads the number of an edge. False: it failed, and said so. */
bool graph_edge(struct call *call, napi_value given, int64_t *edge);

#endif

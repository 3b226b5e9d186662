/* domCall(node, name, ...): a call on the document of XML below a node, for lib/dom. */
#ifndef PERILUNE_NODE_DOCUMENTS_H
#define PERILUNE_NODE_DOCUMENTS_H

#include "state.h"

/* Answers null for nothing, a value, the number of a node, or an array of either: which, the call's name tells. */
napi_value document_call(napi_env env, napi_callback_info info);

#endif

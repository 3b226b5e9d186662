/* modelsCall(node, name, ...): a call on the document, list or key/value store below a node, for lib/models. */
#ifndef PERILUNE_NODE_MODELS_H
#define PERILUNE_NODE_MODELS_H

#include "state.h"

/* Answers null for nothing, else a value: JSON is a string. */
napi_value models_call(napi_env env, napi_callback_info info);

#endif

/*
 * The addon: the table of its functions, and what is made and ended with an environment of Node (the main thread
 * or a worker).
 *
 * The functions know two modes of values. The native interface has typed ones; the flavours, which have the
 * interfaces of mg-dbx-napi, mg-dbx, NodeM and cache.node, have texts.
 */
#include "addon.h"

#include <string.h>

#include "batches.h"
#include "channels.h"
#include "cursors.h"
#include "data.h"
#include "databases.h"
#include "documents.h"
#include "graphs.h"
#include "graphwalks.h"
#include "locks.h"
#include "models.h"
#include "places.h"
#include "text.h"
#include "transactions.h"
#include "waiting.h"
#include "walk.h"

/* status(): of the call that answered undefined; 0: there was nothing. */
static napi_value status(napi_env env, napi_callback_info info)
{
    void *data = NULL;

    napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
    return integer(env, ((struct here *)data)->status);
}

/* message(): what it said. */
static napi_value message(napi_env env, napi_callback_info info)
{
    void *data = NULL;

    napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
    struct here *here = data;
    return text_out(here, here->message, strlen(here->message), false);
}

/* statusName(status), version(). */
static napi_value status_name(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];

    if (!call_begin(&call, env, info, few))
        return NULL;
    const char *name = perilune_status_name(integer_at(&call, 0, 0));
    return text_out(call.here, name, strlen(name), false);
}

static napi_value version(napi_env env, napi_callback_info info)
{
    void *data = NULL;

    napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
    return text_out(data, perilune_version(), strlen(perilune_version()), false);
}

/* nothing(): as `make bench-node` measures what a call costs. */
static napi_value nothing_at_all(napi_env env, napi_callback_info info)
{
    (void)env;
    (void)info;
    return NULL;
}

static const struct {
    const char *name;
    napi_callback function;
} FUNCTIONS[] = {
    {"status", status},
    {"message", message},
    {"statusName", status_name},
    {"version", version},
    {"nothing", nothing_at_all},
    {"open", database_open},
    {"openLater", database_open_later},
    {"close", database_close},
    {"snapshot", database_snapshot},
    {"path", database_path},
    {"latin1", database_latin1},
    {"stat", database_stat},
    {"checkpoint", database_checkpoint},
    {"verify", database_verify},
    {"node", place_new},
    {"nodeText", place_text},
    {"get", data_get},
    {"getBytes", data_get_bytes},
    {"set", data_set},
    {"data", data_defined},
    {"increment", data_increment},
    {"kill", data_kill},
    {"remove", data_remove},
    {"compareAndSet", data_compare_and_set},
    {"merge", data_merge},
    {"count", data_count},
    {"setMany", batch_set},
    {"getMany", batch_get},
    {"next", walk_next},
    {"previous", walk_previous},
    {"child", walk_child},
    {"name", walk_name},
    {"query", walk_query},
    {"foundSubscript", walk_subscript},
    {"foundValue", walk_value},
    {"foundData", walk_data},
    {"cursor", cursor_open},
    {"cursorChild", cursor_child},
    {"cursorNode", cursor_node},
    {"cursorBatch", cursor_batch},
    {"cursorClose", cursor_close},
    {"begin", transaction_begin},
    {"commit", transaction_commit},
    {"rollback", transaction_rollback},
    {"retry", transaction_retry},
    {"giveUp", transaction_give_up},
    {"validate", transaction_validate},
    {"level", transaction_level},
    {"restarts", transaction_restarts},
    {"lock", lock_take},
    {"unlock", lock_release},
    {"unlockAll", lock_release_all},
    {"lockCount", lock_count},
    {"post", channel_post},
    {"channelCreate", channel_create},
    {"channelRemove", channel_remove},
    {"domCall", document_call},
    {"modelsCall", models_call},
    {"graphCreate", graph_create},
    {"graphOpen", graph_open},
    {"graphAddVertex", graph_add_vertex},
    {"graphDeleteVertex", graph_delete_vertex},
    {"graphHasVertex", graph_has_vertex},
    {"graphLabel", graph_label},
    {"graphIndex", graph_index},
    {"graphGet", graph_get},
    {"graphSet", graph_set},
    {"graphUnset", graph_unset},
    {"graphAddEdge", graph_add_edge},
    {"graphDeleteEdge", graph_delete_edge},
    {"graphDegree", graph_degree},
    {"graphAsk", graph_ask},
    {"graphWalk", graph_walk},
    {"graphNext", graph_next},
    {"graphPath", graph_path},
    {"graphPrune", graph_prune},
    {"graphLead", graph_lead},
    {"graphWalkClose", graph_walk_close},
    {"lockLater", wait_lock},
    {"watch", wait_watch},
    {"receive", wait_receive},
    {"cancel", wait_cancel},
};

/* The environment ends: what is open is closed, whatever JavaScript still refers to. */
static void ended(void *data)
{
    waits_end(data);
    databases_end(data);
}

static void freed(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    here_free(data);
}

napi_value addon_init(napi_env env, napi_value exports)
{
    struct here *here = here_new(env);

    if (!here || napi_set_instance_data(env, here, freed, NULL) != napi_ok ||
        napi_add_env_cleanup_hook(env, ended, here) != napi_ok) {
        napi_throw_error(env, "OUT_OF_MEMORY", "perilune: no memory for an environment");
        return NULL;
    }
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++) {
        napi_value function = NULL;
        napi_create_function(env, FUNCTIONS[i].name, NAPI_AUTO_LENGTH, FUNCTIONS[i].function, here, &function);
        napi_set_named_property(env, exports, FUNCTIONS[i].name, function);
    }
    return exports;
}

NAPI_MODULE_INIT()
{
    return addon_init(env, exports);
}

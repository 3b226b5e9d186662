#include "graphs.h"

#include <stdlib.h>

#include "text.h"
#include "values.h"

/* The arguments of nearly every call. */
enum { GRAPH = 1, FIRST = 2 };

/* What the external value refers to. */
struct graph {
    uint64_t mark; /* tells it from other addons' externals */
    perilune_graph *at;
};

static const uint64_t MARK = UINT64_C(0x7065726967726170);
static const double SAFE = 9007199254740991.0;

static void collected(napi_env env, void *data, void *hint)
{
    struct graph *graph = data;

    (void)env;
    (void)hint;
    perilune_graph_close(graph->at);
    free(graph);
}

perilune_graph *graph_at(struct call *call)
{
    void *data = NULL;

    if (call->count <= GRAPH || napi_get_value_external(call->env, call->given[GRAPH], &data) != napi_ok ||
        ((struct graph *)data)->mark != MARK) {
        refuse(call->here, STATUS_TYPE, "this is no graph");
        return NULL;
    }
    return ((struct graph *)data)->at;
}

bool graph_text(struct call *call, size_t index, const char *what, size_t *offset, size_t *size)
{
    if (index < call->count && text_in(call->here, call->given[index], false, offset, size))
        return true;
    if (call->here->status != PERILUNE_OUT_OF_MEMORY)
        refuse(call->here, STATUS_TYPE, "%s is a string", what);
    return false;
}

/* As graph_text(), but null is none, which has the size SIZE_MAX. */
static bool optional_text(struct call *call, size_t index, const char *what, size_t *offset, size_t *size)
{
    napi_valuetype type = napi_undefined;

    *size = SIZE_MAX;
    if (index >= call->count || (napi_typeof(call->env, call->given[index], &type) == napi_ok && type == napi_null))
        return true;
    return graph_text(call, index, what, offset, size);
}

bool graph_edge(struct call *call, napi_value given, int64_t *edge)
{
    double number = 0;

    if (napi_get_value_double(call->env, given, &number) != napi_ok || !(number >= -SAFE && number <= SAFE) ||
        number != (double)(int64_t)number) {
        refuse(call->here, STATUS_TYPE, "an edge is its number");
        return false;
    }
    *edge = (int64_t)number;
    return true;
}

/* Begins a call whose argument FIRST is a vertex: its value lies at values[FIRST]. NULL: it failed, and said so. */
static perilune_graph *begin_at_vertex(struct call *call, napi_env env, napi_callback_info info, napi_value *few)
{
    if (!call_at_node(call, env, info, few))
        return NULL;
    call->here->status = PERILUNE_OK;
    perilune_graph *graph = graph_at(call);
    if (!graph)
        return NULL;
    if (call->count <= FIRST) {
        refuse(call->here, STATUS_TYPE, "there is no vertex");
        return NULL;
    }
    return subscript_in(call, call->given[FIRST], FIRST, FIRST) ? graph : NULL;
}

/* Ends a call that answers 0 when it is done. */
static napi_value done(struct call *call, int status)
{
    text_rest(call->here);
    if (status != PERILUNE_OK)
        return failed(call->here, call->database->session, status);
    return integer(call->env, 0);
}

static napi_value made(struct call *call, perilune_graph *at)
{
    napi_value result = NULL;
    struct graph *graph = calloc(1, sizeof *graph);

    if (!graph) {
        perilune_graph_close(at);
        return refuse(call->here, PERILUNE_OUT_OF_MEMORY, "no memory for a graph");
    }
    *graph = (struct graph){.mark = MARK, .at = at};
    if (napi_create_external(call->env, graph, collected, NULL, &result) != napi_ok)
        collected(call->env, graph, NULL);
    return result;
}

napi_value graph_create(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_graph *graph = NULL;
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_node(&call, env, info, few) || !optional_text(&call, 1, "the weight's property", &offset, &size))
        return NULL;
    bool has_weight = size != SIZE_MAX;
    int status = perilune_graph_create(call.database->session, call.place->node,
                                       has_weight ? call.here->arena + offset : NULL, has_weight ? size : 0, &graph);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    return made(&call, graph);
}

napi_value graph_open(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_graph *graph = NULL;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    int status = perilune_graph_open(call.database->session, call.place->node, &graph);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    return made(&call, graph);
}

napi_value graph_add_vertex(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    enum { LABELS = FIRST + 1 };
    perilune_graph *graph = begin_at_vertex(&call, env, info, few);

    if (!graph)
        return NULL;
    for (size_t i = LABELS; i < call.count; i++) {
        if (!value_in(&call, call.given[i], i, i))
            return NULL;
    }
    settle(&call, FIRST, call.count);
    const perilune_value *values = call.here->values;
    size_t count = call.count - LABELS;
    return done(&call, perilune_graph_add_vertex(call.database->session, graph, values + FIRST, values + LABELS, count));
}

napi_value graph_delete_vertex(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_graph *graph = begin_at_vertex(&call, env, info, few);

    if (!graph)
        return NULL;
    settle(&call, FIRST, FIRST + 1);
    int with_edges = integer_at(&call, FIRST + 1, 0);
    return done(&call, perilune_graph_delete_vertex(call.database->session, graph, call.here->values + FIRST, with_edges));
}

napi_value graph_has_vertex(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_graph *graph = begin_at_vertex(&call, env, info, few);

    if (!graph)
        return NULL;
    settle(&call, FIRST, FIRST + 1);
    int status = perilune_graph_has_vertex(call.database->session, graph, call.here->values + FIRST);
    text_rest(call.here);
    if (status < 0)
        return failed(call.here, call.database->session, status);
    return integer(env, status == PERILUNE_OK);
}

napi_value graph_label(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    size_t offset = 0;
    size_t size = 0;
    perilune_graph *graph = begin_at_vertex(&call, env, info, few);

    if (!graph || !graph_text(&call, FIRST + 1, "a label", &offset, &size))
        return NULL;
    settle(&call, FIRST, FIRST + 1);
    return done(&call, perilune_graph_set_label(call.database->session, graph, call.here->values + FIRST,
                                                call.here->arena + offset, size, integer_at(&call, FIRST + 2, 1)));
}

napi_value graph_index(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    size_t label = 0;
    size_t label_size = 0;
    size_t property = 0;
    size_t property_size = 0;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    perilune_graph *graph = graph_at(&call);
    if (!graph || !graph_text(&call, FIRST, "a label", &label, &label_size) ||
        !graph_text(&call, FIRST + 1, "a property", &property, &property_size))
        return NULL;
    const char *arena = call.here->arena;
    return done(&call, perilune_graph_index(call.database->session, graph, arena + label, label_size, arena + property,
                                            property_size, integer_at(&call, FIRST + 2, 1)));
}

/* The property that a call of graphGet, graphSet or graphUnset is about. */
struct property {
    perilune_graph *graph;
    bool is_edge;
    int64_t edge;
    size_t name;
    size_t size;
};

/* The arguments of those. */
enum { IS_EDGE = FIRST, OWNER, NAME, VALUE };

static bool begin_at_property(struct call *call, napi_env env, napi_callback_info info, napi_value *few,
                              struct property *property)
{
    if (!call_at_node(call, env, info, few) || !(property->graph = graph_at(call)))
        return false;
    call->here->status = PERILUNE_OK;
    if (call->count <= NAME) {
        refuse(call->here, STATUS_TYPE, "there is no property");
        return false;
    }
    property->is_edge = integer_at(call, IS_EDGE, 0) != 0;
    bool has_owner = property->is_edge ? graph_edge(call, call->given[OWNER], &property->edge)
                                       : subscript_in(call, call->given[OWNER], OWNER, OWNER);
    return has_owner && graph_text(call, NAME, "a property", &property->name, &property->size);
}

napi_value graph_get(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    struct property at;
    perilune_value value;

    if (!begin_at_property(&call, env, info, few, &at))
        return NULL;
    struct here *here = call.here;
    perilune_session *session = call.database->session;
    const char *name = here->arena + at.name;
    if (!at.is_edge)
        settle(&call, OWNER, OWNER + 1);
    int status = at.is_edge ? perilune_graph_get_edge(session, at.graph, at.edge, name, at.size, &value)
                            : perilune_graph_get(session, at.graph, here->values + OWNER, name, at.size, &value);
    text_rest(here);
    if (status == PERILUNE_NOT_FOUND)
        return nothing(here);
    if (status != PERILUNE_OK)
        return failed(here, session, status);
    return value_out(here, &value, MODE_TYPED, false);
}

/* Sets a property to values[VALUE]. */
static napi_value property_set(struct call *call, const struct property *at)
{
    struct here *here = call->here;
    perilune_session *session = call->database->session;
    const char *name = here->arena + at->name;
    const perilune_value *value = here->values + VALUE;

    if (!at->is_edge)
        settle(call, OWNER, OWNER + 1);
    return done(call, at->is_edge ? perilune_graph_set_edge(session, at->graph, at->edge, name, at->size, value)
                                  : perilune_graph_set(session, at->graph, here->values + OWNER, name, at->size, value));
}

napi_value graph_set(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    struct property at;

    if (!begin_at_property(&call, env, info, few, &at))
        return NULL;
    if (call.count <= VALUE)
        return refuse(call.here, STATUS_TYPE, "there is no value");
    if (!value_in(&call, call.given[VALUE], VALUE, VALUE))
        return NULL;
    settle(&call, VALUE, VALUE + 1);
    return property_set(&call, &at);
}

napi_value graph_unset(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    struct property at;

    if (!begin_at_property(&call, env, info, few, &at))
        return NULL;
    call.here->values[VALUE] = perilune_of_type(PERILUNE_ABSENT);
    return property_set(&call, &at);
}

napi_value graph_add_edge(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    int64_t edge = 0;
    size_t offset = 0;
    size_t size = 0;
    napi_value result = NULL;
    enum { TYPE = FIRST + 1, TARGET };
    perilune_graph *graph = begin_at_vertex(&call, env, info, few);

    if (!graph || !graph_text(&call, TYPE, "a type", &offset, &size))
        return NULL;
    if (call.count <= TARGET)
        return refuse(call.here, STATUS_TYPE, "there is no target");
    /* NB: the slot of the type holds no value. */
    if (!subscript_in(&call, call.given[TARGET], TARGET, TARGET))
        return NULL;
    settle(&call, FIRST, FIRST + 1);
    settle(&call, TARGET, TARGET + 1);
    const perilune_value *values = call.here->values;
    int status = perilune_graph_add_edge(call.database->session, graph, values + FIRST, call.here->arena + offset, size,
                                         values + TARGET, &edge);
    text_rest(call.here);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    napi_create_double(env, (double)edge, &result);
    return result;
}

napi_value graph_delete_edge(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    int64_t edge = 0;

    if (!call_at_node(&call, env, info, few))
        return NULL;
    perilune_graph *graph = graph_at(&call);
    if (!graph)
        return NULL;
    if (call.count <= FIRST)
        return refuse(call.here, STATUS_TYPE, "there is no edge");
    if (!graph_edge(&call, call.given[FIRST], &edge))
        return NULL;
    return done(&call, perilune_graph_delete_edge(call.database->session, graph, edge));
}

napi_value graph_degree(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    uint64_t degree = 0;
    size_t offset = 0;
    size_t size = 0;
    napi_value result = NULL;
    perilune_graph *graph = begin_at_vertex(&call, env, info, few);

    if (!graph || !optional_text(&call, FIRST + 2, "a type", &offset, &size))
        return NULL;
    settle(&call, FIRST, FIRST + 1);
    bool has_type = size != SIZE_MAX;
    int status = perilune_graph_degree(call.database->session, graph, call.here->values + FIRST,
                                       integer_at(&call, FIRST + 1, PERILUNE_BOTH),
                                       has_type ? call.here->arena + offset : NULL, has_type ? size : 0, &degree);
    text_rest(call.here);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    napi_create_double(env, (double)degree, &result);
    return result;
}

#include "graphwalks.h"

#include <stdlib.h>

#include "graphs.h"
#include "text.h"
#include "values.h"

/* What is behind the node and the graph. */
enum { FIRST = 2 };

/* One row, or with `row` SIZE_MAX the columns' names. */
static napi_value row_out(struct here *here, const perilune_sql_rows *rows, size_t row)
{
    napi_value list = NULL;
    size_t columns = perilune_sql_columns(rows);

    napi_create_array_with_length(here->env, columns, &list);
    for (size_t column = 0; column < columns; column++) {
        perilune_value value;
        if (row == SIZE_MAX)
            perilune_sql_column(rows, column, &value);
        else
            perilune_sql_value(rows, row, column, &value);
        napi_set_element(here->env, list, (uint32_t)column, value_out(here, &value, MODE_TYPED, false));
    }
    return list;
}

napi_value graph_ask(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_sql_rows *rows = NULL;
    size_t question = 0;
    size_t question_size = 0;
    size_t options = 0;
    size_t options_size = 0;
    napi_value result = NULL;
    enum { OPTIONS = FIRST + 1, ARGUMENTS };

    if (!call_at_node(&call, env, info, few))
        return NULL;
    struct here *here = call.here;
    here->status = PERILUNE_OK;
    perilune_graph *graph = graph_at(&call);
    if (!graph || !graph_text(&call, FIRST, "a question", &question, &question_size) ||
        !graph_text(&call, OPTIONS, "the options", &options, &options_size))
        return NULL;
    size_t count = call.count > ARGUMENTS ? call.count - ARGUMENTS : 0;
    for (size_t i = ARGUMENTS; i < call.count; i++) {
        if (!value_in(&call, call.given[i], i, i))
            return NULL;
    }
    settle(&call, ARGUMENTS, ARGUMENTS + count);
    int status = perilune_graph_ask(call.database->session, graph, here->arena + question, question_size,
                                    here->values + ARGUMENTS, count, here->arena + options, options_size, &rows);
    text_rest(here);
    if (status != PERILUNE_OK)
        return failed(here, call.database->session, status);
    size_t found = perilune_sql_count(rows);
    if (found >= UINT32_MAX || napi_create_array_with_length(env, found + 1, &result) != napi_ok) {
        perilune_sql_close(rows);
        return refuse(here, PERILUNE_OUT_OF_MEMORY, "no memory for %zu rows", found);
    }
    napi_set_element(env, result, 0, row_out(here, rows, SIZE_MAX));
    for (size_t row = 0; row < found; row++) {
        napi_handle_scope scope = NULL;
        napi_open_handle_scope(env, &scope);
        napi_set_element(env, result, (uint32_t)row + 1, row_out(here, rows, row));
        napi_close_handle_scope(env, scope);
    }
    perilune_sql_close(rows);
    return result;
}

/* What the external value refers to. */
struct walk {
    uint64_t mark; /* tells it from other addons' externals */
    perilune_graph_walk *at;
    struct database *database;
    double database_number;
};

static const uint64_t MARK = UINT64_C(0x706572697761666b);

static void collected(napi_env env, void *data, void *hint)
{
    struct walk *walk = data;

    (void)env;
    (void)hint;
    perilune_graph_walk_close(walk->at);
    free(walk);
}

napi_value graph_walk(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    size_t options = 0;
    size_t size = 0;
    napi_value result = NULL;
    enum { STARTS = FIRST + 1 };

    if (!call_at_node(&call, env, info, few))
        return NULL;
    struct here *here = call.here;
    here->status = PERILUNE_OK;
    perilune_graph *graph = graph_at(&call);
    if (!graph || !graph_text(&call, FIRST, "the options", &options, &size))
        return NULL;
    for (size_t i = STARTS; i < call.count; i++) {
        if (!subscript_in(&call, call.given[i], i, i))
            return NULL;
    }
    settle(&call, STARTS, call.count);
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return refuse(here, PERILUNE_OUT_OF_MEMORY, "no memory for a walk");
    *walk = (struct walk){.mark = MARK, .database = call.database, .database_number = call.database->number};
    int status = perilune_graph_walk_open(call.database->session, graph, here->values + STARTS, call.count - STARTS,
                                          here->arena + options, size, &walk->at);
    text_rest(here);
    if (status != PERILUNE_OK) {
        free(walk);
        return failed(here, call.database->session, status);
    }
    if (napi_create_external(env, walk, collected, NULL, &result) != napi_ok)
        collected(env, walk, NULL);
    return result;
}

/* The walk in front of a call; NULL: noted. */
static struct walk *walk_at(struct call *call, napi_env env, napi_callback_info info, napi_value *few)
{
    void *data = NULL;

    if (!call_begin(call, env, info, few))
        return NULL;
    if (call->count < 1 || napi_get_value_external(env, call->given[0], &data) != napi_ok ||
        ((struct walk *)data)->mark != MARK) {
        refuse(call->here, STATUS_TYPE, "this is no walk");
        return NULL;
    }
    struct walk *walk = data;
    if (!walk->at || walk->database->number != walk->database_number) {
        refuse(call->here, PERILUNE_CLOSED, "the walk was closed");
        return NULL;
    }
    call->database = walk->database;
    return walk;
}

napi_value graph_next(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_graph_step step;
    napi_value result = NULL;
    napi_value number = NULL;
    struct walk *walk = walk_at(&call, env, info, few);

    if (!walk)
        return NULL;
    int status = perilune_graph_walk_next(call.database->session, walk->at, &step);
    if (status == PERILUNE_NOT_FOUND) {
        napi_get_null(env, &result);
        return result;
    }
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    napi_create_array_with_length(env, 3, &result);
    napi_set_element(env, result, 0, value_out(call.here, &step.vertex, MODE_TYPED, false));
    napi_create_double(env, (double)step.depth, &number);
    napi_set_element(env, result, 1, number);
    napi_create_double(env, step.cost, &number);
    napi_set_element(env, result, 2, number);
    return result;
}

/* Appends what a step adds to its path. */
static void path_step(struct here *here, const perilune_graph_step *step, napi_value list, uint32_t *length)
{
    napi_value edge = NULL;
    const perilune_value *parts[] = {&step->source, &step->type, &step->target, &step->weight};

    if (step->edge != 0) {
        napi_create_double(here->env, (double)step->edge, &edge);
        napi_set_element(here->env, list, (*length)++, edge);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            napi_set_element(here->env, list, (*length)++, value_out(here, parts[i], MODE_TYPED, false));
    }
    napi_set_element(here->env, list, (*length)++, value_out(here, &step->vertex, MODE_TYPED, false));
}

napi_value graph_path(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    perilune_graph_step step;
    napi_value result = NULL;
    uint32_t length = 0;
    struct walk *walk = walk_at(&call, env, info, few);

    if (!walk)
        return NULL;
    napi_create_array(env, &result);
    for (uint64_t depth = 0;; depth++) {
        int status = perilune_graph_walk_step(walk->at, depth, &step);
        if (status == PERILUNE_NOT_FOUND)
            return result;
        if (status != PERILUNE_OK)
            return failed(call.here, call.database->session, status);
        napi_handle_scope scope = NULL;
        napi_open_handle_scope(env, &scope);
        path_step(call.here, &step, result, &length);
        napi_close_handle_scope(env, scope);
    }
}

napi_value graph_prune(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    struct walk *walk = walk_at(&call, env, info, few);

    if (!walk)
        return NULL;
    int status = perilune_graph_walk_prune(walk->at);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    return integer(env, 0);
}

napi_value graph_lead(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    napi_typedarray_type type;
    size_t size = 0;
    double *given = NULL;
    enum { PARTS = 3 };
    struct walk *walk = walk_at(&call, env, info, few);

    if (!walk)
        return NULL;
    if (call.count < 2 ||
        napi_get_typedarray_info(env, call.given[1], &type, &size, (void **)&given, NULL, NULL) != napi_ok ||
        type != napi_float64_array)
        return refuse(call.here, STATUS_TYPE, "leads are a Float64Array");
    size_t count = size / PARTS;
    perilune_graph_lead *leads = malloc((count + 1) * sizeof *leads);
    if (!leads)
        return refuse(call.here, PERILUNE_OUT_OF_MEMORY, "no memory for %zu edges", count);
    for (size_t i = 0; i < count; i++)
        leads[i] = (perilune_graph_lead){(int64_t)given[PARTS * i], given[PARTS * i + 1], given[PARTS * i + 2]};
    int status = perilune_graph_walk_lead(call.database->session, walk->at, leads, count);
    free(leads);
    if (status < 0)
        return failed(call.here, call.database->session, status);
    return integer(env, status == PERILUNE_OK);
}

napi_value graph_walk_close(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    void *data = NULL;

    if (!call_begin(&call, env, info, few))
        return NULL;
    if (call.count > 0 && napi_get_value_external(env, call.given[0], &data) == napi_ok &&
        ((struct walk *)data)->mark == MARK) {
        struct walk *walk = data;
        perilune_graph_walk_close(walk->at);
        walk->at = NULL;
    }
    return integer(env, 0);
}

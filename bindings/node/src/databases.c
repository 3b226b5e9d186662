#include "databases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "values.h"

/* Where a request to open has its arguments, counted from the path. */
enum { PATH, CREATE, READ_ONLY, DURABILITY, TIMEOUT, FILE_MODE, FLAGS, SHM_DIR, WAIT_LIMIT, MAX_SIZE };
enum { ANY_FILESYSTEM = 1, ACCEPT_LOST_COMMITS = 2 };

/* What is to be opened, in memory of its own, so that another thread can do it. */
struct opening {
    struct here *here;
    char *path;
    char *shm_dir;
    perilune_options options;
    perilune_db *db;
    perilune_session *session;
    uint64_t owner;
    int status;
    char message[MESSAGE_MAX];
    napi_async_work work;
    napi_ref callback;
};

/* A string argument as a string of C, or NULL. False, noted, when it is something else. */
static bool string_in(struct call *call, size_t index, char **string)
{
    size_t offset = 0;
    size_t size = 0;
    napi_valuetype type = napi_undefined;

    *string = NULL;
    if (index < call->count)
        napi_typeof(call->env, call->given[index], &type);
    if (type == napi_undefined || type == napi_null)
        return true;
    if (!text_in(call->here, call->given[index], false, &offset, &size)) {
        refuse(call->here, STATUS_TYPE, "a path is a string");
        return false;
    }
    if (memchr(call->here->arena + offset, 0, size)) {
        refuse(call->here, PERILUNE_INVALID, "a path has no zero byte");
        return false;
    }
    *string = malloc(size + 1);
    if (!*string) {
        refuse(call->here, PERILUNE_OUT_OF_MEMORY, "no memory for a path");
        return false;
    }
    memcpy(*string, call->here->arena + offset, size);
    (*string)[size] = 0;
    return true;
}

static void opening_free(struct opening *opening)
{
    free(opening->path);
    free(opening->shm_dir);
    free(opening);
}

/* Reads the arguments from `first` on. */
static struct opening *opening_in(struct call *call, size_t first)
{
    struct opening *opening = calloc(1, sizeof *opening);

    if (!opening) {
        refuse(call->here, PERILUNE_OUT_OF_MEMORY, "no memory to open a database");
        return NULL;
    }
    opening->here = call->here;
    perilune_options options = PERILUNE_OPTIONS_INIT;
    int flags = integer_at(call, first + FLAGS, 0);
    options.create = integer_at(call, first + CREATE, 1);
    options.read_only = integer_at(call, first + READ_ONLY, 0);
    options.durability = integer_at(call, first + DURABILITY, 0);
    options.timeout = number_at(call, first + TIMEOUT, 0);
    options.file_mode = (uint32_t)integer_at(call, first + FILE_MODE, 0);
    options.any_filesystem = flags & ANY_FILESYSTEM;
    options.accept_lost_commits = (flags & ACCEPT_LOST_COMMITS) != 0;
    options.wait_limit = number_at(call, first + WAIT_LIMIT, 0);
    double max_size = number_at(call, first + MAX_SIZE, 0);
    options.max_size = max_size > 0 && max_size < 9e18 ? (uint64_t)max_size : 0;
    opening->options = options;
    if (!string_in(call, first + PATH, &opening->path) || !string_in(call, first + SHM_DIR, &opening->shm_dir)) {
        opening_free(opening);
        return NULL;
    }
    opening->options.shm_dir = opening->shm_dir;
    return opening;
}

/* Opens; on any thread. */
static void opening_do(struct opening *opening)
{
    perilune_session *session = NULL;

    opening->status = perilune_open(opening->path, &opening->options, &opening->db);
    if (opening->status == PERILUNE_OK)
        opening->status = perilune_session_open(opening->db, &session);
    if (opening->status != PERILUNE_OK) {
        snprintf(opening->message, sizeof opening->message, "%s", perilune_message(NULL));
    } else {
        opening->status = perilune_lock_owner(session, &opening->owner);
        if (opening->status != PERILUNE_OK && opening->status != PERILUNE_READ_ONLY)
            snprintf(opening->message, sizeof opening->message, "%s", perilune_message(session));
        else
            opening->status = PERILUNE_OK;
    }
    if (opening->status != PERILUNE_OK) {
        perilune_session_close(session);
        perilune_close(opening->db);
        return;
    }
    opening->session = session;
}

/* The next free entry, or NULL, noted. */
static struct database *entry(struct here *here)
{
    for (int tries = 0; tries < DATABASES_MAX; tries++) {
        here->databases_given++;
        struct database *database = &here->databases[(uint64_t)here->databases_given % DATABASES_MAX];
        if (database->number == 0)
            return database;
    }
    refuse(here, PERILUNE_LIMIT_REACHED, "at most %d databases and snapshots may be open: close one", DATABASES_MAX);
    return NULL;
}

/* Gives what was opened an entry and answers its handle. */
static napi_value opening_done(struct opening *opening)
{
    struct here *here = opening->here;
    napi_value result = NULL;

    if (opening->status != PERILUNE_OK)
        return refuse(here, opening->status, "%s", opening->message);
    struct database *database = here->ended ? NULL : entry(here);
    if (!database) {
        perilune_session_close(opening->session);
        perilune_close(opening->db);
        return NULL;
    }
    *database = (struct database){.number = here->databases_given, .db = opening->db, .session = opening->session,
                                  .owner = opening->owner};
    napi_create_double(here->env, database->number, &result);
    return result;
}

napi_value database_open(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_begin(&call, env, info, few))
        return NULL;
    struct opening *opening = opening_in(&call, 0);
    if (!opening)
        return NULL;
    opening_do(opening);
    napi_value result = opening_done(opening);
    opening_free(opening);
    return result;
}

static void later_do(napi_env env, void *data)
{
    (void)env;
    opening_do(data);
}

static void later_done(napi_env env, napi_status status, void *data)
{
    struct opening *opening = data;
    napi_value callback = NULL;
    napi_value undefined = NULL;
    napi_value handle = NULL;

    if (status == napi_ok)
        handle = opening_done(opening);
    else if (opening->session) {
        perilune_session_close(opening->session);
        perilune_close(opening->db);
    }
    napi_get_undefined(env, &undefined);
    if (status == napi_ok && napi_get_reference_value(env, opening->callback, &callback) == napi_ok && callback) {
        napi_value given = handle ? handle : undefined;
        napi_call_function(env, undefined, callback, 1, &given, NULL);
    }
    napi_delete_reference(env, opening->callback);
    napi_delete_async_work(env, opening->work);
    opening_free(opening);
}

napi_value database_open_later(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    napi_value name = NULL;

    if (!call_begin(&call, env, info, few))
        return NULL;
    struct opening *opening = opening_in(&call, 1);
    if (!opening)
        return NULL;
    napi_create_string_latin1(env, "perilune.open", NAPI_AUTO_LENGTH, &name);
    if (napi_create_reference(env, call.given[0], 1, &opening->callback) != napi_ok ||
        napi_create_async_work(env, NULL, name, later_do, later_done, opening, &opening->work) != napi_ok ||
        napi_queue_async_work(env, opening->work) != napi_ok) {
        opening_free(opening);
        return refuse(call.here, STATUS_TYPE, "the callback of open is a function");
    }
    return integer(env, 1);
}

void database_end(struct database *database)
{
    if (!database->snapshot && database->session && database->owner != PERILUNE_OWNER_SESSION)
        perilune_unlock_all(database->session, database->owner);
    perilune_session_close(database->session);
    perilune_close(database->db);
    *database = (struct database){0};
}

void databases_end(struct here *here)
{
    here->ended = true;
    for (size_t i = 0; i < DATABASES_MAX; i++) {
        if (here->databases[i].number != 0)
            database_end(&here->databases[i]);
    }
}

napi_value database_close(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_begin(&call, env, info, few))
        return NULL;
    struct database *database = database_of(call.here, number_at(&call, 0, 0));
    if (database)
        database_end(database);
    return integer(env, database != NULL);
}

napi_value database_snapshot(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_session *session = NULL;
    napi_value result = NULL;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    struct database *database = entry(call.here);
    if (!database)
        return NULL;
    int status = perilune_snapshot_open(call.database->db, &session);
    if (status != PERILUNE_OK)
        return failed(call.here, NULL, status);
    *database = (struct database){.number = call.here->databases_given, .session = session,
                                  .latin1 = call.database->latin1, .snapshot = true};
    napi_create_double(env, database->number, &result);
    return result;
}

napi_value database_path(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    if (!call.database->db)
        return nothing(call.here);
    const char *path = perilune_path(call.database->db);
    return text_out(call.here, path, strlen(path), false);
}

napi_value database_latin1(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];

    if (!call_at_database(&call, env, info, few))
        return NULL;
    call.database->latin1 = integer_at(&call, 1, 0) != 0;
    return integer(env, 1);
}

napi_value database_stat(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_value json = perilune_absent();

    if (!call_at_database(&call, env, info, few))
        return NULL;
    int status = perilune_stat(call.database->session, &json);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    return value_text(call.here, &json, false);
}

napi_value database_checkpoint(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    int taken = 0;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    int status = perilune_checkpoint(call.database->session, &taken);
    return status == PERILUNE_OK ? integer(env, taken) : failed(call.here, call.database->session, status);
}

napi_value database_verify(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    perilune_value report = perilune_absent();

    if (!call_at_database(&call, env, info, few))
        return NULL;
    int status = perilune_verify(call.database->session, NULL, &report);
    if (status != PERILUNE_OK)
        return failed(call.here, call.database->session, status);
    return value_text(call.here, &report, false);
}

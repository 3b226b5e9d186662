/*
 * What the addon keeps: one `struct here` for each environment of Node, the main thread's and each worker's.
 *
 * Nothing is shared between environments but the library itself, so the addon may be loaded by any number of
 * threads. An environment has one session for each database that it opens, and a table of encoded nodes.
 *
 * Handles are numbers that are given once. Handle n uses entry n modulo the table's size, and the entry holds n: a
 * handle whose entry has another number is stale. So no object of JavaScript owns anything that must be closed.
 *
 * A function that fails answers `undefined` and leaves its status here; JavaScript asks for it and throws. So the
 * fast path has neither exceptions nor scopes.
 */
#ifndef PERILUNE_NODE_STATE_H
#define PERILUNE_NODE_STATE_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perilune.h"

enum {
    DATABASES_MAX = 64,  /* open at once in one environment */
    PLACES_MAX = 4096,   /* encoded nodes kept; what is asked for again is encoded again */
    ARGUMENTS_MAX = 262, /* a handle, 255 subscripts, what a call takes besides */
    ARGUMENTS_FEW = 8,   /* what nearly every call has at most */
    MESSAGE_MAX = 512,
    ARENA_FIRST = 64 * 1024,
    ARENA_KEPT = 1024 * 1024
};

/* Statuses of ours, beside those of perilune.h. */
enum {
    STATUS_TYPE = 1001, /* an argument is of a type that it may not have: a TypeError */
    STATUS_STALE = 1002 /* the node's entry was given to another: encode it again */
};

/* How the values of a database look from JavaScript. */
enum {
    MODE_TEXT = 0, /* the flavours: all results are strings, empty subscripts are seeds only */
    MODE_TYPED = 1 /* the native interface: numbers, booleans, null; "" is a subscript as others */
};

/* A database that this environment has open, or a snapshot of one. */
struct database {
    double number; /* of its handle; 0: free */
    perilune_db *db;
    perilune_session *session;
    uint64_t owner; /* of its locks: shared with the threads that wait for one */
    bool latin1;    /* strings are bytes */
    bool snapshot;
};

/* An encoded node. */
struct place {
    double number; /* of its handle; 0: free */
    struct database *database;
    double database_number; /* of the database's handle when the node was encoded: another one may use its entry now */
    perilune_node *node;
    size_t capacity;
    int mode;
};

/* What the last step of a walk has found, until the session's next call. */
struct found {
    perilune_node *node; /* room for any node */
    perilune_value value;
    int32_t data;
};

struct here {
    napi_env env;
    struct database databases[DATABASES_MAX];
    struct place places[PLACES_MAX];
    double databases_given;
    double places_given;
    struct found found;
    char *arena; /* the strings of one call */
    size_t arena_size;
    size_t arena_used;
    int status;
    char message[MESSAGE_MAX];
    napi_value given[ARGUMENTS_MAX];
    perilune_value values[ARGUMENTS_MAX];
    bool ended;              /* its databases were closed for good */
    struct waiting *waiting; /* threads that wait for this environment */
};

/* A call under way: its arguments, and what the handle in front of them names. */
struct call {
    struct here *here;
    napi_env env;
    size_t count;
    napi_value *given;
    struct database *database;
    struct place *place;
};

/* Makes what an environment needs; NULL when there is no memory. */
struct here *here_new(napi_env env);

/* Gives back everything but open databases. */
void here_free(struct here *here);

/* Notes a failure of ours; answers NULL, which is `undefined`. */
napi_value refuse(struct here *here, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes a failure of the library with the text that `session`, or with NULL this thread, has for it. */
napi_value failed(struct here *here, const perilune_session *session, int status);

/* Notes that there is nothing, which is no failure; answers `undefined`. */
napi_value nothing(struct here *here);

/*
 * Begins a call: gets the arguments, and what its handle names. False: it failed, and said so.
 * `few` is room for ARGUMENTS_FEW; more arguments go to the environment's own room.
 */
bool call_begin(struct call *call, napi_env env, napi_callback_info info, napi_value *few);

/* Begins a call whose first argument is a node's handle; false if that is stale, too. */
bool call_at_node(struct call *call, napi_env env, napi_callback_info info, napi_value *few);

/* Begins a call whose first argument is a database's handle; false if that is closed, too. */
bool call_at_database(struct call *call, napi_env env, napi_callback_info info, napi_value *few);

/* The database whose handle is `number`; NULL when it is not open any more. */
struct database *database_of(struct here *here, double number);

/* The node whose handle argument `index` is; NULL: it failed, and said so. */
struct place *place_at(struct call *call, size_t index);

/* An argument that is a small integer, a truth or a number; the default when it is none. */
int32_t integer_at(const struct call *call, size_t index, int32_t otherwise);
double number_at(const struct call *call, size_t index, double otherwise);

/* A number for JavaScript. */
napi_value integer(napi_env env, int32_t number);

#endif

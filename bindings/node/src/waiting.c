#include "waiting.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "locks.h"
#include "places.h"
#include "text.h"
#include "values.h"

enum kind { LOCK, WATCH, RECEIVE };

/* Seconds of a slice of a wait that keeps no place in a queue. */
static const double SLICE = 0.2;

struct waiting {
    uint64_t mark; /* tells it from other externals */
    enum kind kind;
    atomic_int users; /* the thread, the function that calls back, the external value, answers under way */
    atomic_bool stop;
    struct here *here; /* used by its own thread only; NULL once that has ended */
    struct waiting *next;
    double database_number;
    perilune_session *session;
    uint64_t owner;
    uint64_t watch;
    perilune_node *node;
    char *channel;
    size_t channel_size;
    double after; /* less than 0: take the oldest */
    double seconds;
    int mode; /* of a lock */
    pthread_mutex_t mutex; /* of the two below */
    bool gone;             /* Node has ended `call` with the environment */
    napi_threadsafe_function call;
};

static const uint64_t MARK = UINT64_C(0x7065726977616974);

/* What a thread hands to the event loop. */
struct answer {
    struct waiting *waiting;
    int status;
    double number;
    double missed;
    char *body;
    size_t size;
    char message[MESSAGE_MAX];
};

static void drop(struct waiting *waiting)
{
    if (atomic_fetch_sub(&waiting->users, 1) > 1)
        return;
    perilune_session_close(waiting->session);
    pthread_mutex_destroy(&waiting->mutex);
    free(waiting->node);
    free(waiting->channel);
    free(waiting);
}

/* Hands an answer over; false when nobody will hear of it. */
static bool say(struct waiting *waiting, int status, const perilune_received *received)
{
    struct answer *answer = calloc(1, sizeof *answer);

    if (!answer)
        return false;
    answer->waiting = waiting;
    answer->status = status;
    if (status < 0)
        snprintf(answer->message, sizeof answer->message, "%s", perilune_message(waiting->session));
    if (received) {
        answer->number = (double)received->number;
        answer->missed = (double)received->missed;
        answer->size = received->body_size;
        answer->body = malloc(answer->size + 1);
        if (answer->body)
            memcpy(answer->body, received->body, answer->size);
        else
            answer->status = PERILUNE_OUT_OF_MEMORY;
    }
    atomic_fetch_add(&waiting->users, 1);
    pthread_mutex_lock(&waiting->mutex);
    bool said = !waiting->gone && napi_call_threadsafe_function(waiting->call, answer, napi_tsfn_blocking) == napi_ok;
    pthread_mutex_unlock(&waiting->mutex);
    if (said)
        return true;
    free(answer->body);
    free(answer);
    drop(waiting);
    return false;
}

/* One slice; PERILUNE_TIMED_OUT when nothing has come. */
static int wait_slice(struct waiting *waiting, double slice, perilune_received *received)
{
    switch (waiting->kind) {
    case LOCK:
        return perilune_lock(waiting->session, waiting->owner, waiting->node, waiting->mode, slice);
    case WATCH:
        return perilune_wait(waiting->session, waiting->watch, slice);
    default:
        if (waiting->after < 0)
            return perilune_receive(waiting->session, waiting->channel, waiting->channel_size, slice, received);
        return perilune_follow(waiting->session, waiting->channel, waiting->channel_size, (uint64_t)waiting->after, slice,
                               received);
    }
}

static void *run(void *data)
{
    struct waiting *waiting = data;
    double slice = waiting->kind == LOCK ? LOCK_SLICE : SLICE;
    double left = waiting->seconds;
    perilune_received received = {0};
    bool heard = true;

    prctl(PR_SET_NAME, "perilune-wait");
    while (heard && !atomic_load(&waiting->stop)) {
        bool last = left >= 0 && left <= slice;
        int status = wait_slice(waiting, last ? left : slice, &received);
        if (status == PERILUNE_TIMED_OUT && !last) {
            left -= left >= 0 ? slice : 0;
            continue;
        }
        bool touched = waiting->kind == WATCH && status == PERILUNE_OK;
        heard = say(waiting, status, waiting->kind == RECEIVE && status == PERILUNE_OK ? &received : NULL);
        if (!heard && waiting->kind == LOCK && status == PERILUNE_OK)
            perilune_unlock(waiting->session, waiting->owner, waiting->node);
        left = waiting->seconds;
        if (!touched)
            break;
    }
    pthread_mutex_lock(&waiting->mutex);
    if (heard && !waiting->gone)
        napi_release_threadsafe_function(waiting->call, napi_tsfn_release);
    pthread_mutex_unlock(&waiting->mutex);
    drop(waiting);
    return NULL;
}

/* [body, number, missed]. */
static napi_value message_out(napi_env env, const struct answer *answer)
{
    napi_value list = NULL;
    napi_value part = NULL;

    napi_create_array_with_length(env, 3, &list);
    napi_create_buffer_copy(env, answer->size, answer->body, NULL, &part);
    napi_set_element(env, list, 0, part);
    napi_create_double(env, answer->number, &part);
    napi_set_element(env, list, 1, part);
    napi_create_double(env, answer->missed, &part);
    napi_set_element(env, list, 2, part);
    return list;
}

/* Calls back; on the thread of the environment, or with `env` NULL when that is ending. */
static void call_back(napi_env env, napi_value callback, void *context, void *data)
{
    struct answer *answer = data;
    struct waiting *waiting = context;
    napi_value undefined = NULL;
    napi_value given[2] = {NULL, NULL};
    bool is_open = env && waiting->here && database_of(waiting->here, waiting->database_number);

    if ((!is_open || atomic_load(&waiting->stop)) && waiting->kind == LOCK && answer->status == PERILUNE_OK) {
        perilune_unlock(waiting->session, waiting->owner, waiting->node);
        answer->status = PERILUNE_CLOSED;
        snprintf(answer->message, sizeof answer->message, "the wait was cancelled, or the database closed");
    }
    if (env && callback) {
        napi_get_undefined(env, &undefined);
        given[0] = integer(env, answer->status);
        if (answer->status < 0)
            napi_create_string_utf8(env, answer->message, NAPI_AUTO_LENGTH, &given[1]);
        else
            given[1] = answer->body ? message_out(env, answer) : integer(env, answer->status == PERILUNE_OK);
        napi_call_function(env, undefined, callback, 2, given, NULL);
    }
    free(answer->body);
    free(answer);
    drop(waiting);
}

static void forget(struct waiting *waiting)
{
    if (!waiting->here)
        return;
    for (struct waiting **at = &waiting->here->waiting; *at; at = &(*at)->next) {
        if (*at == waiting) {
            *at = waiting->next;
            break;
        }
    }
    waiting->here = NULL;
}

/*
 * The function that calls back ends: all threads have released it, or its environment ends. NB: Node frees it after this
 * call even while threads still have it, so they look before they use it.
 */
static void finished(napi_env env, void *data, void *hint)
{
    struct waiting *waiting = data;

    (void)env;
    (void)hint;
    pthread_mutex_lock(&waiting->mutex);
    waiting->gone = true;
    pthread_mutex_unlock(&waiting->mutex);
    atomic_store(&waiting->stop, true);
    forget(waiting);
    drop(waiting);
}

static void collected(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    drop(data);
}

/* A wait of `call`'s database, without a thread yet; NULL: noted. */
static struct waiting *waiting_new(struct call *call, enum kind kind)
{
    struct waiting *waiting = calloc(1, sizeof *waiting);

    if (!waiting) {
        refuse(call->here, PERILUNE_OUT_OF_MEMORY, "no memory to wait");
        return NULL;
    }
    *waiting = (struct waiting){.mark = MARK, .kind = kind, .here = call->here, .owner = call->database->owner,
                                .database_number = call->database->number, .after = -1, .seconds = -1};
    atomic_init(&waiting->users, 1);
    pthread_mutex_init(&waiting->mutex, NULL);
    int status = perilune_session_open(call->database->db, &waiting->session);
    if (status == PERILUNE_OK)
        return waiting;
    failed(call->here, NULL, status);
    drop(waiting);
    return NULL;
}

/* Starts a thread that no signal of the program's interrupts: its handlers run in its own threads. Those that a thread
 * causes itself stay open, so that crash reporters work. */
static int start_without_signals(const pthread_attr_t *attributes, struct waiting *waiting)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, attributes, run, waiting);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Starts the thread; answers the external value that cancels it. */
static napi_value start(struct call *call, struct waiting *waiting)
{
    napi_env env = call->env;
    napi_value name = NULL;
    napi_value result = NULL;
    pthread_attr_t attributes;
    enum { STACK = 512 * 1024 };

    napi_create_string_latin1(env, "perilune.wait", NAPI_AUTO_LENGTH, &name);
    if (call->count < 2 || napi_create_threadsafe_function(env, call->given[1], NULL, name, 0, 1, waiting, finished,
                                                           waiting, call_back, &waiting->call) != napi_ok) {
        drop(waiting);
        return refuse(call->here, STATUS_TYPE, "the callback is a function");
    }
    waiting->next = call->here->waiting;
    call->here->waiting = waiting;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    atomic_fetch_add(&waiting->users, 1);
    int error = start_without_signals(&attributes, waiting);
    pthread_attr_destroy(&attributes);
    if (error) {
        napi_release_threadsafe_function(waiting->call, napi_tsfn_release);
        drop(waiting);
        return refuse(call->here, PERILUNE_LIMIT_REACHED, "no thread to wait: %s", strerror(error));
    }
    atomic_fetch_add(&waiting->users, 1);
    if (napi_create_external(env, waiting, collected, NULL, &result) != napi_ok)
        drop(waiting);
    return result;
}

/* The node of the arguments from `first` to `end`. */
static bool node_in(struct call *call, struct waiting *waiting, size_t first, size_t end)
{
    size_t capacity = 0;
    int status = PERILUNE_OK;

    if (!subscripts_in(call, first, end, call->place->mode == MODE_TYPED))
        return false;
    status = encode(call->here, call->place->node, first, end > first ? end - first : 0, &waiting->node, &capacity);
    if (status != PERILUNE_OK)
        failed(call->here, NULL, status);
    return status == PERILUNE_OK;
}

napi_value wait_lock(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    enum { FIRST = 3 };

    if (!call_at_node(&call, env, info, few))
        return NULL;
    if (call.count <= FIRST)
        return refuse(call.here, STATUS_TYPE, "the last argument of lock is the number of seconds to wait");
    struct waiting *waiting = waiting_new(&call, LOCK);
    if (!waiting)
        return NULL;
    waiting->mode = integer_at(&call, 2, 0);
    waiting->seconds = number_at(&call, call.count - 1, -1);
    if (node_in(&call, waiting, FIRST, call.count - 1))
        return start(&call, waiting);
    drop(waiting);
    return NULL;
}

napi_value wait_watch(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    enum { FIRST = 4 };

    if (!call_at_node(&call, env, info, few))
        return NULL;
    struct waiting *waiting = waiting_new(&call, WATCH);
    if (!waiting)
        return NULL;
    waiting->seconds = number_at(&call, 3, -1);
    if (!node_in(&call, waiting, FIRST, call.count)) {
        drop(waiting);
        return NULL;
    }
    /* Here, so that what is written after this call returns is noticed. */
    perilune_watch_request request = {.node = waiting->node, .scope = integer_at(&call, 2, PERILUNE_WATCH_SUBTREE)};
    int status = perilune_watch(waiting->session, &request, 1, &waiting->watch);
    if (status == PERILUNE_OK)
        return start(&call, waiting);
    failed(call.here, waiting->session, status);
    drop(waiting);
    return NULL;
}

napi_value wait_receive(napi_env env, napi_callback_info info)
{
    struct call call = {0};
    napi_value few[ARGUMENTS_FEW];
    size_t offset = 0;
    size_t size = 0;

    if (!call_at_database(&call, env, info, few))
        return NULL;
    if (call.count < 3 || !text_in(call.here, call.given[2], false, &offset, &size))
        return refuse(call.here, STATUS_TYPE, "the name of a channel is a string");
    struct waiting *waiting = waiting_new(&call, RECEIVE);
    if (!waiting)
        return NULL;
    waiting->channel = malloc(size + 1);
    if (!waiting->channel) {
        drop(waiting);
        return refuse(call.here, PERILUNE_OUT_OF_MEMORY, "no memory for a name");
    }
    memcpy(waiting->channel, call.here->arena + offset, size);
    waiting->channel_size = size;
    waiting->after = number_at(&call, 3, -1);
    waiting->seconds = number_at(&call, 4, -1);
    return start(&call, waiting);
}

napi_value wait_cancel(napi_env env, napi_callback_info info)
{
    struct call call;
    napi_value few[ARGUMENTS_FEW];
    void *data = NULL;

    if (!call_begin(&call, env, info, few))
        return NULL;
    if (call.count < 1 || napi_get_value_external(env, call.given[0], &data) != napi_ok ||
        ((struct waiting *)data)->mark != MARK)
        return refuse(call.here, STATUS_TYPE, "this is no wait");
    struct waiting *waiting = data;
    if (waiting->here)
        napi_unref_threadsafe_function(env, waiting->call);
    atomic_store(&waiting->stop, true);
    return integer(env, 1);
}

void waits_end(struct here *here)
{
    while (here->waiting) {
        struct waiting *waiting = here->waiting;
        here->waiting = waiting->next;
        waiting->here = NULL;
        atomic_store(&waiting->stop, true);
    }
}

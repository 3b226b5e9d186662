/*
 * What a call costs: build, get, set, count up, step, on private names, so that the interface shows more
 * than the tree. CPU time of the thread, minimum of five runs.
 *
 *     cargo build --release -p perilune-capi
 *     cc -O2 -I include crates/capi/benches/calls.c target/release/libperilune_capi.a -lpthread -ldl -lm -lrt -o calls
 *     ./calls /tmp/calls.db
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perilune.h"

enum { CALLS = 2000000, RUNS = 5, CHILDREN = 100 };

typedef union place {
    perilune_node node;
    char bytes[PERILUNE_NODE_BYTES_MAX];
} place;

static double nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A call that fails would be fast for the wrong reason. */
static void good(int status)
{
    if (status < 0) {
        fprintf(stderr, "%s\n", perilune_status_name(status));
        exit(1);
    }
}

#define MEASURE(name, call)                                        \
    do {                                                           \
        double least = 1e18;                                       \
        for (int run = 0; run < RUNS; run++) {                     \
            double begin = nanoseconds();                          \
            for (int64_t i = 0; i < CALLS; i++)                    \
                good(call);                                        \
            double each = (nanoseconds() - begin) / CALLS;         \
            if (each < least)                                      \
                least = each;                                      \
        }                                                          \
        printf("%-24s %6.1f ns\n", name, least);                   \
    } while (0)

static void cursors(perilune_session *session, const perilune_node *top)
{
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value subscript;
    perilune_value value;
    perilune_entry entries[64];
    size_t count = 0;

    options.flags = PERILUNE_CURSOR_VALUES;
    for (int batched = 0; batched <= 1; batched++) {
        double begin = nanoseconds();
        uint64_t steps = 0;
        for (int round = 0; round < CALLS / CHILDREN; round++) {
            perilune_cursor *cursor = NULL;
            good(perilune_cursor_open(session, top, &options, &cursor));
            if (batched)
                while (perilune_cursor_fetch(cursor, entries, 64, &count) == PERILUNE_OK)
                    steps += count;
            else
                while (perilune_cursor_next(cursor, &subscript, &value, NULL) == PERILUNE_OK)
                    steps++;
            perilune_cursor_close(cursor);
        }
        printf("%-24s %6.1f ns\n", batched ? "cursor_fetch, a step" : "cursor_next",
               (nanoseconds() - begin) / (double)steps);
    }
}

int main(int argc, char **argv)
{
    perilune_db *db = NULL;
    perilune_session *session = NULL;
    place top;
    place child;
    perilune_value one = perilune_int(1);
    perilune_value value;

    good(perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    good(perilune_session_open(db, &session));
    good(perilune_node_root(&top, sizeof top, "step", 4, NULL));
    for (int64_t i = 0; i < CHILDREN; i++)
        good(perilune_set_child_int(session, &top.node, i, &one));
    MEASURE("depth (nothing)", (int)perilune_depth(session));
    MEASURE("node_child_str", perilune_node_child_str(&child, sizeof child, &top.node, "name", 4, NULL));
    MEASURE("node_child_int", perilune_node_child_int(&child, sizeof child, &top.node, i % CHILDREN, NULL));
    MEASURE("get", perilune_get(session, &child.node, &value));
    MEASURE("get_child_int", perilune_get_child_int(session, &top.node, i % CHILDREN, &value));
    MEASURE("get_child_str, none", perilune_get_child_str(session, &top.node, "name", 4, &value));
    MEASURE("set_child_int", perilune_set_child_int(session, &top.node, i % CHILDREN, &one));
    MEASURE("incr_child_int", perilune_incr_child_int(session, &top.node, i % CHILDREN, NULL, &value));
    cursors(session, &top.node);
    perilune_session_close(session);
    perilune_close(db);
    return 0;
}

/*
 * Threads: one session each, on one database; a transaction that all of them fight over; a lock that
 * starts them together; nodes shared by all.
 *
 *     ./threads /tmp/threads.db
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "expect.h"

enum { THREADS = 4, ROUNDS = 250 };

/* Built once, read by every thread. */
static place counter;
static place total;
static place trigger;
static perilune_db *db;

static int add_both(perilune_session *session, void *context)
{
    perilune_value value;
    int status = perilune_get(session, &total.node, &value);

    (void)context;
    if (status < 0)
        return status;
    value = perilune_int((status == PERILUNE_NOT_FOUND ? 0 : value.as.i) + 2);
    return perilune_set(session, &total.node, &value);
}

static void *work(void *number)
{
    perilune_session *session = NULL;
    place own;

    CHECK(NULL, perilune_session_open(db, &session));
    CHECK(NULL, perilune_node_child_int(&own, sizeof own, &trigger.node, *(int *)number, NULL));
    /* Sleeps until the lock on the parent is released. */
    CHECK(session, perilune_lock(session, PERILUNE_OWNER_SESSION, &own.node,
                                 PERILUNE_LOCK_EXCLUSIVE, PERILUNE_FOREVER));
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(session, perilune_incr(session, &counter.node, NULL, NULL));
        EXPECT(perilune_transaction(session, NULL, add_both, NULL) == PERILUNE_OK);
    }
    perilune_session_close(session);
    return NULL;
}

int main(int argc, char **argv)
{
    perilune_session *session = NULL;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    perilune_value value;

    CHECK(NULL, perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    CHECK(NULL, perilune_session_open(db, &session));
    CHECK(session, perilune_kill(session, at(&counter, "^counter")));
    CHECK(session, perilune_kill(session, at(&total, "^total")));
    CHECK(session, perilune_lock(session, PERILUNE_OWNER_SESSION, at(&trigger, "^trigger"),
                                 PERILUNE_LOCK_EXCLUSIVE, 0));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        EXPECT(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    EXPECT(perilune_get(session, &counter.node, &value) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_unlock(session, PERILUNE_OWNER_SESSION, &trigger.node) == PERILUNE_OK);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    CHECK(session, perilune_get(session, &counter.node, &value));
    EXPECT(value.as.i == THREADS * ROUNDS);
    CHECK(session, perilune_get(session, &total.node, &value));
    EXPECT(value.as.i == 2 * THREADS * ROUNDS);
    perilune_session_close(session);
    perilune_close(db);
    puts("threads: good");
    return 0;
}

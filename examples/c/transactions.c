/*
 * Transactions: nested levels, restarts, the pieces that a language with its own exceptions uses,
 * and what errors look like.
 *
 *     ./transactions /tmp/transactions.db
 */
#include "expect.h"

static int inner(perilune_session *session, void *context)
{
    const perilune_node *node = context;
    perilune_value value = perilune_string("inner", 5);

    EXPECT(perilune_depth(session) == 2);
    CHECK(session, perilune_set(session, node, &value));
    return PERILUNE_USER - 7;
}

static int outer(perilune_session *session, void *context)
{
    const perilune_node *node = context;
    perilune_value value = perilune_string("outer", 5);

    EXPECT(perilune_depth(session) == 1);
    CHECK(session, perilune_set(session, node, &value));
    /* The inner level fails alone, with its own code. */
    EXPECT(perilune_transaction(session, NULL, inner, context) == PERILUNE_USER - 7);
    CHECK(session, perilune_get(session, node, &value));
    EXPECT(same_text(&value, PERILUNE_STRING, "outer"));
    /* Restart once. */
    return perilune_restarts(session) == 0 ? PERILUNE_RESTART : PERILUNE_OK;
}

static int restart_inside(perilune_session *session, void *context)
{
    int *runs = context;

    (void)session;
    return ++*runs < 3 ? PERILUNE_RESTART : PERILUNE_OK;
}

static int swallow(perilune_session *session, void *context)
{
    (void)perilune_transaction(session, NULL, restart_inside, context);
    return PERILUNE_OK;
}

static int forget_levels(perilune_session *session, void *context)
{
    perilune_value value = perilune_int(1);

    CHECK(session, perilune_begin(session, NULL));
    CHECK(session, perilune_set(session, context, &value));
    return PERILUNE_OK;
}

static int end_too_many(perilune_session *session, void *context)
{
    (void)context;
    return perilune_rollback(session);
}

static int always_restart(perilune_session *session, void *context)
{
    (void)session;
    (void)context;
    return PERILUNE_RESTART;
}

/* Writes more than the first, cheap try can hold, opens a level and takes a lock. */
static int outgrow(perilune_session *session, void *runs)
{
    place node;
    char name[32];
    perilune_value value;
    int i;

    ++*(int *)runs;
    CHECK(session, perilune_get(session, at(&node, "^few"), &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == 0);
    for (i = 0; i < 100; i++) {
        value = perilune_int(i);
        snprintf(name, sizeof name, "^many(%d)", i);
        CHECK(session, perilune_set(session, at(&node, name), &value));
    }
    CHECK(session, perilune_begin(session, NULL));
    CHECK(session, perilune_incr(session, at(&node, "^few"), NULL, NULL));
    CHECK(session, perilune_commit(session));
    CHECK(session, perilune_lock(session, 0, &node.node, PERILUNE_LOCK_EXCLUSIVE, 0));
    return perilune_unlock(session, 0, &node.node);
}

/* A body that does more than a cheap first try can goes on as it is: it is not run again for that. */
static void outgrown(perilune_session *session)
{
    place node;
    perilune_value value = perilune_int(0);
    int runs = 0;

    CHECK(session, perilune_set(session, at(&node, "^few"), &value));
    CHECK(session, perilune_transaction(session, NULL, outgrow, &runs));
    CHECK(session, perilune_get(session, at(&node, "^few"), &value));
    EXPECT(runs == 1 && value.as.i == 1);
    CHECK(session, perilune_get(session, at(&node, "^many(99)"), &value));
    EXPECT(value.as.i == 99);
}

static void with_a_body(perilune_session *session)
{
    place node;
    perilune_value value;
    int runs = 0;
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;

    at(&node, "^t(1)");
    CHECK(session, perilune_kill(session, &node.node));
    EXPECT(perilune_transaction(session, NULL, outer, &node) == PERILUNE_OK);
    CHECK(session, perilune_get(session, &node.node, &value));
    EXPECT(same_text(&value, PERILUNE_STRING, "outer"));
    EXPECT(perilune_depth(session) == 0);

    /* A body cannot swallow the restart of a level inside it. */
    EXPECT(perilune_transaction(session, NULL, swallow, &runs) == PERILUNE_OK);
    EXPECT(runs == 3);
    /* Levels that a body leaves open are rolled back; one that it closes too many is an error. */
    at(&node, "^t(3)");
    EXPECT(perilune_transaction(session, NULL, forget_levels, &node) == PERILUNE_OK);
    EXPECT(perilune_get(session, &node.node, &value) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_transaction(session, NULL, end_too_many, NULL) == PERILUNE_TRANSACTION_STATE);
    EXPECT(perilune_transaction(session, NULL, NULL, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_depth(session) == 0);

    options.timeout = 0.05;
    EXPECT(perilune_transaction(session, &options, always_restart, NULL) ==
           PERILUNE_TRANSACTION_TIMEOUT);
    EXPECT(strstr(perilune_message(session), "timeout") != NULL);
    options.timeout = -3;
    EXPECT(perilune_transaction(session, &options, always_restart, NULL) == PERILUNE_INVALID);
}

/* Adds one to a counter by get and set; a second session gets in between the first time. */
static int add_one(perilune_session *session, perilune_session *rival, const perilune_node *node,
                   int *tries)
{
    perilune_value value;
    int status = perilune_get(session, node, &value);

    if (status < 0)
        return status;
    if (++*tries == 1) {
        perilune_value by = perilune_int(10);
        CHECK(rival, perilune_incr(rival, node, &by, NULL));
    }
    value = perilune_int((status == PERILUNE_NOT_FOUND ? 0 : value.as.i) + 1);
    return perilune_set(session, node, &value);
}

static void in_pieces(perilune_session *session, perilune_session *rival)
{
    place node;
    perilune_value value;
    int tries = 0;
    int status;

    at(&node, "^t(2)");
    CHECK(session, perilune_kill(session, &node.node));
    for (;;) {
        CHECK(session, perilune_begin(session, NULL));
        status = add_one(session, rival, &node.node, &tries);
        if (status == PERILUNE_OK)
            status = perilune_commit(session);
        if (status == PERILUNE_OK)
            break;
        while (perilune_depth(session) > 0)
            CHECK(session, perilune_rollback(session));
        EXPECT(status == PERILUNE_CONFLICT);
        CHECK(session, perilune_retry(session));
    }
    EXPECT(tries == 2);
    CHECK(session, perilune_get(session, &node.node, &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == 11);
    EXPECT(perilune_commit(session) == PERILUNE_TRANSACTION_STATE);
    EXPECT(perilune_rollback(session) == PERILUNE_TRANSACTION_STATE);
}

/* For programs that cannot run a transaction again. */
static void alone(perilune_session *session)
{
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;
    place node;
    perilune_value sum;

    options.exclusive = 1;
    CHECK(session, perilune_begin(session, &options));
    CHECK(session, perilune_incr(session, at(&node, "^alone"), NULL, &sum));
    CHECK(session, perilune_commit(session));
    EXPECT(sum.type == PERILUNE_INT && sum.as.i >= 1);
}

static int never_done(perilune_session *session, void *runs)
{
    (void)session;
    ++*(int *)runs;
    return PERILUNE_RESTART;
}

/* For programs that would rather do it later than have others wait. */
static void never_alone(perilune_session *session)
{
    perilune_transaction_options options = PERILUNE_TRANSACTION_OPTIONS_INIT;
    int runs = 0;

    options.exclusive = -1;
    EXPECT(perilune_transaction(session, &options, never_done, &runs) == PERILUNE_CONFLICT);
    EXPECT(runs == 3 && perilune_depth(session) == 0);
}

static void locks(perilune_session *session, perilune_session *rival)
{
    place parent;
    place child;
    uint64_t owner = 0;
    uint32_t count = 9;

    at(&parent, "^trigger");
    at(&child, "^trigger(1)");
    CHECK(session, perilune_lock_owner(session, &owner));
    EXPECT(owner != PERILUNE_OWNER_SESSION);
    EXPECT(perilune_lock(session, owner, &parent.node, PERILUNE_LOCK_EXCLUSIVE, 0) == PERILUNE_OK);
    EXPECT(perilune_lock(rival, 0, &child.node, PERILUNE_LOCK_SHARED, 0) == PERILUNE_TIMED_OUT);
    /* One owner never excludes itself, whatever session uses it. */
    EXPECT(perilune_lock(rival, owner, &child.node, PERILUNE_LOCK_EXCLUSIVE, 0) == PERILUNE_OK);
    CHECK(rival, perilune_unlock(rival, owner, &child.node));
    CHECK(session, perilune_lock_count(session, owner, &parent.node, &count));
    EXPECT(count == 1);
    EXPECT(perilune_unlock(session, owner, &parent.node) == PERILUNE_OK);
    EXPECT(perilune_unlock(session, owner, &parent.node) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_lock(rival, 0, &child.node, PERILUNE_LOCK_SHARED, PERILUNE_FOREVER) ==
           PERILUNE_OK);
    CHECK(rival, perilune_unlock_all(rival, PERILUNE_OWNER_SESSION));
}

int main(int argc, char **argv)
{
    perilune_db *db = NULL;
    perilune_session *session = NULL;
    perilune_session *rival = NULL;

    CHECK(NULL, perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    CHECK(NULL, perilune_session_open(db, &session));
    CHECK(NULL, perilune_session_open(db, &rival));
    /* The sessions keep the database open. */
    perilune_close(db);
    with_a_body(session);
    outgrown(session);
    in_pieces(session, rival);
    alone(session);
    never_alone(session);
    locks(session, rival);
    perilune_session_close(rival);
    perilune_session_close(session);
    puts("transactions: good");
    return 0;
}

/*
 * A tour of Perilune from C: open, write, read, iterate, count up, run a transaction.
 *
 *     cc -std=c99 tour.c $(pkg-config --cflags --libs perilune) -o tour
 *     ./tour /tmp/tour.db
 *
 * It checks what it gets, so that it is a test as well.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perilune.h"

/* Every call goes through here: an error ends the program with its place and its text. */
static void check(int status, const perilune_session *session, int line)
{
    if (status < 0) {
        fprintf(stderr, "line %d: %s: %s\n", line, perilune_status_name(status),
                perilune_message(session));
        exit(1);
    }
}

static void expect(int truth, const char *what, int line)
{
    if (!truth) {
        fprintf(stderr, "line %d: not so: %s\n", line, what);
        exit(1);
    }
}

#define CHECK(call) check((call), session, __LINE__)
#define EXPECT(truth) expect((truth), #truth, __LINE__)

/* Room for one node; a union because a node wants the alignment of its head. */
typedef union place {
    perilune_node node;
    char bytes[PERILUNE_NODE_BYTES_MAX];
} place;

static void build(perilune_session *session, place *to, const char *text)
{
    CHECK(perilune_node_parse(to, sizeof *to, text, strlen(text), NULL));
}

static int is(const perilune_value *value, const char *text)
{
    return value->type == PERILUNE_STRING && value->as.s.n == strlen(text) &&
           memcmp(value->as.s.p, text, value->as.s.n) == 0;
}

static void values(perilune_session *session)
{
    place person;
    place name;
    perilune_value value;
    int32_t data = -1;

    build(session, &person, "^person(21)");
    /* What an earlier run has left. */
    CHECK(perilune_kill(session, &person.node));
    CHECK(perilune_node_child_str(&name, sizeof name, &person.node, "name", 4, NULL));

    value = perilune_string("Ada", 3);
    CHECK(perilune_set(session, &name.node, &value));
    CHECK(perilune_get(session, &name.node, &value));
    EXPECT(is(&value, "Ada"));

    /* The same without building the child. */
    CHECK(perilune_get_child_str(session, &person.node, "name", 4, &value));
    EXPECT(is(&value, "Ada"));

    /* Numbers come back as numbers, and arithmetic is decimal. */
    value = perilune_decimal("0.1", 3);
    for (int i = 0; i < 10; i++)
        CHECK(perilune_incr_child_str(session, &person.node, "sum", 3, &value, NULL));
    CHECK(perilune_get_child_str(session, &person.node, "sum", 3, &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == 1);

    CHECK(perilune_data(session, &person.node, &data));
    EXPECT(data == 10); /* no value of its own, but descendants */

    EXPECT(perilune_get_child_str(session, &person.node, "age", 3, &value) == PERILUNE_NOT_FOUND);
    EXPECT(value.type == PERILUNE_ABSENT);
}

static void iteration(perilune_session *session)
{
    static const int64_t squares[] = {1, 4, 9, 16, 25};
    place square;
    perilune_cursor *cursor = NULL;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value subscript;
    perilune_value value;
    int64_t n = 0;
    int status;

    build(session, &square, "^square");
    CHECK(perilune_kill(session, &square.node));
    for (int64_t i = 5; i >= 1; i--) {
        value = perilune_int(squares[i - 1]);
        CHECK(perilune_set_child_int(session, &square.node, i, &value));
    }

    options.flags = PERILUNE_CURSOR_VALUES;
    CHECK(perilune_cursor_open(session, &square.node, &options, &cursor));
    while ((status = perilune_cursor_next(cursor, &subscript, &value, NULL)) == PERILUNE_OK) {
        n++;
        printf("^square(%" PRId64 ") = %" PRId64 "\n", subscript.as.i, value.as.i);
        EXPECT(subscript.type == PERILUNE_INT && subscript.as.i == n);
        EXPECT(value.type == PERILUNE_INT && value.as.i == squares[n - 1]);
    }
    CHECK(status);
    perilune_cursor_close(cursor);
    EXPECT(n == 5);
}

/* Moves 30 from one account to another, or nothing. */
static int transfer(perilune_session *session, void *context)
{
    const perilune_node *account = context;
    perilune_value amount = perilune_int(-30);
    perilune_value balance;
    int status = perilune_incr_child_str(session, account, "ada", 3, &amount, &balance);

    if (status != PERILUNE_OK)
        return status;
    if (balance.as.i < 0)
        return PERILUNE_ROLLBACK;
    amount = perilune_int(30);
    return perilune_incr_child_str(session, account, "bob", 3, &amount, NULL);
}

static void transactions(perilune_session *session)
{
    place account;
    perilune_value value = perilune_int(50);

    build(session, &account, "^account");
    CHECK(perilune_kill(session, &account.node));
    CHECK(perilune_set_child_str(session, &account.node, "ada", 3, &value));

    EXPECT(perilune_transaction(session, NULL, transfer, &account) == PERILUNE_OK);
    EXPECT(perilune_transaction(session, NULL, transfer, &account) == PERILUNE_ROLLBACK);

    CHECK(perilune_get_child_str(session, &account.node, "ada", 3, &value));
    EXPECT(value.as.i == 20);
    CHECK(perilune_get_child_str(session, &account.node, "bob", 3, &value));
    EXPECT(value.as.i == 30);
}

int main(int argc, char **argv)
{
    perilune_db *db = NULL;
    perilune_session *session = NULL;

    CHECK(perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    CHECK(perilune_session_open(db, &session));
    values(session);
    iteration(session);
    transactions(session);
    perilune_session_close(session);
    perilune_close(db);
    puts("tour: good");
    return 0;
}

/*
 * Between processes and threads: watches with a descriptor for poll(), channels, bad options.
 *
 *     ./messages /tmp/messages.db
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>

#include "expect.h"

static void watches(perilune_session *session, perilune_session *other)
{
    place node;
    perilune_watch_request request;
    perilune_value one = perilune_int(1);
    struct pollfd wake;
    uint64_t watch = 0;
    int32_t descriptor = -1;
    int status;

    memset(&request, 0, sizeof request);
    request.node = at(&node, "^config");
    request.scope = PERILUNE_WATCH_SUBTREE;
    CHECK(session, perilune_watch(session, &request, 1, &watch));
    EXPECT(perilune_wait(session, watch, 0) == PERILUNE_TIMED_OUT);
    status = perilune_watch_descriptor(session, watch, &descriptor);
    CHECK(other, perilune_set_child_str(other, &node.node, "colour", 6, &one));
    if (status == PERILUNE_OK) {
        wake.fd = descriptor;
        wake.events = POLLIN;
        EXPECT(poll(&wake, 1, 10000) == 1);
    } else {
        /* Only the store for tests has none. */
        EXPECT(strstr(perilune_message(session), "memory store") != NULL);
    }
    EXPECT(perilune_wait(session, watch, 0) == PERILUNE_OK);
    CHECK(session, perilune_begin(session, NULL));
    EXPECT(perilune_wait(session, watch, PERILUNE_FOREVER) == PERILUNE_TRANSACTION_STATE);
    CHECK(session, perilune_rollback(session));
    CHECK(session, perilune_unwatch(session, watch));
    request.node = at(&node, "private");
    EXPECT(perilune_watch(session, &request, 1, &watch) == PERILUNE_PRIVATE);
}

static void channels(perilune_session *session, perilune_session *other)
{
    perilune_channel_options options = PERILUNE_CHANNEL_OPTIONS_INIT;
    perilune_received message;
    uint64_t number = 0;

    options.messages = 2;
    CHECK(session, perilune_channel_create(session, "jobs", 4, &options));
    CHECK(session, perilune_post(session, "jobs", 4, "one", 3, &number));
    EXPECT(number == 1);
    CHECK(session, perilune_post(session, "jobs", 4, "two", 3, NULL));
    EXPECT(perilune_post(session, "jobs", 4, "three", 5, NULL) == PERILUNE_CHANNEL_FULL);
    CHECK(other, perilune_follow(other, "jobs", 4, 1, 0, &message));
    EXPECT(message.number == 2 && message.body_size == 3);
    CHECK(other, perilune_receive(other, "jobs", 4, 10, &message));
    EXPECT(message.number == 1 && memcmp(message.body, "one", 3) == 0);
    CHECK(other, perilune_receive(other, "jobs", 4, PERILUNE_FOREVER, &message));
    EXPECT(perilune_receive(other, "jobs", 4, 0, &message) == PERILUNE_TIMED_OUT);
    CHECK(session, perilune_channel_remove(session, "jobs", 4));
}

static void refusals(void)
{
    perilune_options options = PERILUNE_OPTIONS_INIT;
    perilune_db *db = NULL;

    options.durability = 17;
    EXPECT(perilune_open("/tmp/never-made.db", &options, &db) == PERILUNE_INVALID && db == NULL);
    EXPECT(strstr(perilune_message(NULL), "durability") != NULL);
    options.durability = PERILUNE_DURABILITY_DEFAULT;
    options.size = 4000;
    EXPECT(perilune_open("/tmp/never-made.db", &options, &db) == PERILUNE_INVALID);
    EXPECT(perilune_open("/tmp/never-made.db", NULL, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_get(NULL, NULL, NULL) == PERILUNE_INVALID);
    perilune_session_close(NULL);
    perilune_cursor_close(NULL);
    perilune_close(NULL);
}

int main(int argc, char **argv)
{
    perilune_db *db = NULL;
    perilune_session *session = NULL;
    perilune_session *other = NULL;

    refusals();
    CHECK(NULL, perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    CHECK(NULL, perilune_session_open(db, &session));
    CHECK(NULL, perilune_session_open(db, &other));
    watches(session, other);
    channels(session, other);
    perilune_session_close(other);
    perilune_session_close(session);
    perilune_close(db);
    puts("messages: good");
    return 0;
}

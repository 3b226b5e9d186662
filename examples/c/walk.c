/*
 * Going through the tree: siblings, children, cursors both ways, ranges, many entries in one call;
 * private names; copies, counts and batches.
 *
 *     ./walk /tmp/walk.db
 */
#include <inttypes.h>

#include "expect.h"

static void fill(perilune_session *session)
{
    static const char *const names[] = {"^w",         "^w(\"\")",      "^w(-1.5)",  "^w(2)",
                                        "^w(10,\"a\")", "^w(10,\"b\",1)", "^w(\"2x\")", "^w(\"z\")"};
    place node;

    CHECK(session, perilune_kill(session, at(&node, "^w")));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        perilune_value value = perilune_int((int64_t)i);
        CHECK(session, perilune_set(session, at(&node, names[i]), &value));
    }
}

static void siblings(perilune_session *session)
{
    place node;
    place top;
    perilune_value subscript;
    perilune_value two = perilune_int(2);
    perilune_value empty = perilune_string("", 0);
    int steps = 0;

    at(&top, "^w");
    CHECK(session, perilune_child_next(session, &top.node, NULL, &subscript));
    EXPECT(same_text(&subscript, PERILUNE_STRING, ""));
    CHECK(session, perilune_child_next(session, &top.node, &subscript, &subscript));
    EXPECT(same_text(&subscript, PERILUNE_DECIMAL, "-1.5"));
    CHECK(session, perilune_child_next(session, &top.node, &two, &subscript));
    EXPECT(subscript.type == PERILUNE_INT && subscript.as.i == 10);
    CHECK(session, perilune_child_previous(session, &top.node, NULL, &subscript));
    EXPECT(same_text(&subscript, PERILUNE_STRING, "z"));
    EXPECT(perilune_child_previous(session, &top.node, &empty, &subscript) == PERILUNE_NOT_FOUND);
    EXPECT(subscript.type == PERILUNE_ABSENT);

    /* M's $ORDER: from "" to "", which is never answered. */
    CHECK(session, perilune_next(session, at(&node, "^w(\"\")"), &subscript));
    EXPECT(same_text(&subscript, PERILUNE_DECIMAL, "-1.5"));
    EXPECT(perilune_previous(session, at(&node, "^w(-1.5)"), &subscript) == PERILUNE_NOT_FOUND);

    /* The same from the parent and the last subscript, without building the node; then what lies there. */
    CHECK(session, perilune_next_child(session, &top.node, &empty, 1, &subscript));
    EXPECT(same_text(&subscript, PERILUNE_DECIMAL, "-1.5"));
    CHECK(session, perilune_previous_child(session, &top.node, &empty, 1, &subscript));
    EXPECT(same_text(&subscript, PERILUNE_STRING, "z"));
    EXPECT(perilune_next_child(session, &top.node, &subscript, 1, &subscript) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_next_child(session, &top.node, NULL, 0, &subscript) == PERILUNE_NOT_FOUND);

    /* In place. */
    at(&node, "^w(\"\")");
    while (perilune_node_next(session, &node.node, sizeof node, NULL) == PERILUNE_OK)
        steps++;
    EXPECT(steps == 5 && node_is(&node.node, "^w(\"z\")"));
    while (perilune_node_previous(session, &node.node, sizeof node, NULL) == PERILUNE_OK)
        steps--;
    EXPECT(steps == 1 && node_is(&node.node, "^w(-1.5)"));

    /* Depth first, with the values. */
    at(&node, "^w");
    steps = 0;
    while (perilune_next_valued(session, &node.node, &node, sizeof node, NULL, &subscript) ==
           PERILUNE_OK) {
        steps++;
        EXPECT(subscript.type == PERILUNE_INT && subscript.as.i == steps);
    }
    EXPECT(steps == 7 && node_is(&node.node, "^w(\"z\")"));
    CHECK(session, perilune_previous_valued(session, &node.node, &node, sizeof node, NULL, NULL));
    EXPECT(node_is(&node.node, "^w(\"2x\")"));
}

static void names(perilune_session *session)
{
    place node;
    perilune_value name;
    perilune_value one = perilune_int(1);

    CHECK(session, perilune_set(session, at(&node, "^w2"), &one));
    CHECK(session, perilune_set(session, at(&node, "mine(1)"), &one));
    CHECK(session, perilune_name_next(session, "^w", 2, &name));
    EXPECT(same_text(&name, PERILUNE_STRING, "^w2"));
    CHECK(session, perilune_name_next(session, "", 0, &name));
    EXPECT(same_text(&name, PERILUNE_STRING, "mine"));
    EXPECT(perilune_name_next(session, "mine", 4, &name) == PERILUNE_NOT_FOUND);
    CHECK(session, perilune_name_previous(session, "^w2", 3, &name));
    EXPECT(same_text(&name, PERILUNE_STRING, "^w"));
    EXPECT(perilune_name_next(session, "^1", 2, &name) == PERILUNE_INVALID_NAME);
    CHECK(session, perilune_kill(session, at(&node, "^w2")));
}

static void cursors(perilune_session *session)
{
    place node;
    perilune_cursor *cursor = NULL;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value from = perilune_string("z", 1);
    perilune_value to = perilune_int(2);
    perilune_value subscript;
    perilune_value value;
    int32_t data = 0;
    char seen[64] = "";

    at(&node, "^w");
    options.flags = PERILUNE_CURSOR_REVERSE | PERILUNE_CURSOR_VALUES | PERILUNE_CURSOR_DATA |
                    PERILUNE_CURSOR_FROM_EXCLUSIVE;
    options.from = &from;
    options.to = &to;
    CHECK(session, perilune_cursor_open(session, &node.node, &options, &cursor));
    EXPECT(perilune_cursor_node(cursor, &node, sizeof node, NULL) == PERILUNE_NOT_FOUND);
    while (perilune_cursor_next(cursor, &subscript, &value, &data) == PERILUNE_OK) {
        place here;
        char text[64];
        size_t size = 0;
        CHECK(session, perilune_cursor_node(cursor, &here, sizeof here, NULL));
        EXPECT(perilune_node_depth(&here.node) == 1);
        CHECK(session, perilune_value_text(&subscript, text, sizeof text, &size));
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.*s:%d%s ", (int)size, text,
                 (int)data, value.type == PERILUNE_ABSENT ? "-" : "");
    }
    EXPECT(strcmp(seen, "2x:1 10:10- 2:1 ") == 0);
    EXPECT(perilune_cursor_next(cursor, &subscript, NULL, NULL) == PERILUNE_NOT_FOUND);
    perilune_cursor_close(cursor);

    options.kind = 7;
    EXPECT(perilune_cursor_open(session, at(&node, "^w"), &options, &cursor) == PERILUNE_INVALID);
    EXPECT(cursor == NULL && perilune_message(session)[0] != 0);
    EXPECT(perilune_cursor_next(NULL, &subscript, NULL, NULL) == PERILUNE_INVALID);
}

static void many_at_once(perilune_session *session)
{
    place node;
    place low;
    perilune_cursor *cursor = NULL;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_entry entries[4];
    size_t count = 0;
    size_t total = 0;

    options.kind = PERILUNE_CURSOR_SUBTREE;
    options.flags = PERILUNE_CURSOR_VALUES | PERILUNE_CURSOR_NODES;
    options.from_node = at(&low, "^w(\"\")");
    CHECK(session, perilune_cursor_open(session, at(&node, "^w"), &options, &cursor));
    while (perilune_cursor_fetch(cursor, entries, 4, &count) == PERILUNE_OK) {
        for (size_t i = 0; i < count; i++) {
            perilune_value last;
            total++;
            EXPECT(entries[i].value.type == PERILUNE_INT);
            EXPECT(entries[i].value.as.i == (int64_t)total);
            EXPECT(entries[i].depth == perilune_node_depth(entries[i].node));
            CHECK(NULL, perilune_node_subscript(entries[i].node, entries[i].depth, &last));
            EXPECT(last.type == entries[i].subscript.type);
            if (total == 5) {
                EXPECT(node_is(entries[i].node, "^w(10,\"b\",1)"));
                EXPECT(entries[i].depth == 3 && entries[i].shared == 1);
            }
        }
    }
    EXPECT(total == 7 && count == 0);
    perilune_cursor_close(cursor);
}

/* Leaves out the subtree of ^w(10) in both directions. */
static void skipping(perilune_session *session)
{
    place node;
    place ten;
    perilune_cursor *cursor = NULL;
    perilune_cursor_options options = PERILUNE_CURSOR_OPTIONS_INIT;
    perilune_value subscript;

    options.kind = PERILUNE_CURSOR_SUBTREE;
    CHECK(session, perilune_cursor_open(session, at(&node, "^w"), &options, &cursor));
    CHECK(session, perilune_cursor_skip(cursor, at(&ten, "^w(10)")));
    CHECK(session, perilune_cursor_next(cursor, &subscript, NULL, NULL));
    EXPECT(same_text(&subscript, PERILUNE_STRING, "2x"));
    perilune_cursor_close(cursor);
    options.flags = PERILUNE_CURSOR_REVERSE;
    CHECK(session, perilune_cursor_open(session, at(&node, "^w"), &options, &cursor));
    CHECK(session, perilune_cursor_skip(cursor, &ten.node));
    CHECK(session, perilune_cursor_next(cursor, &subscript, NULL, NULL));
    EXPECT(subscript.type == PERILUNE_INT && subscript.as.i == 2);
    perilune_cursor_close(cursor);
}

static void trees(perilune_session *session)
{
    place from;
    place to;
    place missing;
    const perilune_node *nodes[3];
    perilune_value values[3];
    uint64_t count = 0;
    size_t length = 0;

    at(&from, "^w");
    at(&to, "copy");
    CHECK(session, perilune_count_children(session, &from.node, &count));
    EXPECT(count == 6);
    CHECK(session, perilune_count_nodes(session, &from.node, &count));
    EXPECT(count == 7);
    CHECK(session, perilune_copy(session, &from.node, &to.node));
    CHECK(session, perilune_count_nodes(session, &to.node, &count));
    EXPECT(count == 7);
    EXPECT(perilune_copy(session, &from.node, at(&missing, "^w(1)")) == PERILUNE_OVERLAP);

    nodes[0] = at(&from, "^w(2)");
    nodes[1] = at(&to, "^w(-1.5)");
    nodes[2] = at(&missing, "^w(\"none\")");
    values[0] = perilune_decimal("2.5", 3);
    values[1] = perilune_string("two\0zeros\0", 10);
    values[2] = perilune_absent();
    CHECK(session, perilune_set_many(session, nodes, 3, values));
    CHECK(session, perilune_get_many(session, nodes, 3, values));
    EXPECT(same_text(&values[0], PERILUNE_DECIMAL, "2.5"));
    EXPECT(values[1].type == PERILUNE_STRING && values[1].as.s.n == 10);
    EXPECT(values[2].type == PERILUNE_ABSENT);

    /* Each by itself, and nothing of a list that is not good. */
    values[2] = perilune_int(7);
    CHECK(session, perilune_set_each(session, nodes, 3, values));
    CHECK(session, perilune_get_many(session, nodes, 3, values));
    EXPECT(values[1].type == PERILUNE_STRING && values[2].type == PERILUNE_INT && values[2].as.i == 7);
    values[0] = perilune_int(1);
    values[2] = perilune_absent();
    EXPECT(perilune_set_each(session, nodes, 3, values) == PERILUNE_INVALID);
    CHECK(session, perilune_get(session, nodes[0], &values[0]));
    EXPECT(same_text(&values[0], PERILUNE_DECIMAL, "2.5"));
    CHECK(session, perilune_delete(session, nodes[2]));
    CHECK(session, perilune_get_many(session, nodes, 3, values));

    /* A part of a string, without the rest. */
    CHECK(session, perilune_set_piece(session, nodes[1], 4, "ONES and more", 13, &length));
    EXPECT(length == 17);
    CHECK(session, perilune_get_piece(session, nodes[1], 2, 6, &values[2], &length));
    EXPECT(memcmp(values[2].as.s.p, "o\0ONES", 6) == 0);
    CHECK(session, perilune_set_piece(session, nodes[1], 0, values[2].as.s.p, values[2].as.s.n, NULL));
    CHECK(session, perilune_get_piece(session, nodes[1], 0, 8, &values[2], NULL));
    EXPECT(values[2].as.s.n == 8 && memcmp(values[2].as.s.p, "o\0ONESES", 8) == 0);
    CHECK(session, perilune_get_piece(session, nodes[1], 100, 8, &values[2], &length));
    EXPECT(values[2].type == PERILUNE_STRING && values[2].as.s.n == 0 && length == 17);
    EXPECT(perilune_get_piece(session, at(&missing, "^w(8)"), 0, 8, &values[2], &length) == PERILUNE_NOT_FOUND);
    EXPECT(values[2].type == PERILUNE_ABSENT && length == 0);
    EXPECT(perilune_get_piece(session, nodes[0], 0, 8, &values[2], &length) == PERILUNE_INVALID);
    EXPECT(perilune_set_piece(session, nodes[0], 0, "x", 1, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_set_piece(session, nodes[1], (size_t)-1, "x", 1, NULL) == PERILUNE_VALUE_TOO_LONG);
    EXPECT(perilune_get_piece(session, nodes[1], (size_t)-1, (size_t)-1, &values[2], &length) == PERILUNE_OK);
    EXPECT(values[2].as.s.n == 0 && length == 17);

    /* What a session gave may be given back to it. */
    CHECK(session, perilune_get(session, nodes[1], &values[1]));
    EXPECT(perilune_cas(session, nodes[1], &values[1], NULL) == PERILUNE_OK);
    EXPECT(perilune_cas(session, nodes[1], &values[0], NULL) == PERILUNE_DIFFERENT);
    EXPECT(perilune_delete(session, nodes[1]) == PERILUNE_NOT_FOUND);
}

/* Counting as M does, and deleting a subtree, of a descendant that is not built. */
static void below(perilune_session *session)
{
    place top;
    perilune_value path[2] = {perilune_string("m", 1), perilune_int(1)};
    perilune_value text = perilune_string("7 dwarfs", 8);
    perilune_value half = perilune_double(0.5);
    perilune_value sum;
    int32_t data = 0;

    at(&top, "^below");
    CHECK(session, perilune_set_child(session, &top.node, path, 2, &text));
    CHECK(session, perilune_incr_truncating_child(session, &top.node, path, 2, &half, &sum));
    EXPECT(same_text(&sum, PERILUNE_DECIMAL, "7.5"));
    CHECK(session, perilune_kill_child(session, &top.node, path, 1));
    CHECK(session, perilune_data_child(session, &top.node, NULL, 0, &data));
    EXPECT(data == 0);
}

static void types(perilune_session *session)
{
    static const int plain[] = {PERILUNE_NULL, PERILUNE_EMPTY_LIST, PERILUNE_EMPTY_MAP};
    place node;
    perilune_value value;
    perilune_value half = perilune_double(0.5);

    at(&node, "^types");
    for (size_t i = 0; i < 3; i++) {
        value = perilune_of_type(plain[i]);
        CHECK(session, perilune_set_child_int(session, &node.node, 1, &value));
        CHECK(session, perilune_get_child_int(session, &node.node, 1, &value));
        EXPECT(value.type == plain[i]);
    }
    value = perilune_bool(5);
    CHECK(session, perilune_set(session, &node.node, &value));
    CHECK(session, perilune_get(session, &node.node, &value));
    EXPECT(value.type == PERILUNE_BOOL && value.as.i == 1);
    EXPECT(perilune_incr(session, &node.node, NULL, NULL) == PERILUNE_NOT_A_NUMBER);
    value = perilune_of_type(99);
    EXPECT(perilune_set(session, &node.node, &value) == PERILUNE_INVALID);
    CHECK(session, perilune_set_child(session, &node.node, &half, 1, &half));
    CHECK(session, perilune_get_child(session, &node.node, &half, 1, &value));
    EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == 0.5);
    value = perilune_string("12 apples", 9);
    CHECK(session, perilune_set(session, &node.node, &value));
    EXPECT(perilune_incr(session, &node.node, NULL, NULL) == PERILUNE_NOT_A_NUMBER);
    CHECK(session, perilune_incr_truncating(session, &node.node, NULL, &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == 13);
    value = perilune_int(INT64_MAX);
    CHECK(session, perilune_set(session, &node.node, &value));
    CHECK(session, perilune_get(session, &node.node, &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == INT64_MAX);
    EXPECT(perilune_incr(session, &node.node, NULL, NULL) == PERILUNE_NUMBER_OVERFLOW);
}

static void ends(perilune_session *session)
{
    place node;
    perilune_cursor *cursor = NULL;
    perilune_value value;
    uint64_t faults = 9;

    CHECK(session, perilune_verify(session, &faults, &value));
    EXPECT(faults == 0 && value.as.s.n == 0);
    CHECK(session, perilune_stat(session, &value));
    EXPECT(value.as.s.n > 2 && value.as.s.p[0] == '{');

    /* A cursor may outlive its session, as in a garbage collector's order. */
    CHECK(session, perilune_cursor_open(session, at(&node, "^w"), NULL, &cursor));
    perilune_session_close(session);
    EXPECT(perilune_cursor_next(cursor, &value, NULL, NULL) == PERILUNE_CLOSED);
    perilune_cursor_close(cursor);
}

int main(int argc, char **argv)
{
    perilune_db *db = NULL;
    perilune_session *session = NULL;
    perilune_limits limits;

    CHECK(NULL, perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    limits.size = sizeof limits;
    CHECK(NULL, perilune_limits_of(db, &limits));
    EXPECT(limits.key_bytes >= 1900 && limits.subscripts == 255);
    CHECK(NULL, perilune_session_open(db, &session));
    fill(session);
    siblings(session);
    names(session);
    cursors(session);
    skipping(session);
    many_at_once(session);
    trees(session);
    below(session);
    types(session);
    ends(session);
    perilune_close(db);
    puts("walk: good");
    return 0;
}

/*
 * Nodes: flat blocks of memory that hold an address. No database is needed to build, take apart,
 * compare or print them.
 *
 *     ./nodes
 */
#include <math.h>

#include "expect.h"

static void building(void)
{
    place parent;
    place child;
    place other;
    perilune_value path[3];
    size_t size = 0;
    size_t needed = 0;

    CHECK(NULL, perilune_node_root(&parent, sizeof parent, "^person", 7, &size));
    EXPECT(size == PERILUNE_NODE_SIZE(&parent.node));
    EXPECT(perilune_node_depth(&parent.node) == 0);

    /* Asking for the size first, then giving exactly that much. */
    EXPECT(perilune_node_child_int(NULL, 0, &parent.node, 21, &needed) ==
           PERILUNE_BUFFER_TOO_SMALL);
    EXPECT(needed > size);
    EXPECT(perilune_node_child_int(&child, needed - 1, &parent.node, 21, NULL) ==
           PERILUNE_BUFFER_TOO_SMALL);
    CHECK(NULL, perilune_node_child_int(&child, needed, &parent.node, 21, &size));
    EXPECT(size == needed && node_is(&child.node, "^person(21)"));
    EXPECT(child.node.parent_size == parent.node.key_size);
    EXPECT(memcmp(PERILUNE_NODE_KEY(&child.node), PERILUNE_NODE_KEY(&parent.node),
                  parent.node.key_size) == 0);

    /* "21", 21.0 and 21 are one subscript. */
    CHECK(NULL, perilune_node_child_str(&other, sizeof other, &parent.node, "21", 2, NULL));
    EXPECT(perilune_node_compare(&child.node, &other.node) == 0);
    CHECK(NULL, perilune_node_child_double(&other, sizeof other, &parent.node, 21.0, NULL));
    EXPECT(perilune_node_compare(&child.node, &other.node) == 0);
    CHECK(NULL, perilune_node_child_str(&other, sizeof other, &parent.node, "021", 3, NULL));
    EXPECT(perilune_node_compare(&child.node, &other.node) < 0);
    EXPECT(perilune_node_child_double(&other, sizeof other, &parent.node, NAN, NULL) ==
           PERILUNE_NOT_A_NUMBER);
    EXPECT(perilune_message(NULL)[0] != 0);

    path[0] = perilune_int(21);
    path[1] = perilune_string("a\"b\0c", 5);
    path[2] = perilune_decimal("1.50", 4);
    CHECK(NULL, perilune_node_child(&child, sizeof child, &parent.node, path, 3, NULL));
    EXPECT(perilune_node_depth(&child.node) == 3);
    EXPECT(perilune_node_contains(&parent.node, &child.node) == 1);
    EXPECT(perilune_node_contains(&child.node, &parent.node) == 0);
    CHECK(NULL, perilune_node_ancestor(&child, sizeof child, &child.node, 1, NULL));
    EXPECT(node_is(&child.node, "^person(21)"));
    CHECK(NULL, perilune_node_set_last(&child.node, sizeof child, &path[2]));
    EXPECT(node_is(&child.node, "^person(1.5)"));
}

static void taking_apart(void)
{
    place node;
    perilune_value part;

    at(&node, "^a.b(-7,\"x\",2.25,\"\")");
    EXPECT(perilune_node_depth(&node.node) == 4);
    CHECK(NULL, perilune_node_name(&node.node, &part));
    EXPECT(same_text(&part, PERILUNE_STRING, "^a.b"));
    CHECK(NULL, perilune_node_subscript(&node.node, 0, &part));
    EXPECT(same_text(&part, PERILUNE_STRING, "^a.b"));
    CHECK(NULL, perilune_node_subscript(&node.node, 1, &part));
    EXPECT(part.type == PERILUNE_INT && part.as.i == -7);
    CHECK(NULL, perilune_node_subscript(&node.node, 2, &part));
    EXPECT(same_text(&part, PERILUNE_STRING, "x"));
    CHECK(NULL, perilune_node_subscript(&node.node, 3, &part));
    EXPECT(same_text(&part, PERILUNE_DECIMAL, "2.25"));
    CHECK(NULL, perilune_node_subscript(&node.node, 4, &part));
    EXPECT(same_text(&part, PERILUNE_STRING, ""));
    EXPECT(perilune_node_subscript(&node.node, 5, &part) == PERILUNE_NOT_FOUND);
    EXPECT(node_is(&node.node, "^a.b(-7,\"x\",2.25,\"\")"));

    at(&node, "draft(1)");
    EXPECT(node.node.flags & PERILUNE_NODE_PRIVATE);
    CHECK(NULL, perilune_node_name(&node.node, &part));
    EXPECT(same_text(&part, PERILUNE_STRING, "draft"));
}

static void refusing(void)
{
    place root;
    place node;
    perilune_value flag = perilune_bool(1);
    size_t size = 0;
    char long_text[4000];

    memset(long_text, 'x', sizeof long_text);
    EXPECT(perilune_node_root(&node, sizeof node, "^1", 2, NULL) == PERILUNE_INVALID_NAME);
    EXPECT(perilune_node_root(&node, sizeof node, "", 0, NULL) == PERILUNE_INVALID_NAME);
    EXPECT(perilune_node_root(&node, sizeof node, NULL, 3, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_node_parse(&node, sizeof node, "^a(", 3, NULL) == PERILUNE_INVALID);
    CHECK(NULL, perilune_node_root(&root, sizeof root, "^a", 2, NULL));
    EXPECT(perilune_node_child(&node, sizeof node, &root.node, &flag, 1, NULL) ==
           PERILUNE_INVALID);
    EXPECT(perilune_node_child_int(&node, sizeof node, NULL, 1, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_node_child_str(&node, sizeof node, &root.node, long_text, sizeof long_text,
                                   NULL) == PERILUNE_KEY_TOO_LONG);

    /* 255 subscripts are good, one more is not. */
    node = root;
    for (int i = 0; i < 255; i++) {
        place child;
        CHECK(NULL, perilune_node_child_int(&child, sizeof child, &node.node, 1, NULL));
        node = child;
    }
    EXPECT(perilune_node_depth(&node.node) == 255);
    EXPECT(perilune_node_child_int(&root, sizeof root, &node.node, 1, NULL) ==
           PERILUNE_TOO_MANY_SUBSCRIPTS);

    /* Private names take longer keys. */
    CHECK(NULL, perilune_node_root(&root, sizeof root, "a", 1, NULL));
    EXPECT(perilune_node_child_str(&node, sizeof node, &root.node, long_text, sizeof long_text,
                                   &size) == PERILUNE_BUFFER_TOO_SMALL);
    EXPECT(size > sizeof long_text);
}

static void numbers(void)
{
    perilune_value number;
    perilune_value half = perilune_double(0.5);
    char text[96];
    size_t size = 0;

    EXPECT(perilune_number_is_canonical("10", 2) == 1);
    EXPECT(perilune_number_is_canonical("010", 3) == 0);
    EXPECT(perilune_number_parse("1.50", 4, &number) == PERILUNE_OK);
    EXPECT(same_text(&number, PERILUNE_DECIMAL, "1.5"));
    EXPECT(perilune_number_parse("-9223372036854775808", 20, &number) == PERILUNE_OK);
    EXPECT(number.type == PERILUNE_INT && number.as.i == INT64_MIN);
    EXPECT(perilune_number_parse("12abc", 5, &number) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_number_parse("1E99", 4, &number) == PERILUNE_NUMBER_OVERFLOW);
    EXPECT(perilune_number_lenient("12abc", 5, &number) == PERILUNE_OK);
    EXPECT(number.type == PERILUNE_INT && number.as.i == 12);
    EXPECT(perilune_number_canonical("1E3", 3, text, sizeof text, &size) == PERILUNE_OK);
    EXPECT(size == 4 && memcmp(text, "1000", 4) == 0);
    CHECK(NULL, perilune_number_add(&number, &half, 0, &number));
    EXPECT(same_text(&number, PERILUNE_DECIMAL, "12.5"));
    CHECK(NULL, perilune_value_text(&half, text, sizeof text, &size));
    EXPECT(size == 2 && memcmp(text, ".5", 2) == 0);
}

int main(void)
{
    building();
    taking_apart();
    refusing();
    numbers();
    EXPECT(perilune_version()[0] != 0);
    EXPECT(strcmp(perilune_status_name(PERILUNE_CONFLICT), "PERILUNE_CONFLICT") == 0);
    puts("nodes: good");
    return 0;
}

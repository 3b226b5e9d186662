/* What the example programs check with: each failure ends the program with its place. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perilune.h"

static inline void expect_good(int status, const perilune_session *session, const char *call,
                               const char *file, int line)
{
    if (status < 0) {
        fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, perilune_status_name(status),
                perilune_message(session));
        exit(1);
    }
}

static inline void expect_true(int truth, const char *what, const char *file, int line)
{
    if (!truth) {
        fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
        exit(1);
    }
}

#define CHECK(session, call) expect_good((call), (session), #call, __FILE__, __LINE__)
#define EXPECT(truth) expect_true((truth) ? 1 : 0, #truth, __FILE__, __LINE__)

/* Room for one node; a union because a node wants the alignment of its head. */
typedef union place {
    perilune_node node;
    char bytes[PERILUNE_NODE_BYTES_MAX];
} place;

static inline const perilune_node *at(place *to, const char *text)
{
    CHECK(NULL, perilune_node_parse(to, sizeof *to, text, strlen(text), NULL));
    return &to->node;
}

static inline int same_text(const perilune_value *value, int type, const char *text)
{
    return value->type == type && value->as.s.n == strlen(text) &&
           memcmp(value->as.s.p, text, value->as.s.n) == 0;
}

static inline int node_is(const perilune_node *node, const char *text)
{
    char buffer[256];
    size_t size = 0;

    CHECK(NULL, perilune_node_text(node, buffer, sizeof buffer, &size));
    return size == strlen(text) && memcmp(buffer, text, size) == 0;
}

#endif

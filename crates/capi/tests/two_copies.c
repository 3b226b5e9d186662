/*
 * Two copies of the library in one process, as two plugins bring them: each is a process of its own to
 * the database. Neither takes the other for dead, both see one tree, and their locks exclude each other.
 *
 *     two_copies LIBRARY COPY DATABASE
 */
#include "expect.h"
#include "perilune.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* What this test calls of one copy. */
struct copy {
    int (*open)(const char *, const perilune_options *, perilune_db **);
    void (*close)(perilune_db *);
    int (*session_open)(perilune_db *, perilune_session **);
    void (*session_close)(perilune_session *);
    int (*node_root)(void *, size_t, const char *, size_t, size_t *);
    int (*set)(perilune_session *, const perilune_node *, const perilune_value *);
    int (*get)(perilune_session *, const perilune_node *, perilune_value *);
    int (*lock)(perilune_session *, uint64_t, const perilune_node *, int32_t, double);
    int (*unlock)(perilune_session *, uint64_t, const perilune_node *);
    perilune_db *db;
    perilune_session *session;
};

/* ISO C knows no conversion from an object pointer to a function pointer; POSIX does. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    EXPECT(symbol != NULL);
    *(void **)function = symbol;
}

static void start(struct copy *copy, const char *path, const char *database)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    EXPECT(library != NULL);
    find(library, "perilune_open", &copy->open);
    find(library, "perilune_close", &copy->close);
    find(library, "perilune_session_open", &copy->session_open);
    find(library, "perilune_session_close", &copy->session_close);
    find(library, "perilune_node_root", &copy->node_root);
    find(library, "perilune_set", &copy->set);
    find(library, "perilune_get", &copy->get);
    find(library, "perilune_lock", &copy->lock);
    find(library, "perilune_unlock", &copy->unlock);
    EXPECT(copy->open(database, NULL, &copy->db) == PERILUNE_OK);
    EXPECT(copy->session_open(copy->db, &copy->session) == PERILUNE_OK);
}

int main(int count, char **arguments)
{
    struct copy one, two;
    uint64_t memory[16];
    const perilune_node *node = (const perilune_node *)memory;
    perilune_value value;
    int round;

    EXPECT(count == 4);
    start(&one, arguments[1], arguments[3]);
    start(&two, arguments[2], arguments[3]);
    EXPECT(one.set != two.set);
    EXPECT(one.node_root(memory, sizeof memory, "^copies", 7, NULL) == PERILUNE_OK);
    for (round = 1; round <= 1000; round++) {
        value = perilune_int(round);
        EXPECT(one.set(one.session, node, &value) == PERILUNE_OK);
        EXPECT(two.get(two.session, node, &value) == PERILUNE_OK && value.as.i == round);
    }
    EXPECT(one.lock(one.session, 0, node, PERILUNE_LOCK_EXCLUSIVE, 0) == PERILUNE_OK);
    EXPECT(two.lock(two.session, 0, node, PERILUNE_LOCK_EXCLUSIVE, 0) == PERILUNE_TIMED_OUT);
    EXPECT(one.unlock(one.session, 0, node) == PERILUNE_OK);
    EXPECT(two.lock(two.session, 0, node, PERILUNE_LOCK_EXCLUSIVE, 0) == PERILUNE_OK);
    /* One ends; the other lives on and keeps its lock. */
    one.session_close(one.session);
    one.close(one.db);
    EXPECT(two.get(two.session, node, &value) == PERILUNE_OK && value.as.i == 1000);
    EXPECT(two.unlock(two.session, 0, node) == PERILUNE_OK);
    two.session_close(two.session);
    two.close(two.db);
    puts("two copies: good");
    return 0;
}

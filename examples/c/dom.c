/*
 * Documents of XML: calls by name, answers, errors, and a change with nodes in one transaction.
 *
 *     ./dom /tmp/dom.db
 */
#include "expect.h"

static place pubs;

static perilune_value text(const char *bytes)
{
    return perilune_string(bytes, strlen(bytes));
}

/* Makes a call that must succeed. */
static perilune_dom_answer *call(perilune_session *session, const char *name, const perilune_value *arguments,
                                 size_t count)
{
    perilune_dom_answer *answer = NULL;
    CHECK(session, perilune_dom_call(session, &pubs.node, name, strlen(name), arguments, count, &answer));
    return answer;
}

/* A call that answers a node: its number. */
static int64_t node_of(perilune_session *session, const char *name, const perilune_value *arguments, size_t count)
{
    perilune_value value;
    perilune_dom_answer *answer = call(session, name, arguments, count);
    EXPECT(perilune_dom_kind(answer) == PERILUNE_DOM_NODE && perilune_dom_count(answer) == 1);
    CHECK(NULL, perilune_dom_value(answer, 0, &value));
    EXPECT(value.type == PERILUNE_INT);
    perilune_dom_close(answer);
    return value.as.i;
}

/* Whether a call answers this text. */
static int says(perilune_session *session, const char *name, const char *expected)
{
    perilune_value value;
    perilune_dom_answer *answer = call(session, name, NULL, 0);
    EXPECT(perilune_dom_kind(answer) == PERILUNE_DOM_VALUE);
    CHECK(NULL, perilune_dom_value(answer, 0, &value));
    int same = value.as.s.n == strlen(expected) && memcmp(value.as.s.p, expected, value.as.s.n) == 0;
    perilune_dom_close(answer);
    return same;
}

static void make(perilune_session *session)
{
    perilune_value arguments[5];
    perilune_dom_answer *answer;

    perilune_dom_close(call(session, "removeDocument", NULL, 0));
    arguments[0] = text("<pubs><pub name=\"Grogan's\"/></pubs>");
    node_of(session, "parse", arguments, 1);
    arguments[0] = perilune_int(node_of(session, "documentElement", NULL, 0));
    arguments[1] = text("pub");
    arguments[2] = perilune_absent();
    arguments[3] = text("name");
    arguments[4] = text("Kehoe's");
    node_of(session, "appendElement", arguments, 5);
    EXPECT(says(session, "output", "<pubs><pub name=\"Grogan's\" /><pub name=\"Kehoe's\" /></pubs>"));

    arguments[1] = text("//pub[@name=$n]");
    arguments[2] = text("variable");
    arguments[3] = text("n");
    arguments[4] = text("Kehoe's");
    answer = call(session, "evaluate", arguments, 5);
    EXPECT(perilune_dom_kind(answer) == PERILUNE_DOM_NODES && perilune_dom_count(answer) == 1);
    perilune_dom_close(answer);
    answer = call(session, "check", NULL, 0);
    EXPECT(perilune_dom_kind(answer) == PERILUNE_DOM_VALUES && perilune_dom_count(answer) == 0);
    perilune_dom_close(answer);
}

static void errors(perilune_session *session)
{
    perilune_value arguments[2], value;
    perilune_dom_answer *answer = NULL;

    arguments[0] = arguments[1] = perilune_int(2);
    EXPECT(perilune_dom_call(session, &pubs.node, "appendChild", 11, arguments, 2, &answer) == PERILUNE_DOM);
    EXPECT(answer == NULL && strncmp(perilune_message(session), "HierarchyRequestError: ", 23) == 0);
    EXPECT(perilune_dom_call(session, &pubs.node, "appendCild", 10, arguments, 2, &answer) == PERILUNE_INVALID);
    EXPECT(perilune_dom_call(session, &pubs.node, "appendChild", 11, arguments, 1, &answer) == PERILUNE_INVALID);
    arguments[0] = perilune_string("\377", 1);
    EXPECT(perilune_dom_call(session, &pubs.node, "parse", 5, arguments, 1, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_dom_kind(NULL) == PERILUNE_DOM_NOTHING && perilune_dom_count(NULL) == 0);
    EXPECT(perilune_dom_value(NULL, 0, &value) == PERILUNE_INVALID);
    perilune_dom_close(NULL);
}

/* A change of the document and a count of changes, both or neither. */
static int rename_first(perilune_session *session, void *context)
{
    place changes;
    perilune_value arguments[3];
    arguments[0] = perilune_int(*(const int64_t *)context);
    arguments[1] = text("name");
    arguments[2] = text("Grogan");
    int status = perilune_dom_call(session, &pubs.node, "setAttribute", 12, arguments, 3, NULL);
    if (status < 0)
        return status;
    status = perilune_incr(session, at(&changes, "^changes"), NULL, NULL);
    return status < 0 ? status : PERILUNE_ROLLBACK;
}

int main(int count, char **words)
{
    perilune_db *db;
    perilune_session *session;

    EXPECT(count == 2);
    CHECK(NULL, perilune_open(words[1], NULL, &db));
    CHECK(NULL, perilune_session_open(db, &session));
    at(&pubs, "^doc(\"pubs\")");
    make(session);
    errors(session);
    int64_t first = node_of(session, "documentElement", NULL, 0) + 1;
    EXPECT(perilune_transaction(session, NULL, rename_first, &first) == PERILUNE_ROLLBACK);
    EXPECT(says(session, "output", "<pubs><pub name=\"Grogan's\" /><pub name=\"Kehoe's\" /></pubs>"));
    perilune_session_close(session);
    perilune_close(db);
    printf("dom: good\n");
    return 0;
}

/*
 * SQL: parameters, rows, functions of the program, errors, and rows with nodes in one transaction.
 *
 *     ./sql /tmp/sql.db
 */
#include "expect.h"

struct called {
    perilune_session *session;
    int times;
};

static perilune_sql_rows *run(perilune_session *session, const char *text, const perilune_value *parameters,
                              size_t count)
{
    perilune_sql_rows *rows = NULL;
    CHECK(session, perilune_sql_run(session, text, strlen(text), parameters, count, &rows));
    return rows;
}

/* Runs a statement whose rows nobody wants; how many it has changed. */
static uint64_t change(perilune_session *session, const char *text)
{
    perilune_sql_rows *rows = run(session, text, NULL, 0);
    uint64_t changes = perilune_sql_changes(rows);
    perilune_sql_close(rows);
    return changes;
}

static void rows(perilune_session *session)
{
    perilune_value parameters[2], value;
    perilune_sql_rows *rows;

    change(session, "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT UNIQUE, height REAL, photo BLOB)");
    parameters[0] = perilune_string("Ada", 3);
    parameters[1] = perilune_double(1.5);
    rows = run(session, "INSERT INTO users(name, height) VALUES (?, ?), ('Ben', NULL)", parameters, 2);
    EXPECT(perilune_sql_changes(rows) == 2 && perilune_sql_last_row(rows) == 2 && perilune_sql_columns(rows) == 0);
    perilune_sql_close(rows);
    parameters[0] = perilune_string("\0\377", 2);
    parameters[0].type = PERILUNE_BLOB;
    rows = run(session, "UPDATE users SET photo = ? WHERE id = 1", parameters, 1);
    perilune_sql_close(rows);

    rows = run(session, "SELECT id, name, height, photo FROM users ORDER BY id", NULL, 0);
    EXPECT(perilune_sql_count(rows) == 2 && perilune_sql_columns(rows) == 4);
    CHECK(NULL, perilune_sql_column(rows, 1, &value));
    EXPECT(value.type == PERILUNE_STRING && value.as.s.n == 4 && memcmp(value.as.s.p, "name", 4) == 0);
    CHECK(NULL, perilune_sql_value(rows, 0, 1, &value));
    EXPECT(value.type == PERILUNE_STRING && memcmp(value.as.s.p, "Ada", 3) == 0);
    CHECK(NULL, perilune_sql_value(rows, 0, 2, &value));
    EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == 1.5);
    CHECK(NULL, perilune_sql_value(rows, 0, 3, &value));
    EXPECT(value.type == PERILUNE_BLOB && value.as.s.n == 2);
    CHECK(NULL, perilune_sql_value(rows, 1, 2, &value));
    EXPECT(value.type == PERILUNE_NULL);
    EXPECT(perilune_sql_value(rows, 2, 0, &value) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_sql_value(rows, 0, 4, &value) == PERILUNE_NOT_FOUND);
    perilune_sql_close(rows);
}

/* A function of the program's: how often it was called stands in the context, and in a node. */
static int twice(void *context, const perilune_value *arguments, size_t count, perilune_sql_call *call)
{
    perilune_value answer, times;
    struct called *called = context;
    perilune_session *session = called->session;
    place node;

    called->times++;
    /* The session is in the transaction of the statement, which the function may not end. */
    EXPECT(perilune_depth(session) > 0);
    CHECK(session, perilune_incr(session, at(&node, "^calls"), NULL, &times));
    EXPECT(perilune_commit(session) == PERILUNE_TRANSACTION_STATE);
    EXPECT(perilune_sql_function(session, "twice", 0, 0, NULL, NULL, NULL) == PERILUNE_INVALID);
    CHECK(session, perilune_sql_run(session, "SELECT id FROM users", 20, NULL, 0, NULL));
    if (count != 1 || arguments[0].type != PERILUNE_INT)
        return perilune_sql_raise(call, "a number is expected", 20);
    answer = perilune_int(2 * arguments[0].as.i);
    return perilune_sql_result(call, &answer);
}

static void released(void *context)
{
    ((struct called *)context)->session = NULL;
}

static void functions(perilune_session *session)
{
    struct called called = {session, 0};
    perilune_value value;
    perilune_sql_rows *rows;
    const char *wrong = "SELECT twice('x')";
    place node;

    CHECK(session, perilune_kill(session, at(&node, "^calls")));
    CHECK(session, perilune_sql_function(session, "twice", -1, 1, twice, &called, released));
    rows = run(session, "SELECT twice(21) FROM users WHERE twice(id) = 4", NULL, 0);
    CHECK(NULL, perilune_sql_value(rows, 0, 0, &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == 42 && called.times > 0);
    perilune_sql_close(rows);
    EXPECT(perilune_sql_run(session, wrong, strlen(wrong), NULL, 0, NULL) == PERILUNE_SQL);
    EXPECT(strcmp(perilune_message(session), "38000: function twice: a number is expected") == 0);
    /* What a statement that failed has written by a function is not there. */
    CHECK(session, perilune_get(session, at(&node, "^calls"), &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == called.times - 1);
    EXPECT(perilune_sql_function(session, "upper", 1, 0, twice, &called, NULL) == PERILUNE_SQL);
    CHECK(session, perilune_sql_function(session, "twice", 0, 0, NULL, NULL, NULL));
    EXPECT(called.session == NULL);
    EXPECT(perilune_sql_run(session, "SELECT twice(1)", 15, NULL, 0, NULL) == PERILUNE_SQL);
}

/* Decimals: a whole one is an integer, one with a fraction the double that is nearest to it, which has its digits. */
static void decimals(perilune_session *session)
{
    static const char *const texts[] = {"0.1", "0.2", "-1234567890.12345", "999999999999.999", "123456789012345678"};
    const char *const selects[] = {"SELECT price, price * 3, price + 0.2 FROM prices WHERE price = ?",
                                   "SELECT price FROM prices WHERE price = ?"};
    const char *insert = "INSERT INTO prices(price) VALUES (?)", *sum = "SELECT sum(price) FROM prices WHERE price < 1";
    perilune_value parameter, value;
    perilune_sql_rows *rows;
    char text[64];
    size_t i;

    change(session, "DROP TABLE IF EXISTS prices");
    change(session, "CREATE TABLE prices(id INTEGER PRIMARY KEY, price DECIMAL)");
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        parameter = perilune_string(texts[i], strlen(texts[i]));
        parameter.type = i % 2 == 0 ? PERILUNE_DECIMAL : PERILUNE_STRING;
        perilune_sql_close(run(session, insert, &parameter, 1));
        parameter.type = PERILUNE_DECIMAL;
        rows = i < 4 ? run(session, selects[i > 0], &parameter, 1) : run(session, "SELECT max(price) FROM prices", NULL, 0);
        EXPECT(perilune_sql_count(rows) == 1);
        CHECK(NULL, perilune_sql_value(rows, 0, 0, &value));
        if (value.type == PERILUNE_INT)
            snprintf(text, sizeof text, "%lld", (long long)value.as.i);
        else
            snprintf(text, sizeof text, "%.15g", value.as.d);
        EXPECT(strcmp(text, texts[i]) == 0);
        if (i == 0) {
            CHECK(NULL, perilune_sql_value(rows, 0, 1, &value));
            EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == 0.3);
            CHECK(NULL, perilune_sql_value(rows, 0, 2, &value));
            EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == 0.3);
        }
        perilune_sql_close(rows);
    }
    rows = run(session, sum, NULL, 0);
    CHECK(NULL, perilune_sql_value(rows, 0, 0, &value));
    EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == -1234567889.82345);
    perilune_sql_close(rows);
    /* More digits with a fraction than a number of SQL has: an error, and no other number. */
    parameter = perilune_string("0.1234567890123456", 18);
    EXPECT(perilune_sql_run(session, insert, strlen(insert), &parameter, 1, NULL) == PERILUNE_SQL);
    EXPECT(strncmp(perilune_message(session), "22003: ", 7) == 0);
    parameter.type = PERILUNE_DECIMAL;
    EXPECT(perilune_sql_run(session, "SELECT ?", 8, &parameter, 1, NULL) == PERILUNE_SQL);
    EXPECT(strncmp(perilune_message(session), "22003: ", 7) == 0);
    change(session, "DROP TABLE prices");
}

static void errors(perilune_session *session)
{
    const char *twice = "INSERT INTO users(name) VALUES ('Ada')", *wrong = "SELECT * FROM nowhere";

    EXPECT(perilune_sql_run(session, twice, strlen(twice), NULL, 0, NULL) == PERILUNE_SQL);
    EXPECT(strcmp(perilune_message(session), "23505: UNIQUE constraint failed: users.name") == 0);
    EXPECT(perilune_sql_run(session, wrong, strlen(wrong), NULL, 0, NULL) == PERILUNE_SQL);
    EXPECT(strcmp(perilune_message(session), "42P01: no such table: nowhere (at byte 14)") == 0);
    EXPECT(perilune_sql_run(session, NULL, 5, NULL, 0, NULL) == PERILUNE_INVALID);
    EXPECT(perilune_sql_count(NULL) == 0);
    perilune_sql_close(NULL);
}

/* Run twice: another session changes the row between. */
static int body(perilune_session *session, void *rival)
{
    perilune_session **other = rival;
    perilune_sql_rows *rows = NULL;
    perilune_value sum;
    place node;
    const char *read = "SELECT height FROM users WHERE id = 2", *write = "UPDATE users SET height = 2 WHERE id = 2";
    int status = perilune_sql_run(session, read, strlen(read), NULL, 0, &rows);

    perilune_sql_close(rows);
    if (status != PERILUNE_OK)
        return status;
    if (*other != NULL) {
        EXPECT(change(*other, "UPDATE users SET height = 3 WHERE id = 2") == 1);
        *other = NULL;
    }
    status = perilune_incr(session, at(&node, "^changes"), NULL, &sum);
    return status != PERILUNE_OK ? status : perilune_sql_run(session, write, strlen(write), NULL, 0, NULL);
}

int main(int argc, char **argv)
{
    perilune_db *db = NULL;
    perilune_session *session = NULL, *rival = NULL, *other;
    perilune_value value;
    place node;

    CHECK(NULL, perilune_open(argc > 1 ? argv[1] : NULL, NULL, &db));
    CHECK(NULL, perilune_session_open(db, &session));
    CHECK(NULL, perilune_session_open(db, &rival));
    perilune_close(db);
    change(session, "DROP TABLE IF EXISTS users");
    rows(session);
    functions(session);
    decimals(session);
    errors(session);
    other = rival;
    CHECK(session, perilune_transaction(session, NULL, body, &other));
    CHECK(session, perilune_get(session, at(&node, "^changes"), &value));
    EXPECT(value.type == PERILUNE_INT);
    EXPECT(change(session, "DELETE FROM users WHERE height = 2") == 1);
    perilune_session_close(rival);
    perilune_session_close(session);
    printf("sql: good\n");
    return 0;
}

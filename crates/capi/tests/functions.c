/*
 * The tree's functions in a program that is not ours: what they do, what they leave alone, and that they end.
 *
 *     functions CASE DATABASE LIBRARY COPY
 *
 * A case is a process of its own, since signals, threads and forks are the process's. Each endless loop takes the five seconds
 * of the limit.
 */
#define _GNU_SOURCE
#include "expect.h"
#include "perilune.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const FOREVER = "CREATE FUNCTION forever() AS 'while true do pcall(error) end'";
static const char *const TOO_LONG = "57014: function forever: it takes too long: let it do less, or raise the limit";

static const char *database;

/* The first value of the first row as text, or the error. */
static const char *told(perilune_session *session, const char *text)
{
    static __thread char answer[4096];
    perilune_sql_rows *rows = NULL;
    perilune_value value;

    if (perilune_sql_run(session, text, strlen(text), NULL, 0, &rows) != PERILUNE_OK) {
        snprintf(answer, sizeof answer, "%s", perilune_message(session));
        return answer;
    }
    answer[0] = 0;
    if (perilune_sql_count(rows) > 0 && perilune_sql_value(rows, 0, 0, &value) == PERILUNE_OK) {
        if (value.type == PERILUNE_INT)
            snprintf(answer, sizeof answer, "%lld", (long long)value.as.i);
        else if (value.type == PERILUNE_DOUBLE)
            snprintf(answer, sizeof answer, "%g", value.as.d);
        else if (value.type == PERILUNE_STRING)
            snprintf(answer, sizeof answer, "%.*s", (int)value.as.s.n, value.as.s.p);
        else
            snprintf(answer, sizeof answer, "NULL");
    }
    perilune_sql_close(rows);
    return answer;
}

static void expect(perilune_session *session, const char *text, const char *expected)
{
    const char *found = told(session, text);

    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "%s\n  answers  %s\n  and not  %s\n", text, found, expected);
        exit(1);
    }
}

static void expect_part(perilune_session *session, const char *text, const char *part)
{
    const char *found = told(session, text);

    if (strstr(found, part) == NULL) {
        fprintf(stderr, "%s\n  answers  %s\n  without  %s\n", text, found, part);
        exit(1);
    }
}

static perilune_db *opened(perilune_session **session)
{
    perilune_db *db;

    EXPECT(perilune_open(database, NULL, &db) == PERILUNE_OK);
    EXPECT(perilune_session_open(db, session) == PERILUNE_OK);
    return db;
}

static void closed(perilune_db *db, perilune_session *session)
{
    perilune_session_close(session);
    perilune_close(db);
}

/* How many threads of the process are called so. */
static int threads_called(const char *name)
{
    DIR *all = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;

    EXPECT(all != NULL);
    while ((entry = readdir(all)) != NULL) {
        char path[300], line[64] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(line, sizeof line, file) != NULL && strncmp(line, name, strlen(name)) == 0)
            count++;
        fclose(file);
    }
    closedir(all);
    return count;
}

/* There is one thread that stops functions; it has its name soon after it was made. */
static void expect_thread(void)
{
    time_t end = time(NULL) + 60;

    while (threads_called("perilune-sql") == 0 && time(NULL) < end)
        sched_yield();
    EXPECT(threads_called("perilune-sql") == 1);
}

static void kinds(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);

    expect(s, "CREATE FUNCTION gross(net, rate) DETERMINISTIC AS 'return net * (1 + rate)'", "");
    expect(s, "INTERPRET LUA 'function initial(name) return name:sub(1, 1) end'", "");
    expect(s, "CREATE FUNCTION is_even(n) DETERMINISTIC AS 'return n % 2 == 0'", "");
    expect(s, "CREATE FUNCTION answer() AS 'return 42'", "");
    expect(s, "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, net REAL CHECK (is_even(net)), n INT DEFAULT (answer()))", "");
    expect(s, "CREATE INDEX dear ON item(gross(net, 1))", "");
    expect(s, "INSERT INTO item(name, net) VALUES ('apple', 2), ('bread', gross(2, 1))", "");
    expect(s, "SELECT group_concat(name || ' ' || gross(net, 0.5) || ' ' || n, ', ') FROM item", "apple 3 42, bread 6 42");
    expect(s, "SELECT name FROM item WHERE gross(net, 1) > 6", "bread");
    expect(s, "SELECT name FROM item ORDER BY gross(net, -2)", "bread");
    expect(s, "SELECT count(*) FROM (SELECT initial(name) FROM item GROUP BY initial(name))", "2");
    expect_part(s, "INSERT INTO item(name, net) VALUES ('x', 3)", "23514: ");
    expect(s, "UPDATE item SET net = gross(net, 1) WHERE initial(name) = 'a'", "");
    expect(s, "SELECT net FROM item WHERE gross(net, 1) = 8 AND id = 1", "4");
    expect(s,
           "CREATE AGGREGATE product(x) AS 'local all = 1\n"
           "  return {step = function(x) all = all * x end, final = function() return all end}'",
           "");
    expect(s, "SELECT product(net) FROM item", "16");
    expect(s,
           "CREATE FUNCTION series(low, high) RETURNS TABLE(n) AS 'local n = low - 1\n"
           "  return function() n = n + 1 if n <= high then return n end end'",
           "");
    expect(s, "SELECT group_concat(n, ' ') FROM series(2, 4)", "2 3 4");
    expect(s,
           "CREATE TRIGGER tidy BEFORE INSERT ON item LANGUAGE lua AS '\n"
           "  if new.name == \"no\" then error(\"not this one\", 0) end\n"
           "  new.name = new.name:lower()'",
           "");
    expect(s, "INSERT INTO item(name, net) VALUES ('CORN', 2) RETURNING name", "corn");
    expect(s, "INSERT INTO item(name, net) VALUES ('no', 2)", "38000: trigger tidy: not this one");
    expect(s,
           "CREATE FUNCTION seen(n) AS 'SQL(\"INSERT INTO item(name, net) VALUES (?, ?)\", \"dill\", n)\n"
           "  return perilune.node(\"^seen\"):incr(n)'",
           "");
    EXPECT(perilune_begin(s, NULL) == PERILUNE_OK);
    expect(s, "SELECT seen(4)", "4");
    EXPECT(perilune_rollback(s) == PERILUNE_OK);
    expect(s, "SELECT count(*) FROM item WHERE name = 'dill'", "0");
    expect(s, "SELECT seen(6)", "6");
    expect(s, "SELECT count(*) FROM item WHERE name = 'dill'", "1");
    expect_part(s, "SELECT seen(7)", "38000: function seen: ");
    expect(s, "SELECT seen(2)", "8");
    expect(s, "CREATE FUNCTION large() AS 'return #(\"x\"):rep(128 * 1024 * 1024)'", "");
    expect_part(s, "SELECT large()", "memory");
    expect(s, "CREATE FUNCTION redis_get() AS 'return redis.call(\"GET\", \"a\")'", "");
    expect(s, "SELECT redis_get()", "38000: function redis_get: redis.call is at a server: run the statement by its command SQL");
    expect(s, FOREVER, "");
    expect(s, "SELECT forever()", TOO_LONG);
    expect(s, "SELECT answer()", "42");
    closed(db, s);
}

/* Who uses no functions has no thread and no handler of theirs. */
static void lazy(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);
    struct sigaction now;

    expect(s, "CREATE TABLE t(a)", "");
    expect(s, "SELECT upper('a')", "A");
    EXPECT(threads_called("perilune-sql") == 0);
    EXPECT(sigaction(SIGURG, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    expect(s, "CREATE FUNCTION one() AS 'return 1'", "");
    expect(s, "SELECT one()", "1");
    expect_thread();
    closed(db, s);
}

/* A child has a thread of its own, which stops what its children's children run as well. */
static void forked(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);
    int status, depth = 0;
    pid_t child;

    expect(s, FOREVER, "");
    expect(s, "CREATE FUNCTION one() AS 'return 1'", "");
    expect(s, "SELECT one()", "1");
    while (depth < 2) {
        EXPECT((child = fork()) >= 0);
        if (child > 0) {
            EXPECT(waitpid(child, &status, 0) == child);
            if (depth == 0) {
                expect(s, "SELECT one()", "1");
                EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
                closed(db, s);
                return;
            }
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
        }
        depth++;
        EXPECT(threads_called("perilune-sql") == 0);
        expect(s, "SELECT one()", "1");
        expect_thread();
    }
    expect(s, "SELECT forever()", TOO_LONG);
    expect(s, "SELECT one()", "1");
    _exit(0);
}

static volatile sig_atomic_t first, second;

static void on_first(int number)
{
    (void)number;
    first++;
}

static struct sigaction replaced;

static void on_second(int number, siginfo_t *info, void *context)
{
    second++;
    if ((replaced.sa_flags & SA_SIGINFO) && info->si_code != SI_QUEUE)
        replaced.sa_sigaction(number, info, context);
}

/* The program's handlers, set before and after ours, get what is theirs and nothing else. */
static void handlers(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);
    struct sigaction action;
    int was;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_first;
    EXPECT(sigaction(SIGURG, &action, NULL) == 0);
    expect(s, FOREVER, "");
    expect(s, "SELECT forever()", TOO_LONG);
    EXPECT(first == 0);
    EXPECT(raise(SIGURG) == 0 && first == 1);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_second;
    action.sa_flags = SA_SIGINFO;
    EXPECT(sigaction(SIGURG, &action, &replaced) == 0);
    EXPECT(raise(SIGURG) == 0 && first == 2 && second == 1);
    expect(s, "SELECT forever()", TOO_LONG);
    /* The second has kept one of ours to itself. Now ours is in front again: it calls the second, which calls ours, which
     * calls the first. */
    EXPECT(first == 2 && second >= 2);
    was = second;
    EXPECT(raise(SIGURG) == 0 && first == 3 && second == was + 1);
    closed(db, s);
}

/* A thread that keeps all signals away keeps them away, and its functions end. */
static void blocked(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);
    sigset_t all, now;

    sigfillset(&all);
    EXPECT(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    expect(s, FOREVER, "");
    expect(s, "SELECT forever()", TOO_LONG);
    EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGURG) == 1);
    closed(db, s);
}

static void *run_many(void *loops)
{
    perilune_session *s;
    perilune_db *db = opened(&s);

    if (loops != NULL)
        expect(s, "SELECT forever()", TOO_LONG);
    for (int i = 0; i < 1000; i++)
        expect(s, "SELECT one() + one()", "2");
    closed(db, s);
    return NULL;
}

static void threads(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);
    pthread_t all[4];

    expect(s, FOREVER, "");
    expect(s, "CREATE FUNCTION one() AS 'return 1'", "");
    for (size_t i = 0; i < 4; i++)
        EXPECT(pthread_create(&all[i], NULL, run_many, i < 2 ? &all : NULL) == 0);
    for (size_t i = 0; i < 4; i++)
        EXPECT(pthread_join(all[i], NULL) == 0);
    expect_thread();
    closed(db, s);
}

static void *run_deep(void *unused)
{
    char parentheses[400], text[600];
    perilune_session *s;
    perilune_db *db = opened(&s);

    (void)unused;
    memset(parentheses, '(', 200);
    memset(parentheses + 200, ')', 200);
    expect(s, "SELECT one()", "1");
    expect_part(s, "SELECT ends('patterns')", "overflow");
    expect_part(s, "SELECT ends('sorts')", "overflow");
    expect_part(s, "SELECT ends('texts')", "overflow");
    expect_part(s, "SELECT ends('coroutines')", "overflow");
    expect_part(s, "SELECT ends('calls')", "overflow");
    expect_part(s, "SELECT ends('indexes')", "loop");
    expect_part(s, "SELECT ends('catches')", "38000");
    expect_part(s, "SELECT ends('statements')", "38000");
    expect(s, "SELECT ends('json')", "1");
    expect(s, "SELECT ends('deep json')", "1");
    expect_part(s, "SELECT ends('tables')", "[[[[");
    expect(s, "SELECT ends('matches')", "1");
    snprintf(text, sizeof text, "CREATE OR REPLACE FUNCTION parsed() AS 'return %.*s1%.*s'", 190, parentheses, 190, parentheses + 200);
    expect(s, text, "");
    expect(s, "SELECT parsed()", "1");
    expect_part(s, "SELECT ends('texts')", "overflow");
    expect(s, "SELECT one()", "1");
    closed(db, s);
    return unused;
}

/* What a function may use of a stack is what there is. */
static void stacks(void)
{
    static const size_t SIZES[] = {512 << 10, 1 << 20, 8 << 20};
    perilune_session *s;
    perilune_db *db = opened(&s);

    expect(s, "CREATE FUNCTION one() AS 'return 1'", "");
    expect(s,
           "CREATE FUNCTION ends(how) AS '\n"
           "  local f\n"
           "  if how == \"patterns\" then f = function() return (\"x\"):gsub(\"x\", f) end\n"
           "  elseif how == \"sorts\" then f = function() table.sort({3, 2, 1}, f) return true end\n"
           "  elseif how == \"texts\" then f = function(t) return tostring(t) .. how end\n"
           "    local t = setmetatable({}, {__tostring = f}) return f(t)\n"
           "  elseif how == \"coroutines\" then f = function() return coroutine.wrap(f)() end\n"
           "  elseif how == \"calls\" then f = function() return 1 + f() end\n"
           "  elseif how == \"indexes\" then local t = {} setmetatable(t, {__index = t}) return t.x\n"
           "  elseif how == \"catches\" then f = function() local ok, why = pcall(f) error(why, 0) end\n"
           "  elseif how == \"json\" then\n"
           "    local text = (\"[\"):rep(900) .. 1 .. (\"]\"):rep(900)\n"
           "    return cjson.encode(cjson.decode(text)) == text and cmsgpack.pack({{{{}}}}) ~= nil\n"
           "  elseif how == \"deep json\" then\n"
           "    cjson.decode_max_depth(2000) cjson.encode_max_depth(2000)\n"
           "    local text, last = (\"[\"):rep(1900) .. 1 .. (\"]\"):rep(1900)\n"
           "    f = function()\n"
           "      pcall(string.gsub, \"x\", \"x\", f)\n"
           "      last = last or select(2, pcall(cjson.decode, text))\n"
           "      error(\"up\", 0)\n"
           "    end\n"
           "    pcall(f) return last ~= nil\n"
           "  elseif how == \"tables\" then local t = {} for i = 1, 90 do t = {t} end return t\n"
           "  elseif how == \"matches\" then return (\"a\"):rep(150):find((\"a?\"):rep(150) .. \"$\")\n"
           "  elseif how == \"statements\" then f = function() return SQL(\"SELECT ends(?)\", how) end end\n"
           "  return f()'",
           "");
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        pthread_attr_t attributes;
        pthread_t thread;

        EXPECT(pthread_attr_init(&attributes) == 0);
        EXPECT(pthread_attr_setstacksize(&attributes, SIZES[i]) == 0);
        EXPECT(pthread_create(&thread, &attributes, run_deep, NULL) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
        pthread_attr_destroy(&attributes);
    }
    closed(db, s);
}

/* ISO C knows no conversion from an object pointer to a function pointer; POSIX does. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    EXPECT(symbol != NULL);
    *(void **)function = symbol;
}

/* What the cases below call of a library that they load. */
struct loaded {
    void *library;
    int (*open)(const char *, const perilune_options *, perilune_db **);
    void (*close)(perilune_db *);
    int (*session_open)(perilune_db *, perilune_session **);
    void (*session_close)(perilune_session *);
    int (*run)(perilune_session *, const char *, size_t, const perilune_value *, size_t, perilune_sql_rows **);
    perilune_db *db;
    perilune_session *session;
};

static void load(struct loaded *it, const char *path)
{
    it->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT(it->library != NULL);
    find(it->library, "perilune_open", &it->open);
    find(it->library, "perilune_close", &it->close);
    find(it->library, "perilune_session_open", &it->session_open);
    find(it->library, "perilune_session_close", &it->session_close);
    find(it->library, "perilune_sql_run", &it->run);
    EXPECT(it->open(database, NULL, &it->db) == PERILUNE_OK);
    EXPECT(it->session_open(it->db, &it->session) == PERILUNE_OK);
}

static int ran(struct loaded *it, const char *text)
{
    return it->run(it->session, text, strlen(text), NULL, 0, NULL);
}

/* In front of the system's, for the library, which is linked in: there is no thread to be had. */
static volatile int has_no_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (has_no_threads)
        return EAGAIN;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    EXPECT(create != NULL);
    return create(thread, attributes, start, argument);
}

/* Without the thread that ends functions none runs, and the next one asks for it again. */
static void starved(void)
{
    perilune_session *s;
    perilune_db *db = opened(&s);

    expect(s, "SELECT 1", "1");
    has_no_threads = 1;
    expect_part(s, "CREATE FUNCTION one() AS 'return 1'", "there is no thread to be had that ends functions in time");
    EXPECT(threads_called("perilune-sql") == 0);
    has_no_threads = 0;
    expect(s, "CREATE FUNCTION one() AS 'return 1'", "");
    expect(s, "SELECT one()", "1");
    expect_thread();
    closed(db, s);
}

/* A library whose thread runs is not unloaded. */
static void unloaded(const char *path)
{
    for (int times = 0; times < 3; times++) {
        struct loaded it;

        load(&it, path);
        EXPECT(ran(&it, "CREATE FUNCTION IF NOT EXISTS one() AS 'return 1'") == PERILUNE_OK);
        EXPECT(ran(&it, "SELECT one()") == PERILUNE_OK);
        it.session_close(it.session);
        it.close(it.db);
        EXPECT(dlclose(it.library) == 0);
        EXPECT(dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL);
        expect_thread();
        EXPECT(raise(SIGURG) == 0);
    }
}

/* Two copies of the library hand on each other's signals, and the program's. */
static void copied(const char *path, const char *copy)
{
    struct sigaction action;
    struct loaded one, two;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_first;
    EXPECT(sigaction(SIGURG, &action, NULL) == 0);
    load(&one, path);
    load(&two, copy);
    EXPECT(ran(&one, FOREVER) == PERILUNE_OK);
    EXPECT(ran(&two, "CREATE FUNCTION one() AS 'return 1'") == PERILUNE_OK);
    EXPECT(ran(&two, "SELECT one()") == PERILUNE_OK);
    EXPECT(ran(&one, "SELECT forever()") == PERILUNE_SQL);
    EXPECT(ran(&two, "SELECT forever()") == PERILUNE_SQL);
    EXPECT(first == 0);
    EXPECT(raise(SIGURG) == 0 && first == 1);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } CASES[] = {{"kinds", kinds},     {"lazy", lazy},       {"forked", forked}, {"handlers", handlers},
                 {"blocked", blocked}, {"threads", threads}, {"stacks", stacks},
                 {"starved", starved}};

    EXPECT(count == 5);
    database = arguments[2];
    if (strcmp(arguments[1], "unloaded") == 0 || strcmp(arguments[1], "copied") == 0) {
        if (arguments[1][0] == 'u')
            unloaded(arguments[3]);
        else
            copied(arguments[3], arguments[4]);
        puts("good");
        return 0;
    }
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(arguments[1], CASES[i].name) == 0) {
            CASES[i].run();
            puts("good");
            return 0;
        }
    return 2;
}

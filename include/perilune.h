/*
 * Perilune: an embedded database that many processes share: an ordered tree of nodes
 * ^name(subscript, ...) in one mapped file.
 *
 * This file is the contract for C and for every binding. C99 and C++; Linux on x86-64 and arm64.
 *
 * The objects
 *   perilune_db       an open database. Any thread may use it.
 *   perilune_session  one thread's way in. Any thread may use it, one at a time.
 *   perilune_node     the address of a node: a flat block of memory that the caller owns. Never
 *                     changed except by the functions that take it as not const; may be copied
 *                     with memcpy, shared by threads, and used with every session and database.
 *   perilune_cursor   a position in an iteration; a call with it counts as one with its session.
 *   perilune_value    a typed value or a subscript: a number, or a view of bytes.
 *
 * What functions return
 *   PERILUNE_OK (0), a positive answer that is not an error (PERILUNE_NOT_FOUND,
 *   PERILUNE_TIMED_OUT, PERILUNE_DIFFERENT), or a negative error of `enum perilune_status`.
 *   perilune_message() gives the text of the last error, with what to do about it. After an error
 *   the outputs are unspecified and nothing was written, unless it is PERILUNE_NOT_DURABLE or
 *   PERILUNE_COMMIT_UNKNOWN, or the function says otherwise. No function calls longjmp; none aborts the process,
 *   unless it finds no memory; only perilune_install_sigbus installs a signal handler. A fault inside Perilune is
 *   PERILUNE_INTERNAL.
 *
 * What every function may return, so that it is not repeated below
 *   PERILUNE_INVALID   a NULL where none is allowed, an unknown type, flag or option
 *   PERILUNE_CLOSED    the cursor's session was closed
 *   PERILUNE_FORKED    the transaction or snapshot was begun before fork(): leave it, begin one in the child
 *   PERILUNE_BUSY      a stopped process holds a page for longer than `wait_limit`
 *   PERILUNE_INTERNAL, PERILUNE_CORRUPT, PERILUNE_IO, and behind a server PERILUNE_UNAVAILABLE
 *   and, inside a transaction, PERILUNE_CONFLICT: return it from the body, which is then run again.
 * Writing functions besides: PERILUNE_READ_ONLY, PERILUNE_NO_SPACE, PERILUNE_LIMIT_REACHED (the file has `max_size`),
 *   PERILUNE_WRITES_STOPPED, PERILUNE_KEY_TOO_LONG, PERILUNE_VALUE_TOO_LONG, PERILUNE_NOT_DURABLE, and behind a
 *   server PERILUNE_COMMIT_UNKNOWN.
 *
 * Who frees
 *   What a function named *_open gives is ended by the function named *_close. Bytes that a value
 *   refers to belong to Perilune when Perilune gave them: they stay until the next call with the
 *   same session (or the same cursor, for a cursor's entries; or, for functions on nodes and numbers
 *   without a session, the next such call of the same thread). They may be passed to that next call.
 *   Bytes that the caller passes in are not kept after the call.
 *
 * What may block
 *   Functions marked "Waits" sleep until what they wait for comes. All others take as long as their
 *   work; a write may wait for a few milliseconds for space in the log, and a commit for its
 *   durability. Any may wait for another process that holds a page, which takes nanoseconds unless that
 *   process is stopped: at most `wait_limit`. Of a database behind a server, each waits for the answer.
 *
 * Names
 *   "^name" lies in the database. "name" without ^ lies in memory that is private to the session,
 *   with the same operations; it ends with the session. A name is a letter, % or _, then letters,
 *   digits, %, _ or a point; up to 255 bytes. Keys in the database take up to 1,900 encoded bytes,
 *   private ones up to 4 MiB. A subscript takes up to 1 MiB.
 */
#ifndef PERILUNE_H
#define PERILUNE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks what libperilune exports. */
#ifndef PERILUNE_API
#define PERILUNE_API extern
#endif

#define PERILUNE_VERSION_MAJOR 0
#define PERILUNE_VERSION_MINOR 1
#define PERILUNE_VERSION_PATCH 0

typedef struct perilune_db perilune_db;
typedef struct perilune_session perilune_session;
typedef struct perilune_cursor perilune_cursor;

/* ------------------------------------------------------------------------------- status --- */

enum perilune_status {
    PERILUNE_OK = 0,

    /* Answers, not errors. */
    PERILUNE_NOT_FOUND = 1, /* no value, no further node, lock not held */
    PERILUNE_TIMED_OUT = 2, /* the wait ended before what was waited for came */
    PERILUNE_DIFFERENT = 3, /* compare-and-set: the value is not the expected one */

    /* Control flow of transactions: return it from the body unchanged. */
    PERILUNE_CONFLICT = -1, /* what was read is no longer one state: run the transaction again */
    PERILUNE_RESTART = -2,  /* the body asks to be run again from the outermost level */
    PERILUNE_ROLLBACK = -3, /* the body asks to drop this level's writes */

    PERILUNE_TRANSACTION_TIMEOUT = -4, /* the time limit of all tries together was reached */
    PERILUNE_TRANSACTION_STATE = -5,   /* needs an open transaction, or is not allowed in one */
    PERILUNE_DEADLOCK = -6,            /* the lock would close a circle of waiters */
    PERILUNE_COMMIT_UNKNOWN = -7,      /* behind a server only: it may have happened */
    PERILUNE_FORKED = -8,

    PERILUNE_INVALID = -9,              /* an argument or option; the message says which are good */
    PERILUNE_INVALID_NAME = -10,        /* not a letter, % or _, then letters, digits, %, _, . */
    PERILUNE_TOO_MANY_SUBSCRIPTS = -11, /* 255 at most */
    PERILUNE_KEY_TOO_LONG = -12,
    PERILUNE_VALUE_TOO_LONG = -13,
    PERILUNE_NOT_A_NUMBER = -14,    /* increment of, or by, what is no number; NaN, infinity */
    PERILUNE_NUMBER_OVERFLOW = -15, /* a result that no number holds exactly */
    PERILUNE_LIMIT_REACHED = -16,   /* sessions, levels, locks, watches: the message says which */
    PERILUNE_CHANNEL_FULL = -17,
    PERILUNE_BUFFER_TOO_SMALL = -18, /* the needed size was stored: give that much */
    PERILUNE_CLOSED = -19,

    PERILUNE_READ_ONLY = -20,
    PERILUNE_NOT_A_DATABASE = -21, /* no Perilune file, or of another format */
    PERILUNE_CANNOT_OPEN = -22,
    PERILUNE_NO_SPACE = -23,
    PERILUNE_IO = -24,
    PERILUNE_WRITES_STOPPED = -25, /* nothing was written: an I/O error, or it was replaced; reads go on */
    PERILUNE_CORRUPT = -26,
    PERILUNE_OUT_OF_MEMORY = -27, /* of bindings; in the library itself it ends the process */
    PERILUNE_INTERNAL = -28, /* an invariant of Perilune failed: please report the message */
    PERILUNE_OVERLAP = -29,  /* copy, merge: one tree contains the other */
    PERILUNE_PRIVATE = -30,  /* not possible for a name without ^ */
    PERILUNE_NOT_DURABLE = -31, /* it has happened, all see it, but it is not on disk: do not do it again */
    PERILUNE_BUSY = -32,        /* another process holds a page and is stopped: the message names it; nothing was done */
    PERILUNE_UNAVAILABLE = -33, /* its server is not to be reached now: nothing has happened, try later */
    PERILUNE_SQL = -34,         /* a statement of SQL: the message begins with its SQLSTATE, "23505: ..." */
    PERILUNE_GRAPH = -35,       /* what a graph refuses: the message begins with what it is, "NO_VERTEX: ..." */
    PERILUNE_DOM = -36,         /* a document: the message begins with the DOM's name, "NotFoundError: ..." */

    /* A transaction's body may return codes of its own from here downwards. */
    PERILUNE_USER = -1000
};

/*
 * The version of the library, as "0.1.0". Any thread; never fails; static memory.
 */
PERILUNE_API const char *perilune_version(void);

/*
 * The text of the last error of `session`, or with NULL the last error of this thread in a function
 * without a session (open, nodes, numbers). Empty, never NULL, when there was none. Stays until the
 * next call with that session (that thread) which fails.
 */
PERILUNE_API const char *perilune_message(const perilune_session *session);

/*
 * The name of a status, as "PERILUNE_CONFLICT". Any thread; never fails; static memory.
 */
PERILUNE_API const char *perilune_status_name(int status);

/* ------------------------------------------------------------------------------- values --- */

enum perilune_type {
    PERILUNE_ABSENT = 0,     /* no value; as a new value it removes */
    PERILUNE_STRING = 1,     /* as.s: any bytes, up to 512 MiB */
    PERILUNE_INT = 2,        /* as.i */
    PERILUNE_DECIMAL = 3,    /* as.s: text of a number of up to 18 digits, as "1.5" or ".25" */
    PERILUNE_DOUBLE = 4,     /* as.d: finite */
    PERILUNE_BOOL = 5,       /* as.i: 0 or 1 */
    PERILUNE_NULL = 6,
    PERILUNE_EMPTY_LIST = 7,
    PERILUNE_EMPTY_MAP = 8,
    PERILUNE_BLOB = 9        /* as.s: bytes that are no text; of perilune_sql_* alone */
};

/*
 * A value, or a subscript (types PERILUNE_STRING, _INT, _DECIMAL, _DOUBLE only). As a subscript a
 * string that is the canonical text of a number is that number, and a double with an integral value
 * is the integer; subscripts come back as _INT, _DECIMAL or _STRING.
 */
typedef struct perilune_value {
    int32_t type;      /* enum perilune_type */
    uint32_t reserved; /* 0 */
    union {
        int64_t i;
        double d;
        struct {
            const char *p; /* not ended by a zero byte */
            size_t n;
        } s;
    } as;
} perilune_value;

static inline perilune_value perilune_absent(void)
{
    perilune_value v;
    v.type = PERILUNE_ABSENT;
    v.reserved = 0;
    v.as.s.p = 0;
    v.as.s.n = 0;
    return v;
}

static inline perilune_value perilune_int(int64_t i)
{
    perilune_value v = perilune_absent();
    v.type = PERILUNE_INT;
    v.as.i = i;
    return v;
}

static inline perilune_value perilune_double(double d)
{
    perilune_value v = perilune_absent();
    v.type = PERILUNE_DOUBLE;
    v.as.d = d;
    return v;
}

static inline perilune_value perilune_bool(int b)
{
    perilune_value v = perilune_absent();
    v.type = PERILUNE_BOOL;
    v.as.i = b != 0;
    return v;
}

/* `bytes` must outlive the value. */
static inline perilune_value perilune_string(const char *bytes, size_t size)
{
    perilune_value v = perilune_absent();
    v.type = PERILUNE_STRING;
    v.as.s.p = bytes;
    v.as.s.n = size;
    return v;
}

/* `text` must outlive the value. */
static inline perilune_value perilune_decimal(const char *text, size_t size)
{
    perilune_value v = perilune_string(text, size);
    v.type = PERILUNE_DECIMAL;
    return v;
}

/* For PERILUNE_NULL, PERILUNE_EMPTY_LIST and PERILUNE_EMPTY_MAP. */
static inline perilune_value perilune_of_type(int type)
{
    perilune_value v = perilune_absent();
    v.type = type;
    return v;
}

/*
 * Writes the text of `value` into `buffer` (not ended by a zero byte) and its size into `*size`:
 * strings as they are, numbers in canonical form, "true", "false", "null", "[]", "{}", and for
 * PERILUNE_ABSENT nothing. Any thread; does not block.
 * Errors: PERILUNE_BUFFER_TOO_SMALL (`*size` is the size needed).
 */
PERILUNE_API int perilune_value_text(const perilune_value *value, char *buffer, size_t capacity,
                                     size_t *size);

/*
 * Reads a decimal number in `text` ("1.50", "-.5", "007", "+1E3") as the PERILUNE_INT or
 * PERILUNE_DECIMAL that it is. Any thread; does not block; a decimal's text stays until the next
 * such call of this thread.
 * Returns PERILUNE_NOT_FOUND when `text` is not a number from its first byte to its last.
 * Errors: PERILUNE_NUMBER_OVERFLOW (more than 18 digits, or an exponent out of range).
 */
PERILUNE_API int perilune_number_parse(const char *text, size_t size, perilune_value *number);

/*
 * 1 when `text` is the canonical text of a number, which as a subscript is that number; else 0.
 * Any thread; does not block.
 */
PERILUNE_API int perilune_number_is_canonical(const char *text, size_t size);

/*
 * Writes the canonical text of the number in `text` ("1.50" -> "1.5", "1E3" -> "1000").
 * Otherwise as perilune_number_parse. Errors besides: PERILUNE_BUFFER_TOO_SMALL; 96 bytes are always enough.
 */
PERILUNE_API int perilune_number_canonical(const char *text, size_t size, char *buffer,
                                           size_t capacity, size_t *written);

/*
 * Reads the number that M's unary plus sees in any bytes: signs, digits, a point, an upper-case
 * exponent, until the first byte that does not fit; digits after the 18th are dropped ("12abc" -> 12,
 * "abc" -> 0). Any thread; does not block; a decimal's text stays until the thread's next such call.
 * Errors: PERILUNE_NUMBER_OVERFLOW from 1E47 on.
 */
PERILUNE_API int perilune_number_lenient(const char *text, size_t size, perilune_value *number);

/*
 * Adds two numbers (PERILUNE_INT, _DECIMAL, _DOUBLE). The sum is exact, or with `truncating` 1 its
 * digits after the 18th are dropped, as in M. Any thread; does not block; a decimal's text stays until
 * the thread's next such call. Errors: PERILUNE_NOT_A_NUMBER, PERILUNE_NUMBER_OVERFLOW.
 */
PERILUNE_API int perilune_number_add(const perilune_value *a, const perilune_value *b,
                                     int truncating, perilune_value *sum);

/* -------------------------------------------------------------- databases and sessions --- */

enum perilune_durability {
    PERILUNE_DURABILITY_DEFAULT = 0,  /* of the database; a new one: periodic */
    PERILUNE_DURABILITY_NONE = 1,     /* survives the death of all processes, not of the machine */
    PERILUNE_DURABILITY_PERIODIC = 2, /* on disk within 50 ms */
    PERILUNE_DURABILITY_FSYNC = 3     /* on disk when the commit returns */
};

/*
 * How to open a database. Start from PERILUNE_OPTIONS_INIT: `size` tells the library which fields
 * the program knows, so that later versions can add some.
 */
typedef struct perilune_options {
    uint32_t size;       /* sizeof(perilune_options) */
    int32_t create;      /* 1: create it when missing */
    int32_t read_only;   /* 1: refuse writes */
    int32_t durability;  /* enum perilune_durability */
    uint64_t max_size;   /* bytes the file may take; 0: $PERILUNE_MAX_SIZE or 1 TiB; while others have the
                            database open, what the first of them allowed */
    double timeout;      /* seconds to wait for processes that open or close it; 0: 10 s */
    uint32_t file_mode;  /* permissions of created files; 0: 0600 */
    int32_t any_filesystem; /* 1: also on btrfs and zfs, which are slow here */
    const char *shm_dir; /* where the shared memory file lies; NULL: beside the database */
    int32_t accept_lost_commits; /* 1: open it even if commits in a damaged or lost log must be given up */
    int32_t reserved;    /* 0 */
    double wait_limit;   /* seconds to wait for a page that another process holds, then PERILUNE_BUSY; 0: 10 s */
} perilune_options;

#define PERILUNE_OPTIONS_INIT {sizeof(perilune_options), 1, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0.0}

/*
 * Opens the database at `path` - a file; the address of a server: tcp://host:port, tls://..., unix:/path
 * (docs/guide/remote.md); memory:, a new one in the memory of this process, or memory:NAME, one for all in the
 * process that name it so -, or with NULL the default one ($PERILUNE_DB, else
 * $XDG_DATA_HOME/perilune/default.db), and stores it in `*db`. `options` may be NULL.
 * Any thread. Waits, up to `timeout`, while another process opens, closes or upgrades it.
 * Errors: PERILUNE_NOT_A_DATABASE, PERILUNE_CANNOT_OPEN, PERILUNE_NO_SPACE, PERILUNE_LIMIT_REACHED;
 * text by perilune_message(NULL).
 */
PERILUNE_API int perilune_open(const char *path, const perilune_options *options, perilune_db **db);

/*
 * Ends the caller's use of `db`. Sessions that are still open keep the database open; it is closed
 * with the last of them. NULL is allowed. Waits for the closing checkpoint if this is the machine's
 * last use of the database.
 */
PERILUNE_API void perilune_close(perilune_db *db);

/*
 * The path of `db`, or the address of its server without a password, ended by a zero byte; stays until
 * perilune_close. Any thread.
 */
PERILUNE_API const char *perilune_path(const perilune_db *db);

/* 1 if `db` is behind a server (its path was tcp://, tls:// or unix:), else 0. Any thread. */
PERILUNE_API int perilune_is_remote(const perilune_db *db);

typedef struct perilune_limits {
    uint32_t size;              /* sizeof(perilune_limits), set by the caller */
    uint32_t subscripts;        /* of one node */
    uint64_t key_bytes;         /* encoded bytes of a key in the database */
    uint64_t private_key_bytes; /* encoded bytes of a key without ^ */
    uint64_t value_bytes;
    uint32_t transaction_depth; /* nested levels */
    uint32_t reserved;
} perilune_limits;

/*
 * Stores what `db` can take. Any thread; does not block.
 */
PERILUNE_API int perilune_limits_of(const perilune_db *db, perilune_limits *limits);

/*
 * Opens a session of `db`. Any thread.
 * Errors: PERILUNE_LIMIT_REACHED; text by perilune_message(NULL).
 */
PERILUNE_API int perilune_session_open(perilune_db *db, perilune_session **session);

/*
 * Opens a session of `db` that reads the database as it is now: everything committed before the call
 * and nothing after, however long it is read. It blocks nobody. What writes to the database, and locks,
 * watches and channels, answers PERILUNE_READ_ONLY; private names work. The space it needs is kept until
 * it is closed or the process ends; in a forked child it answers PERILUNE_FORKED. Any thread; waits
 * for writes under way, which take microseconds.
 * Errors: PERILUNE_LIMIT_REACHED (255 at once); PERILUNE_READ_ONLY if `db` was opened for reading only;
 * PERILUNE_INVALID for a database that is not in a file.
 */
PERILUNE_API int perilune_snapshot_open(perilune_db *db, perilune_session **session);

/*
 * Closes `session`: rolls back its transaction, ends its watches, releases its own locks (owner 0)
 * and drops its private names. Its cursors may still be closed, but answer PERILUNE_CLOSED.
 * NULL is allowed. Not from inside a body of perilune_transaction.
 */
PERILUNE_API void perilune_session_close(perilune_session *session);

/* -------------------------------------------------------------------------------- nodes --- */

/*
 * The head of a node; the encoded key follows it in the same block. The block must be aligned to 8
 * bytes, and writable (the library may keep a hint in it). A binding can allocate it in memory of its
 * own, e.g. inside a garbage-collected object. Read the fields if you like; write none.
 */
typedef struct perilune_node {
    uint32_t key_size;    /* bytes of the encoded key that follow */
    uint32_t parent_size; /* bytes of the parent's key, a prefix of this one; 0 for a name */
    uint16_t depth;       /* number of subscripts */
    uint16_t flags;       /* PERILUNE_NODE_PRIVATE */
    uint32_t reserved;
    uint64_t hint[2];
} perilune_node;

#define PERILUNE_NODE_PRIVATE 1u /* a name without ^ */

/* Bytes of a node whose encoded key has `key_size` bytes. */
#define PERILUNE_NODE_BYTES(key_size) (sizeof(perilune_node) + (size_t)(key_size))
/* The size of `node` in bytes, for memcpy. */
#define PERILUNE_NODE_SIZE(node) PERILUNE_NODE_BYTES((node)->key_size)
/* The encoded key: name (without ^) and subscripts. Keys are compared as unsigned bytes; nodes are equal
 * when their keys and their flag PERILUNE_NODE_PRIVATE are. */
#define PERILUNE_NODE_KEY(node) ((const unsigned char *)((node) + 1))
/* Room for every node of a database. Private ones may be longer. */
#define PERILUNE_NODE_BYTES_MAX PERILUNE_NODE_BYTES(1904)

/*
 * Functions that build a node write it to `buffer` (aligned to 8, `capacity` bytes; may be NULL with
 * capacity 0 to ask for the size) and its size in bytes to `*size`, which may be NULL.
 * Any thread; they do not block and do not touch a database.
 * Errors: PERILUNE_BUFFER_TOO_SMALL (`*size` is the size needed), PERILUNE_KEY_TOO_LONG,
 * PERILUNE_TOO_MANY_SUBSCRIPTS, PERILUNE_NOT_A_NUMBER (NaN, infinity, a decimal that is none).
 * `buffer` may not overlap the nodes and bytes given, unless said; its bytes behind the node become
 * anything.
 */

/* The node "^name" or "name". Errors besides: PERILUNE_INVALID_NAME. */
PERILUNE_API int perilune_node_root(void *buffer, size_t capacity, const char *name,
                                    size_t name_size, size_t *size);
/* The child of `parent` with an integer subscript. */
PERILUNE_API int perilune_node_child_int(void *buffer, size_t capacity, const perilune_node *parent,
                                         int64_t subscript, size_t *size);
/* The child of `parent` with a string subscript (the canonical text of a number is the number). */
PERILUNE_API int perilune_node_child_str(void *buffer, size_t capacity, const perilune_node *parent,
                                         const char *subscript, size_t subscript_size, size_t *size);
/* The child of `parent` with a number as its subscript; with an integral value, the integer. */
PERILUNE_API int perilune_node_child_double(void *buffer, size_t capacity,
                                            const perilune_node *parent, double subscript,
                                            size_t *size);
/* The descendant of `parent` with `count` subscripts more; with none, a copy of it. */
PERILUNE_API int perilune_node_child(void *buffer, size_t capacity, const perilune_node *parent,
                                     const perilune_value *subscripts, size_t count, size_t *size);
/* The ancestor of `node` with `depth` subscripts (at most its own). `buffer` may be `node`. */
PERILUNE_API int perilune_node_ancestor(void *buffer, size_t capacity, const perilune_node *node,
                                        uint32_t depth, size_t *size);
/* The node that `text`, as ^name(1,"x"), names. Errors besides: PERILUNE_INVALID. */
PERILUNE_API int perilune_node_parse(void *buffer, size_t capacity, const char *text,
                                     size_t text_size, size_t *size);
/* The node whose encoded key is `key`, with `flags` 0 or PERILUNE_NODE_PRIVATE. Errors besides:
 * PERILUNE_INVALID when it is none. */
PERILUNE_API int perilune_node_from_key(void *buffer, size_t capacity, const void *key,
                                        size_t key_size, uint32_t flags, size_t *size);

/*
 * Replaces the last subscript of `node`, in its block of `capacity` bytes.
 * Errors: those of building a node, and PERILUNE_INVALID for a name without subscripts; `node` is then unchanged.
 */
PERILUNE_API int perilune_node_set_last(perilune_node *node, size_t capacity,
                                        const perilune_value *subscript);

/* The number of subscripts. Any thread; never fails (0 for NULL). */
PERILUNE_API uint32_t perilune_node_depth(const perilune_node *node);

/*
 * Stores the name of `node`, with its ^, as a string; it stays until the thread's next call on nodes.
 */
PERILUNE_API int perilune_node_name(const perilune_node *node, perilune_value *name);

/*
 * Stores subscript `index` of `node` (1 is the first, its depth the last; 0 is the name); bytes stay
 * until the thread's next call on nodes. Returns PERILUNE_NOT_FOUND beyond the last.
 */
PERILUNE_API int perilune_node_subscript(const perilune_node *node, uint32_t index,
                                         perilune_value *subscript);

/*
 * Writes `node` as text, ^name(1,"x"), to `buffer` (no zero byte at the end), its size to `*size`.
 * Any thread; does not block. Errors: PERILUNE_BUFFER_TOO_SMALL (`*size` is the size needed).
 */
PERILUNE_API int perilune_node_text(const perilune_node *node, char *buffer, size_t capacity,
                                    size_t *size);

/*
 * -1, 0 or 1: the order of the two nodes in a depth-first walk. Any thread; never fails.
 */
PERILUNE_API int perilune_node_compare(const perilune_node *a, const perilune_node *b);

/* 1 when `below` is `node` itself or a descendant of it, else 0. Any thread; never fails. */
PERILUNE_API int perilune_node_contains(const perilune_node *node, const perilune_node *below);

/* --------------------------------------------------------------------- reads and writes --- */

/*
 * Each of these is atomic by itself; inside a transaction it belongs to the transaction.
 * `value`s that come back are views: use or copy them before the session's next call.
 */

/* Stores the value of `node`, or PERILUNE_ABSENT and returns PERILUNE_NOT_FOUND. */
PERILUNE_API int perilune_get(perilune_session *session, const perilune_node *node,
                              perilune_value *value);

/* Sets the value of `node`; PERILUNE_ABSENT deletes it. */
PERILUNE_API int perilune_set(perilune_session *session, const perilune_node *node,
                              const perilune_value *value);

/*
 * Adds `by` (NULL: 1) to the value of `node` (absent: 0; a string must be a number as a whole), in
 * decimal and never rounded, and stores the new value in `*result` (may be NULL).
 * Errors: PERILUNE_NOT_A_NUMBER, PERILUNE_NUMBER_OVERFLOW; the node is unchanged.
 */
PERILUNE_API int perilune_incr(perilune_session *session, const perilune_node *node,
                               const perilune_value *by, perilune_value *result);

/*
 * Adds as M's $INCREMENT does: a string counts as the number it begins with, other values as 0, and
 * digits after the 18th are dropped. Otherwise as perilune_incr.
 */
PERILUNE_API int perilune_incr_truncating(perilune_session *session, const perilune_node *node,
                                          const perilune_value *by, perilune_value *result);

/*
 * Sets the value of `node` to `desired` if it is `expected`, in type and content (NULL or
 * PERILUNE_ABSENT: there is none, or is to be none). Returns PERILUNE_DIFFERENT if it is not.
 */
PERILUNE_API int perilune_cas(perilune_session *session, const perilune_node *node,
                              const perilune_value *expected, const perilune_value *desired);

/* Stores 0 (nothing), 1 (a value), 10 (descendants) or 11 (both) in `*data`. */
PERILUNE_API int perilune_data(perilune_session *session, const perilune_node *node, int32_t *data);

/* Deletes the value of `node`, not what is below. Returns PERILUNE_NOT_FOUND if it had none. */
PERILUNE_API int perilune_delete(perilune_session *session, const perilune_node *node);

/* Deletes `node` and everything below it. */
PERILUNE_API int perilune_kill(perilune_session *session, const perilune_node *node);

/*
 * Operations on a child of `parent` without building the child first. They allocate nothing.
 */
PERILUNE_API int perilune_get_child_int(perilune_session *session, const perilune_node *parent,
                                        int64_t subscript, perilune_value *value);
PERILUNE_API int perilune_set_child_int(perilune_session *session, const perilune_node *parent,
                                        int64_t subscript, const perilune_value *value);
PERILUNE_API int perilune_incr_child_int(perilune_session *session, const perilune_node *parent,
                                         int64_t subscript, const perilune_value *by,
                                         perilune_value *result);
PERILUNE_API int perilune_get_child_str(perilune_session *session, const perilune_node *parent,
                                        const char *subscript, size_t subscript_size,
                                        perilune_value *value);
PERILUNE_API int perilune_set_child_str(perilune_session *session, const perilune_node *parent,
                                        const char *subscript, size_t subscript_size,
                                        const perilune_value *value);
PERILUNE_API int perilune_incr_child_str(perilune_session *session, const perilune_node *parent,
                                         const char *subscript, size_t subscript_size,
                                         const perilune_value *by, perilune_value *result);

/* Operations on the descendant of `parent` with `count` subscripts more (0: on `parent` itself). */
PERILUNE_API int perilune_get_child(perilune_session *session, const perilune_node *parent,
                                    const perilune_value *subscripts, size_t count,
                                    perilune_value *value);
PERILUNE_API int perilune_set_child(perilune_session *session, const perilune_node *parent,
                                    const perilune_value *subscripts, size_t count,
                                    const perilune_value *value);
PERILUNE_API int perilune_incr_child(perilune_session *session, const perilune_node *parent,
                                     const perilune_value *subscripts, size_t count,
                                     const perilune_value *by, perilune_value *result);
PERILUNE_API int perilune_data_child(perilune_session *session, const perilune_node *parent,
                                     const perilune_value *subscripts, size_t count, int32_t *data);
/* Adds to that descendant as perilune_incr_truncating does. */
PERILUNE_API int perilune_incr_truncating_child(perilune_session *session, const perilune_node *parent,
                                                const perilune_value *subscripts, size_t count,
                                                const perilune_value *by, perilune_value *result);
PERILUNE_API int perilune_kill_child(perilune_session *session, const perilune_node *parent,
                                     const perilune_value *subscripts, size_t count);

/*
 * Stores the values of `count` nodes, as of one moment, in `values` (PERILUNE_ABSENT: none). The
 * nodes lie all in the database or all in private names.
 */
PERILUNE_API int perilune_get_many(perilune_session *session, const perilune_node *const *nodes,
                                   size_t count, perilune_value *values);

/*
 * Stores in `*piece` the bytes of the string at `node` from `offset` on (0: the first), at most `size`
 * of them and as many as there are, and in `*length` (may be NULL) how many bytes the whole string has,
 * as of one moment. A piece of a long string costs what the piece costs; `size` 0 asks for the length.
 * Returns PERILUNE_NOT_FOUND, with PERILUNE_ABSENT and 0, if the node has no value.
 * Errors: PERILUNE_INVALID if the value is no string.
 */
PERILUNE_API int perilune_get_piece(perilune_session *session, const perilune_node *node, size_t offset,
                                    size_t size, perilune_value *piece, size_t *length);

/*
 * Writes `size` bytes over those of the string at `node` from `offset` on, and stores in `*length` (may be
 * NULL) how many it has then. A shorter string grows, with zeros up to `offset`; a node without a value
 * becomes a string. Of a long string only the pages that the piece touches are written.
 * Errors: PERILUNE_INVALID if the value is no string; PERILUNE_VALUE_TOO_LONG.
 */
PERILUNE_API int perilune_set_piece(perilune_session *session, const perilune_node *node, size_t offset,
                                    const char *bytes, size_t size, size_t *length);

/* Sets the values of `count` nodes in one transaction (PERILUNE_ABSENT deletes). */
PERILUNE_API int perilune_set_many(perilune_session *session, const perilune_node *const *nodes,
                                   size_t count, const perilune_value *values);

/*
 * Sets the values of `count` nodes of the database, each by itself and in their order: for loading. Nodes
 * that ascend are written several times as fast as by perilune_set; some thousand at a time are enough.
 * Others may see the work half done, and after an error the nodes before the one that failed are set.
 * A commit hook sees each as a write of its own. Errors: as perilune_set; PERILUNE_INVALID for a private
 * node or a value that is PERILUNE_ABSENT, before any is set.
 */
PERILUNE_API int perilune_set_each(perilune_session *session, const perilune_node *const *nodes,
                                   size_t count, const perilune_value *values);

/* Makes the subtree at `to` a copy of that at `from`, atomically; what `to` had before is gone. */
PERILUNE_API int perilune_copy(perilune_session *session, const perilune_node *from,
                               const perilune_node *to);

/* Writes each value of the subtree at `from` to its place under `to`; other values there stay. */
PERILUNE_API int perilune_merge(perilune_session *session, const perilune_node *from,
                                const perilune_node *to);

/* Stores the number of children of `node` that have a value or descendants. */
PERILUNE_API int perilune_count_children(perilune_session *session, const perilune_node *node,
                                         uint64_t *count);

/* Stores the number of values below `node`; its own does not count. */
PERILUNE_API int perilune_count_nodes(perilune_session *session, const perilune_node *node,
                                      uint64_t *count);

/* ------------------------------------------------------------------------ going through --- */

/*
 * Each of these steps is a search of its own and sees the tree as it is then. They return
 * PERILUNE_NOT_FOUND at the end. `node` and `after` need not exist. A cursor (below) is faster.
 */

/* Stores the subscript of the next (previous) sibling of `node`, as M's $ORDER: the subscript "" stands
 * before the first sibling and after the last, and is never answered. Of a name: the next name. */
PERILUNE_API int perilune_next(perilune_session *session, const perilune_node *node,
                               perilune_value *subscript);
PERILUNE_API int perilune_previous(perilune_session *session, const perilune_node *node,
                                   perilune_value *subscript);

/* Stores the subscript of the next (previous) sibling of the descendant of `parent` with `count` subscripts more,
 * without building that node. With `count` 0: the next (previous) sibling of `parent` itself. */
PERILUNE_API int perilune_next_child(perilune_session *session, const perilune_node *parent,
                                     const perilune_value *subscripts, size_t count,
                                     perilune_value *subscript);
PERILUNE_API int perilune_previous_child(perilune_session *session, const perilune_node *parent,
                                         const perilune_value *subscripts, size_t count,
                                         perilune_value *subscript);

/* Stores the subscript of the first child of `parent` after `after` (NULL: of all), or the last
 * child before `before`. Here "" is a subscript as others, and the first of all. */
PERILUNE_API int perilune_child_next(perilune_session *session, const perilune_node *parent,
                                     const perilune_value *after, perilune_value *subscript);
PERILUNE_API int perilune_child_previous(perilune_session *session, const perilune_node *parent,
                                         const perilune_value *before, perilune_value *subscript);

/* Moves `node`, in its block of `capacity` bytes, to its next (previous) sibling, which is that of
 * perilune_next. At the end, and after an error (PERILUNE_BUFFER_TOO_SMALL: `*size` is the size needed), it is
 * unchanged. */
PERILUNE_API int perilune_node_next(perilune_session *session, perilune_node *node, size_t capacity,
                                    size_t *size);
PERILUNE_API int perilune_node_previous(perilune_session *session, perilune_node *node,
                                        size_t capacity, size_t *size);

/* Builds in `buffer` the next (previous) node with a value after `node`, depth first, under the same
 * name, and stores its value unless `value` is NULL. `buffer` may be `node`. */
PERILUNE_API int perilune_next_valued(perilune_session *session, const perilune_node *node,
                                      void *buffer, size_t capacity, size_t *size,
                                      perilune_value *value);
PERILUNE_API int perilune_previous_valued(perilune_session *session, const perilune_node *node,
                                          void *buffer, size_t capacity, size_t *size,
                                          perilune_value *value);

/* Stores the first name after (last name before) `name`, with its ^. Names with ^ and names without
 * are two lists; "^" and "" stand before the first and after the last of each. */
PERILUNE_API int perilune_name_next(perilune_session *session, const char *name, size_t name_size,
                                    perilune_value *next);
PERILUNE_API int perilune_name_previous(perilune_session *session, const char *name,
                                        size_t name_size, perilune_value *previous);

enum perilune_cursor_kind {
    PERILUNE_CURSOR_CHILDREN = 1, /* the children of the node, in order */
    PERILUNE_CURSOR_SUBTREE = 2   /* all nodes with a value, the node itself included, depth first */
};

#define PERILUNE_CURSOR_REVERSE 1u        /* from the last to the first */
#define PERILUNE_CURSOR_VALUES 2u         /* with the values */
#define PERILUNE_CURSOR_DATA 4u           /* with 1, 10 or 11 for each */
#define PERILUNE_CURSOR_NODES 8u          /* perilune_cursor_fetch gives nodes, too */
#define PERILUNE_CURSOR_FROM_EXCLUSIVE 16u
#define PERILUNE_CURSOR_TO_EXCLUSIVE 32u
#define PERILUNE_CURSOR_WITHOUT_EMPTY 64u /* children: leaves out the subscript "" */

/*
 * Which part of the tree to go through. `from` is where the walk begins and `to` where it ends, in
 * its own direction; both are included unless flagged, need not exist, and may be NULL. The greater
 * of two bounds of a subtree is included without its descendants.
 */
typedef struct perilune_cursor_options {
    uint32_t size;                  /* sizeof(perilune_cursor_options) */
    int32_t kind;                   /* enum perilune_cursor_kind */
    uint32_t flags;                 /* PERILUNE_CURSOR_* */
    uint32_t reserved;              /* 0 */
    const perilune_value *from;     /* children: a subscript */
    const perilune_value *to;
    const perilune_node *from_node; /* subtree: a node */
    const perilune_node *to_node;
} perilune_cursor_options;

#define PERILUNE_CURSOR_OPTIONS_INIT \
    {sizeof(perilune_cursor_options), PERILUNE_CURSOR_CHILDREN, 0, 0, 0, 0, 0, 0}

/* One step of a cursor. Bytes and node stay until the next call with the cursor. */
typedef struct perilune_entry {
    perilune_value subscript;  /* the last one; of a name, the name */
    perilune_value value;      /* PERILUNE_ABSENT unless asked for and there */
    int32_t data;              /* 0 unless asked for */
    uint16_t depth;            /* number of subscripts */
    uint16_t shared;           /* how many of them, from the first, the entry before had, too */
    const perilune_node *node; /* NULL unless asked for */
} perilune_entry;

/*
 * Opens a cursor over the children or the subtree of `node`; `options` may be NULL (children,
 * forwards, subscripts only). It sees what other calls of the session write ahead of it. Inside a
 * transaction it is good until that level ends. Close it with perilune_cursor_close.
 */
PERILUNE_API int perilune_cursor_open(perilune_session *session, const perilune_node *node,
                                      const perilune_cursor_options *options,
                                      perilune_cursor **cursor);

/*
 * Goes one step: stores the subscript, the value and the data, each unless its pointer is NULL.
 * They stay until the next call with this cursor. Returns PERILUNE_NOT_FOUND at the end.
 */
PERILUNE_API int perilune_cursor_next(perilune_cursor *cursor, perilune_value *subscript,
                                      perilune_value *value, int32_t *data);

/*
 * Goes up to `capacity` steps and stores them in `entries`, their number in `*count`: at least one,
 * perhaps fewer than there is room for, or none and PERILUNE_NOT_FOUND at the end. The entries are not
 * of one moment (outside a transaction), and what the caller writes after the call shows only from the
 * next call on.
 */
PERILUNE_API int perilune_cursor_fetch(perilune_cursor *cursor, perilune_entry *entries,
                                       size_t capacity, size_t *count);

/*
 * Goes on behind the subtree of `node` (before it, with PERILUNE_CURSOR_REVERSE): what lies in it is
 * skipped by a search. `node` lies in the part of the tree that the cursor goes through.
 */
PERILUNE_API int perilune_cursor_skip(perilune_cursor *cursor, const perilune_node *node);

/*
 * Builds in `buffer` the node of the last step of perilune_cursor_next; PERILUNE_NOT_FOUND before the
 * first step and after the end.
 */
PERILUNE_API int perilune_cursor_node(const perilune_cursor *cursor, void *buffer, size_t capacity,
                                      size_t *size);

/* Closes `cursor`, before or after its session; NULL is allowed. */
PERILUNE_API void perilune_cursor_close(perilune_cursor *cursor);

/* ------------------------------------------------------------------------- transactions --- */

typedef struct perilune_transaction_options {
    uint32_t size;      /* sizeof(perilune_transaction_options) */
    int32_t read_only;  /* 1: refuse writes */
    int32_t durability; /* enum perilune_durability */
    int32_t exclusive;  /* 1: alone from the first try on; -1: never alone; as below */
    double timeout;     /* seconds for all tries and waits together; 0: 10 s */
} perilune_transaction_options;

/*
 * Transactions run beside each other, and one that fails to commit three times, or reads more than about 8 MiB of
 * pages, gets the right to publish alone for a moment. With `exclusive` it asks for that at once: for programs that
 * cannot run a transaction again. The right lasts for some milliseconds once others wait for it, so keep such
 * transactions short: a long one may still end in PERILUNE_CONFLICT. Waits for the right. Behind a server there is no
 * such right: PERILUNE_INVALID, unless the transaction is read_only.
 *
 * With -1 it never asks for that right, so that nobody has to wait for it: after three failures it ends in
 * PERILUNE_CONFLICT, which perilune_transaction and perilune_retry then return, and where it reads or writes more pages
 * than it can beside others, in PERILUNE_LIMIT_REACHED. Behind a server it limits the tries.
 *
 * With 0 and -1 the first try is a cheap one as long as it reads and writes little; then it is run again also
 * for a write of others to a neighbour of what it read.
 */
#define PERILUNE_TRANSACTION_OPTIONS_INIT {sizeof(perilune_transaction_options), 0, 0, 0, 0.0}

/*
 * What a transaction runs. Returns PERILUNE_OK to commit; PERILUNE_CONFLICT or PERILUNE_RESTART to
 * be run again; PERILUNE_ROLLBACK or any other code to be rolled back. It may run several times, so
 * it changes nothing outside the database that it does not set anew each time. It leaves by
 * returning only: no longjmp, no exception, no exit of the thread.
 */
typedef int (*perilune_body)(perilune_session *session, void *context);

/*
 * Runs `body` as a transaction until it commits, fails or times out. `options` may be NULL.
 * Called inside a transaction it runs `body` once, as a nested level (`options` are ignored): another
 * code than PERILUNE_OK rolls back that level only and is returned; return PERILUNE_CONFLICT and
 * PERILUNE_RESTART further, to the outermost level, which runs again.
 * Waits: for other transactions when it conflicts; for its durability.
 * Returns PERILUNE_OK (committed) or the code of the body (nothing written).
 * Errors: PERILUNE_TRANSACTION_TIMEOUT, PERILUNE_LIMIT_REACHED (nested too deep), those of a write.
 */
PERILUNE_API int perilune_transaction(perilune_session *session,
                                      const perilune_transaction_options *options,
                                      perilune_body body, void *context);

/*
 * The steps of perilune_transaction, for languages whose bodies may leave by longjmp or exception:
 *
 *     for (;;) {
 *         if ((status = perilune_begin(session, &options)) != PERILUNE_OK)
 *             return status;
 *         status = body(...);
 *         if (status == PERILUNE_OK)
 *             status = perilune_commit(session);
 *         else if (status != PERILUNE_CONFLICT && status != PERILUNE_RESTART)
 *             if (perilune_validate(session) == PERILUNE_CONFLICT)
 *                 status = PERILUNE_CONFLICT; // an error that rests on a state that never was
 *         if (status == PERILUNE_OK)
 *             return status;
 *         while (perilune_depth(session) > 0)
 *             perilune_rollback(session);
 *         if (status != PERILUNE_CONFLICT && status != PERILUNE_RESTART) {
 *             perilune_give_up(session);
 *             return status;
 *         }
 *         if ((status = perilune_retry(session)) != PERILUNE_OK)
 *             return status;
 *     }
 *
 * A nested level is begin, body, then commit or rollback, without retry; PERILUNE_CONFLICT and
 * PERILUNE_RESTART go to the outermost loop.
 */

/* Opens a transaction, or a nested level (`options` are then ignored; may be NULL).
 * Errors: PERILUNE_LIMIT_REACHED, PERILUNE_TRANSACTION_TIMEOUT. Waits, after a retry. */
PERILUNE_API int perilune_begin(perilune_session *session,
                                const perilune_transaction_options *options);

/* Ends the innermost level: merges a nested one into its parent, or validates and applies the
 * outermost. After any error that level is gone. Waits for the durability asked for.
 * Errors: PERILUNE_CONFLICT, PERILUNE_TRANSACTION_STATE, PERILUNE_TRANSACTION_TIMEOUT, a write's. */
PERILUNE_API int perilune_commit(perilune_session *session);

/* Drops the innermost level, what it wrote and the locks taken in it.
 * Errors: PERILUNE_TRANSACTION_STATE when none is open. */
PERILUNE_API int perilune_rollback(perilune_session *session);

/*
 * Has the server of the database run `program` as one transaction, in one round trip; `*reply`, a string, is its
 * answer and stays until the session's next call. For bindings of languages: the program is in a form that they
 * and the server agree on. Blocks up to the time limit in `options` (NULL: the defaults) and that of an answer.
 * Errors: PERILUNE_INVALID for a database in a file and inside a transaction; PERILUNE_COMMIT_UNKNOWN;
 * PERILUNE_CANNOT_OPEN with what the server says when it does not run it.
 */
PERILUNE_API int perilune_run(perilune_session *session, const perilune_transaction_options *options,
                              const char *program, size_t program_size, perilune_value *reply);

/* Prepares the next try, after all levels were rolled back. Waits (backs off).
 * Errors: PERILUNE_TRANSACTION_TIMEOUT: the series is over. */
PERILUNE_API int perilune_retry(perilune_session *session);

/* Ends a series of tries that will not go on. NULL is allowed. */
PERILUNE_API void perilune_give_up(perilune_session *session);

/* Checks that all the transaction has read is still one state. Errors: PERILUNE_CONFLICT. */
PERILUNE_API int perilune_validate(perilune_session *session);

/* How many levels are open (0: no transaction). Never fails. */
PERILUNE_API uint32_t perilune_depth(const perilune_session *session);

/* How often the open transaction has been run again (0 in its first run). Never fails. */
PERILUNE_API uint32_t perilune_restarts(const perilune_session *session);

/* ---------------------------------------------------------------------------------- SQL --- */

/* What a statement has answered; belongs to nobody's session. */
typedef struct perilune_sql_rows perilune_sql_rows;

/*
 * Runs one statement of SQL, UTF-8 of up to 1 MiB: by itself a transaction, run again when it conflicts; inside an
 * open transaction a part of that. `parameters` are those of its marks (?, ?1, :name), in order: PERILUNE_ABSENT and
 * _NULL are NULL, _INT and _BOOL an integer, _DOUBLE a double, _DECIMAL an integer if it is whole, else a double, which keeps
 * 15 digits (PERILUNE_SQL beyond them), _STRING a text, _BLOB a blob; lists and maps are PERILUNE_INVALID. `*rows` (NULL: nobody
 * wants them) is what it answers, up to 64 MiB, to be ended by
 * perilune_sql_close; after an error it is NULL. BEGIN and its kin open and end a transaction of the session, its nodes
 * as well. A session keeps its last statements prepared. Blocks as long as the statement takes.
 * Functions in Lua that the database keeps run on the caller's thread, in a Lua of the library's: 64 MiB a call, five seconds
 * for all calls of a statement, 512 KiB of the thread's stack or what there is. With the first call the library gets a
 * thread, and a handler for SIGURG, which hands on what is not its own; from then on dlclose() leaves it loaded.
 * Errors: PERILUNE_SQL for what SQL refuses, its limits included; what the database refuses has its own status, such as
 * PERILUNE_CONFLICT in a transaction, PERILUNE_NO_SPACE or PERILUNE_READ_ONLY. The statement has then done nothing.
 */
PERILUNE_API int perilune_sql_run(perilune_session *session, const char *text, size_t text_size,
                                  const perilune_value *parameters, size_t count,
                                  perilune_sql_rows **rows);

/* How many rows there are, and columns; 0 columns: the statement answers none. 0 for NULL. */
PERILUNE_API size_t perilune_sql_count(const perilune_sql_rows *rows);
PERILUNE_API size_t perilune_sql_columns(const perilune_sql_rows *rows);

/* How many rows the statement has inserted, updated and deleted; the number of the row inserted last. 0 for NULL. */
PERILUNE_API uint64_t perilune_sql_changes(const perilune_sql_rows *rows);
PERILUNE_API int64_t perilune_sql_last_row(const perilune_sql_rows *rows);

/* The name of a column, counted from 0. Its bytes stay as long as the rows. PERILUNE_NOT_FOUND: there is none. */
PERILUNE_API int perilune_sql_column(const perilune_sql_rows *rows, size_t column, perilune_value *name);

/*
 * A value, its row and column counted from 0: PERILUNE_NULL, _INT, _DOUBLE (which may be infinite), _STRING or
 * _BLOB. Its bytes stay as long as the rows. PERILUNE_NOT_FOUND: there is none.
 */
PERILUNE_API int perilune_sql_value(const perilune_sql_rows *rows, size_t row, size_t column,
                                    perilune_value *value);

/* A function of the program's that a statement calls. */
typedef struct perilune_sql_call perilune_sql_call;

/*
 * Answers for `count` arguments, which stay until it returns: PERILUNE_NULL, _INT, _DOUBLE, _STRING or _BLOB. What it gives
 * to perilune_sql_result is its value, without that NULL; a status below 0, or perilune_sql_raise, fails the statement. It runs
 * on the caller's thread. Calls with this session are then a part of the statement, in its transaction: nodes, levels that the
 * function begins and ends, perilune_sql_run. It cannot end the statement's own levels (PERILUNE_TRANSACTION_STATE), run
 * definitions, nor give functions to the session (PERILUNE_INVALID); a session that is closed meanwhile stays open. A call that
 * answers PERILUNE_CONFLICT has the statement run again, whatever the function answers. It must return: neither longjmp nor an
 * exception may leave it. It may run several times for one answer.
 */
typedef int (*perilune_sql_callback)(void *context, const perilune_value *arguments, size_t count,
                                     perilune_sql_call *call);

/*
 * Gives the statements of a session the function `name` with `count` arguments (-1: any number), in place of one of the
 * schema of that name; a NULL callback takes it back. `deterministic`, not 0: equal arguments always give equal answers. No other
 * session has it. `release` (NULL: nothing) is called with `context` once, when the function is replaced or taken back, when the
 * session is closed, or at once if this fails. Errors: PERILUNE_SQL for the name of a function that every database has.
 */
PERILUNE_API int perilune_sql_function(perilune_session *session, const char *name, int count, int deterministic,
                                       perilune_sql_callback callback, void *context,
                                       void (*release)(void *context));

/* Sets the value of a call to a copy of `value`, as a parameter of perilune_sql_run is taken. */
PERILUNE_API int perilune_sql_result(perilune_sql_call *call, const perilune_value *value);

/* Sets what the statement fails with, as 38000 and the function's name before it: UTF-8 of `size` bytes. */
PERILUNE_API int perilune_sql_raise(perilune_sql_call *call, const char *text, size_t size);

/* Frees rows; NULL is fine. */
PERILUNE_API void perilune_sql_close(perilune_sql_rows *rows);

/* ------------------------------------------------------------------------------- graphs --- */

/*
 * A graph below a node: vertices with labels and properties, edges of types between them. docs/format/graph.md has its
 * nodes, docs/reference/graph.md its questions and options. An id of a vertex is a PERILUNE_INT or _STRING of up to 500
 * bytes (the text of a number is the number); an edge is a number from 1 on; labels, types and names are UTF-8 of 1 to 255
 * bytes. Each change is a transaction, or a level of the open one. What a graph refuses is PERILUNE_GRAPH, and its
 * message begins with NOT_A_GRAPH, NOT_EMPTY, NO_VERTEX, VERTEX_EXISTS, NO_EDGE, HAS_EDGES or COST.
 *
 * The handle of a graph is good for all sessions of its database, for one thread at a time. It keeps numbers of edges
 * taken ahead.
 */
typedef struct perilune_graph perilune_graph;

/*
 * Makes a graph below `node`, which has no children. `weight`, if not NULL, is the property of edges that is their weight,
 * which walks then have without reading it. To be ended by perilune_graph_close. Errors: PERILUNE_GRAPH.
 */
PERILUNE_API int perilune_graph_create(perilune_session *session, const perilune_node *node,
                                       const char *weight, size_t weight_size, perilune_graph **graph);

/* Opens the graph below `node`. Errors: PERILUNE_GRAPH, NOT_A_GRAPH. */
PERILUNE_API int perilune_graph_open(perilune_session *session, const perilune_node *node,
                                     perilune_graph **graph);

/* Frees a handle; the graph stays. NULL is fine. */
PERILUNE_API void perilune_graph_close(perilune_graph *graph);

/* Adds a vertex with `count` labels, which are PERILUNE_STRINGs. Errors: PERILUNE_GRAPH, VERTEX_EXISTS. */
PERILUNE_API int perilune_graph_add_vertex(perilune_session *session, perilune_graph *graph,
                                           const perilune_value *vertex, const perilune_value *labels,
                                           size_t count);

/* Deletes a vertex; with_edges 0: only if it has none. Errors: PERILUNE_GRAPH, NO_VERTEX or HAS_EDGES. */
PERILUNE_API int perilune_graph_delete_vertex(perilune_session *session, perilune_graph *graph,
                                              const perilune_value *vertex, int with_edges);

/* PERILUNE_OK if there is the vertex, else PERILUNE_NOT_FOUND. */
PERILUNE_API int perilune_graph_has_vertex(perilune_session *session, perilune_graph *graph,
                                           const perilune_value *vertex);

/* Gives a vertex a label, or with is_set 0 takes it away. Errors: PERILUNE_GRAPH, NO_VERTEX. */
PERILUNE_API int perilune_graph_set_label(perilune_session *session, perilune_graph *graph,
                                          const perilune_value *vertex, const char *label, size_t label_size,
                                          int is_set);

/* Keeps an index of a property of the vertices with a label, or with is_kept 0 drops it. Reads all of them. */
PERILUNE_API int perilune_graph_index(perilune_session *session, perilune_graph *graph, const char *label,
                                      size_t label_size, const char *property, size_t property_size,
                                      int is_kept);

/*
 * A property of a vertex, of an edge: stored in `*value`, where it stays until the session's next call (PERILUNE_NOT_FOUND:
 * there is none), and set, PERILUNE_ABSENT to delete it. Errors: PERILUNE_GRAPH, NO_VERTEX or NO_EDGE, of setting.
 */
PERILUNE_API int perilune_graph_get(perilune_session *session, perilune_graph *graph,
                                    const perilune_value *vertex, const char *name, size_t name_size,
                                    perilune_value *value);
PERILUNE_API int perilune_graph_set(perilune_session *session, perilune_graph *graph,
                                    const perilune_value *vertex, const char *name, size_t name_size,
                                    const perilune_value *value);
PERILUNE_API int perilune_graph_get_edge(perilune_session *session, perilune_graph *graph, int64_t edge,
                                         const char *name, size_t name_size, perilune_value *value);
PERILUNE_API int perilune_graph_set_edge(perilune_session *session, perilune_graph *graph, int64_t edge,
                                         const char *name, size_t name_size, const perilune_value *value);

/* Adds an edge and stores its number, if `edge` is not NULL. Errors: PERILUNE_GRAPH, NO_VERTEX. */
PERILUNE_API int perilune_graph_add_edge(perilune_session *session, perilune_graph *graph,
                                         const perilune_value *source, const char *type, size_t type_size,
                                         const perilune_value *target, int64_t *edge);

/* Deletes an edge with its properties. Errors: PERILUNE_GRAPH, NO_EDGE. */
PERILUNE_API int perilune_graph_delete_edge(perilune_session *session, perilune_graph *graph, int64_t edge);

enum perilune_direction {
    PERILUNE_OUT = 0, /* from source to target */
    PERILUNE_IN = 1,
    PERILUNE_BOTH = 2
};

/* Stores how many edges a vertex has, of a type or with NULL of all, as counted at the vertex: nothing is walked. */
PERILUNE_API int perilune_graph_degree(perilune_session *session, perilune_graph *graph,
                                       const perilune_value *vertex, int32_t direction, const char *type,
                                       size_t type_size, uint64_t *degree);

/*
 * Answers a question by name, as "find", "edges", "shortest_path", "page_rank" or "check", with its arguments and options
 * (JSON, may be empty). `*rows` are like those of SQL, to be ended by perilune_sql_close; their values have all types.
 * All of it is one state: of the snapshot that `session` is, of the open transaction, or of one of its own. What takes
 * seconds is for a snapshot. Errors: PERILUNE_GRAPH, PERILUNE_LIMIT_REACHED for a limit of the options.
 */
PERILUNE_API int perilune_graph_ask(perilune_session *session, perilune_graph *graph, const char *question,
                                    size_t question_size, const perilune_value *arguments, size_t count,
                                    const char *options, size_t options_size, perilune_sql_rows **rows);

/* A walk from vertices along edges, a path at a time. Counts with its session as a cursor does. */
typedef struct perilune_graph_walk perilune_graph_walk;

/* The end of a path. Bytes stay until the walk's next path. Of a path without edges the edge's values are PERILUNE_ABSENT. */
typedef struct perilune_graph_step {
    perilune_value vertex; /* the path's end */
    perilune_value source; /* of its last edge */
    perilune_value target;
    perilune_value type;
    perilune_value weight; /* PERILUNE_ABSENT: it has none */
    int64_t edge;          /* its number; 0: the path has no edge */
    uint64_t depth;        /* how many edges the path has */
    double cost;           /* what they cost together */
} perilune_graph_step;

/*
 * Begins a walk. It belongs to the open transaction, or to `session` if that is a snapshot, and goes on in no other; close it
 * at any time. Errors: PERILUNE_TRANSACTION_STATE without either; PERILUNE_GRAPH, NO_VERTEX.
 */
PERILUNE_API int perilune_graph_walk_open(perilune_session *session, perilune_graph *graph,
                                          const perilune_value *starts, size_t count, const char *options,
                                          size_t options_size, perilune_graph_walk **walk);

/*
 * Goes to the next path and stores its end, if `step` is not NULL. Returns PERILUNE_NOT_FOUND when there is none. Only what
 * paths before it need has been read. Errors: PERILUNE_LIMIT_REACHED, PERILUNE_TRANSACTION_STATE in another transaction; a
 * walk ends after an error.
 */
PERILUNE_API int perilune_graph_walk_next(perilune_session *session, perilune_graph_walk *walk,
                                          perilune_graph_step *step);

/* Stores the beginning of the last path that has `depth` edges, 0 for the start. PERILUNE_NOT_FOUND: it has fewer. */
PERILUNE_API int perilune_graph_walk_step(perilune_graph_walk *walk, uint64_t depth, perilune_graph_step *step);

/* Does not follow the last path: what lies behind it is left out, unless it is reached otherwise. */
PERILUNE_API int perilune_graph_walk_prune(perilune_graph_walk *walk);

/* An edge by which a path is to go on. */
typedef struct perilune_graph_lead {
    int64_t edge; /* one end is the path's */
    double cost;  /* from 0 on */
    double rank;  /* in the order "cheapest" the lowest comes first */
} perilune_graph_lead;

/*
 * Follows the last path by these edges instead of those of the options. Returns PERILUNE_NOT_FOUND if it is not to be
 * followed: pruned, or of "max_depth" edges. Errors: PERILUNE_GRAPH, NO_EDGE or COST.
 */
PERILUNE_API int perilune_graph_walk_lead(perilune_session *session, perilune_graph_walk *walk,
                                          const perilune_graph_lead *leads, size_t count);

/* Ends a walk; NULL is fine. */
PERILUNE_API void perilune_graph_walk_close(perilune_graph_walk *walk);

/* ------------------------------------------------------------------------------ documents --- */

/* What a call on a document has answered; belongs to nobody's session. */
typedef struct perilune_dom_answer perilune_dom_answer;

enum perilune_dom_kind {
    PERILUNE_DOM_NOTHING = 0, /* a change is made, or what was asked for does not exist */
    PERILUNE_DOM_VALUE = 1,   /* a text, number or truth value */
    PERILUNE_DOM_NODE = 2,    /* a node of the document: its number */
    PERILUNE_DOM_VALUES = 3,
    PERILUNE_DOM_NODES = 4
};

/*
 * Makes a call on the document of XML below the node `document`, whether or not there is one yet: a call is a name of
 * the DOM, such as "appendChild", and `arguments`, which docs/reference/dom.md lists. Nodes of the document are given and
 * answered as their numbers, PERILUNE_INT; a call on a node takes it first. PERILUNE_ABSENT and _NULL are an argument
 * that is left out. Each call is a transaction by itself, run again when it conflicts; inside an open transaction a part
 * of that. `*answer` (NULL: nobody wants it) is to be ended by perilune_dom_close; after an error it is NULL. Blocks as
 * long as the call takes.
 * Errors: PERILUNE_DOM for what the document refuses; PERILUNE_INVALID for an unknown name and wrong arguments; what the
 * database refuses has its own status, such as PERILUNE_CONFLICT in a transaction. The call has then done nothing.
 */
PERILUNE_API int perilune_dom_call(perilune_session *session, const perilune_node *document,
                                   const char *name, size_t name_size,
                                   const perilune_value *arguments, size_t count,
                                   perilune_dom_answer **answer);

/* Which of `enum perilune_dom_kind` it is, and how many values or nodes it has. 0 for NULL. */
PERILUNE_API int32_t perilune_dom_kind(const perilune_dom_answer *answer);
PERILUNE_API size_t perilune_dom_count(const perilune_dom_answer *answer);

/*
 * A value of an answer, counted from 0: PERILUNE_NULL, _INT, _DOUBLE (which may be infinite or NaN), _BOOL or _STRING. Its
 * bytes stay as long as the answer. PERILUNE_NOT_FOUND: there is none.
 */
PERILUNE_API int perilune_dom_value(const perilune_dom_answer *answer, size_t index,
                                    perilune_value *value);

/* Frees an answer; NULL is fine. */
PERILUNE_API void perilune_dom_close(perilune_dom_answer *answer);

/* -------------------------------------------------------------- documents, lists, key/value --- */

/*
 * Makes a call on the document, list or key/value store below `node`: a name such as "document.put" and `arguments`, which
 * docs/reference/models.md lists. Documents are given and answered as texts of JSON, PERILUNE_STRING. PERILUNE_ABSENT and
 * _NULL are an argument that is left out. Each call is a transaction by itself, run again when it conflicts; inside an open
 * transaction a part of that. `*answer` (NULL: nobody wants it) is PERILUNE_ABSENT where there is none; its bytes stay until
 * the session's next call. Blocks as perilune_set does.
 * Errors: PERILUNE_INVALID for an unknown name, wrong arguments, what is no JSON, and a node that holds something else; what
 * the database refuses has its own code. Nothing of the call has happened then.
 */
PERILUNE_API int perilune_models_call(perilune_session *session, const perilune_node *node,
                                      const char *name, size_t name_size,
                                      const perilune_value *arguments, size_t count,
                                      perilune_value *answer);

/* -------------------------------------------------------------------------------- locks --- */

/*
 * Locks are named by nodes (which need not exist), lie in the database, and bind only those who ask.
 * L and ^L name different locks, both shared by all processes of the database.
 * One excludes others on its ancestors and its descendants. They are counted, and belong to an owner:
 * PERILUNE_OWNER_SESSION or a number from perilune_lock_owner. Locks of one owner never exclude each
 * other, whatever session of the process uses it; behind a server only the session that made an owner may use it,
 * others are answered PERILUNE_INVALID. All are released when the process ends, however it does. A lock taken in a
 * transaction is released when that level is rolled back.
 */
#define PERILUNE_OWNER_SESSION UINT64_C(0) /* the session itself */

/*
 * A timeout is a number of seconds. 0 is one attempt. PERILUNE_FOREVER is no limit, and so are all numbers below 0
 * and above 1e9; NaN is PERILUNE_INVALID. (The time limits in option structs differ: there 0 is the default, and a
 * number below 0 is PERILUNE_INVALID.)
 */
#define PERILUNE_FOREVER (-1.0)

enum perilune_lock_mode {
    PERILUNE_LOCK_EXCLUSIVE = 0,
    PERILUNE_LOCK_SHARED = 1 /* with others that ask for shared */
};

typedef struct perilune_lock_request {
    const perilune_node *node;
    int32_t mode; /* enum perilune_lock_mode */
    uint32_t reserved;
} perilune_lock_request;

/* Stores a new owner of this process. Its locks stay until perilune_unlock_all or the process's end. */
PERILUNE_API int perilune_lock_owner(perilune_session *session, uint64_t *owner);

/*
 * Takes one lock, waiting up to `timeout` seconds. Waits, asleep.
 * Returns PERILUNE_TIMED_OUT. Errors: PERILUNE_DEADLOCK, PERILUNE_LIMIT_REACHED.
 */
PERILUNE_API int perilune_lock(perilune_session *session, uint64_t owner, const perilune_node *node,
                               int32_t mode, double timeout);

/* Takes all of `count` locks, at most 1,024, or none; otherwise as perilune_lock. */
PERILUNE_API int perilune_lock_many(perilune_session *session, uint64_t owner,
                                    const perilune_lock_request *requests, size_t count,
                                    double timeout);

/* Counts a lock down and releases it at zero. Returns PERILUNE_NOT_FOUND if it is not held. */
PERILUNE_API int perilune_unlock(perilune_session *session, uint64_t owner,
                                 const perilune_node *node);

/* Releases every lock of `owner`. */
PERILUNE_API int perilune_unlock_all(perilune_session *session, uint64_t owner);

/* Stores how often `owner` holds the lock on `node` (0: not). */
PERILUNE_API int perilune_lock_count(perilune_session *session, uint64_t owner,
                                     const perilune_node *node, uint32_t *count);

/* -------------------------------------------------------------------- watches, messages --- */

enum perilune_watch_scope {
    PERILUNE_WATCH_NODE = 0,   /* the node's own value */
    PERILUNE_WATCH_SUBTREE = 1 /* the node and all below it */
};

typedef struct perilune_watch_request {
    const perilune_node *node; /* in the database, not private */
    int32_t scope;             /* enum perilune_watch_scope */
    uint32_t reserved;
} perilune_watch_request;

/*
 * Begins to watch `count` places, at most 1,024, and stores the watch's number. Commits of any process that begin
 * after this returns are noticed; one that touched something else may be reported, too: compare what
 * you read. It ends with perilune_unwatch, its session or its process.
 * Errors: PERILUNE_LIMIT_REACHED, PERILUNE_READ_ONLY.
 */
PERILUNE_API int perilune_watch(perilune_session *session, const perilune_watch_request *requests,
                                size_t count, uint64_t *watch);

/*
 * Waits, asleep, up to `timeout` seconds for a touch since the watch began or was last reported.
 * Returns PERILUNE_OK (touched) or PERILUNE_TIMED_OUT. Errors: PERILUNE_TRANSACTION_STATE inside a
 * transaction.
 */
PERILUNE_API int perilune_wait(perilune_session *session, uint64_t watch, double timeout);

/*
 * Stores a file descriptor that becomes readable when perilune_wait would return PERILUNE_OK, for
 * poll(). It belongs to the watch: do not close it. perilune_wait with timeout 0 clears it. Of a database behind
 * a server the first call for a watch makes a second connection, by which the server rings.
 * Errors: PERILUNE_INVALID for a watch that was ended or is another session's.
 */
PERILUNE_API int perilune_watch_descriptor(perilune_session *session, uint64_t watch,
                                           int32_t *descriptor);

/* Ends a watch. */
PERILUNE_API int perilune_unwatch(perilune_session *session, uint64_t watch);

enum perilune_when_full {
    PERILUNE_FULL_REFUSE = 0,     /* PERILUNE_CHANNEL_FULL to the sender */
    PERILUNE_FULL_DROP_OLDEST = 1 /* the oldest message goes */
};

typedef struct perilune_channel_options {
    uint32_t size;     /* sizeof(perilune_channel_options) */
    int32_t when_full; /* enum perilune_when_full */
    uint64_t messages; /* at most; 0: 10,000; 1,000,000 is the most */
    uint64_t bytes;    /* of all messages together at most; 0: 16 MiB */
} perilune_channel_options;

#define PERILUNE_CHANNEL_OPTIONS_INIT {sizeof(perilune_channel_options), 0, 0, 0}

/* A message received; its bytes stay until the session's next call. */
typedef struct perilune_received {
    uint64_t number; /* in its channel, from 1 */
    uint64_t missed; /* messages before it that were dropped unseen */
    const char *body;
    size_t body_size;
} perilune_received;

/* Creates the channel `name` (1 to 255 bytes, none of them zero), or changes its bounds. `options` may be
 * NULL. */
PERILUNE_API int perilune_channel_create(perilune_session *session, const char *name,
                                         size_t name_size, const perilune_channel_options *options);

/* Removes a channel and its messages. */
PERILUNE_API int perilune_channel_remove(perilune_session *session, const char *name,
                                         size_t name_size);

/*
 * Posts a message of up to 1 MiB, and stores its number unless `number` is NULL (0 inside a transaction: it is
 * posted at commit). A channel that was not created has the default bounds.
 * Errors: PERILUNE_CHANNEL_FULL, PERILUNE_VALUE_TOO_LONG.
 */
PERILUNE_API int perilune_post(perilune_session *session, const char *name, size_t name_size,
                               const void *body, size_t body_size, uint64_t *number);

/*
 * Takes the oldest message away. Waits, asleep, up to `timeout` seconds for one.
 * Returns PERILUNE_TIMED_OUT. Errors: PERILUNE_TRANSACTION_STATE when it would have to wait inside a
 * transaction.
 */
PERILUNE_API int perilune_receive(perilune_session *session, const char *name, size_t name_size,
                                  double timeout, perilune_received *message);

/* Reads the first message after number `after` and leaves it for others; as perilune_receive. */
PERILUNE_API int perilune_follow(perilune_session *session, const char *name, size_t name_size,
                                 uint64_t after, double timeout, perilune_received *message);

/* ----------------------------------------------------------------------- about the file --- */

/*
 * Takes a checkpoint while others read and write: everything committed before the call survives a crash
 * of the machine. Stores in `taken`, if not NULL, whether anything had changed since the last one.
 * Blocks for as long as the disk takes.
 * Errors: PERILUNE_WRITES_STOPPED, PERILUNE_NO_SPACE, PERILUNE_IO; the checkpoint before still counts.
 * PERILUNE_INVALID for a database that is not in a file.
 */
PERILUNE_API int perilune_checkpoint(perilune_session *session, int *taken);

/*
 * Stores what an operator wants to know (sizes, processes, counters of all processes since the
 * database was opened first in this boot) as a JSON object of numbers, and "version"; it stays until
 * the session's next call. Reads no values. docs/reference/cli.md lists the figures, of which there are none behind a
 * server. Besides there are "names" (how many), "key_bytes_max", "value_bytes_max" and "transaction_depth_max".
 * Errors: PERILUNE_INVALID for a database in memory.
 */
PERILUNE_API int perilune_stat(perilune_session *session, perilune_value *json);

/*
 * Lets this process say on the standard error which database it was when the kernel cannot give it a page
 * of one (SIGBUS: the disk failed, or somebody cut the file). Then the signal does what it did before: a
 * handler of the program is called, or the process ends. A SIGBUS outside of databases does so at once.
 * The library installs no handler unless a program asks by this; calls after the first do nothing; a handler
 * that is installed later may chain to this one. Any thread.
 * Errors: PERILUNE_IO.
 */
PERILUNE_API int perilune_install_sigbus(void);

/*
 * Checks every invariant of the tree and stores the number of faults found and, as text with one
 * fault a line, what the first 1,000 of them are (stays until the session's next call; `faults` and `report` may be
 * NULL). Reads the whole database, for as long as that takes; others go on meanwhile.
 * Errors: PERILUNE_INVALID for a database that is not in a file.
 */
PERILUNE_API int perilune_verify(perilune_session *session, uint64_t *faults, perilune_value *report);

#ifdef __cplusplus
}
#endif

#endif

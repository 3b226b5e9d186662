/*
 * What the files of _perilune.yottadb share: addresses by name or node, and errors as strings.
 *
 * Invariants
 * - A node here is an address only: it belongs to no database and never changes. Every call goes to the
 *   default database of the module (perilune.use), so that both modules share one session.
 * - Names without ^ lie in a session of their own, which has no transaction: a rollback leaves them.
 * - A name is judged when it is used, not when its node is made.
 * - Every function has the upvalues of _perilune's functions and two more (LAYER, HOOKS).
 */
#ifndef PERILUNE_LUA_YOTTADB_H
#define PERILUNE_LUA_YOTTADB_H

#include "module.h"

#define LAYER_INDEX lua_upvalueindex(UPVALUES + 1)
#define HOOKS_INDEX lua_upvalueindex(UPVALUES + 2)
#define LAYER_UPVALUES (UPVALUES + 2)

enum {
    MAX_SUBS = 31,
    MAX_IDENT = 31,
    MAX_STR = 1048576,
    MAX_LOCK_SUB = 255,
    MAX_LOCK_COUNT = 511
};

enum code {
    CODE_RESTART = 2147483646,
    CODE_ROLLBACK = 2147483645,
    CODE_LOCK_TIMEOUT = 2147483643,
    CODE_GVSUBOFLOW = -150372986,
    CODE_NUMOFLOW = -150373506,
    CODE_SVNOSET = -150373770,
    CODE_INVSTRLEN = -150375522,
    CODE_TPLOCK = -150376074,
    CODE_TPTOODEEP = -150376106,
    CODE_TPTIMEOUT = -150377322,
    CODE_REC2BIG = -150373602,
    CODE_MAXNRSUBSCRIPTS = -150373282,
    CODE_LOCKSUB2LONG = -150382618,
    CODE_LOCKINCR2HIGH = -150382818,
    CODE_INVVARNAME = -151027762,
    CODE_NAMECOUNT2HI = -151027810,
    CODE_TIME2LONG = -151027834,
    CODE_VARNAME2LONG = -151027842,
    CODE_TPCALLBACKINVRETVAL = -151028002,
    CODE_ISVUNSUPPORTED = -151028066,
    CODE_ISVSUBSCRIPTED = -151028082
};

/* Of the names: what follows from their first byte, and whether they are good. */
enum kind { KIND_GLOBAL, KIND_LOCAL, KIND_ISV, KIND_BAD };

typedef struct layer {
    perilune_session *locals; /* NULL: not yet opened */
    double time_limit;        /* $ZMAXTPTIME, seconds; 0: none */
    int64_t held;             /* locks taken by this layer, with their counts */
    int64_t held_before;      /* the same when the open transaction began */
    char status[512];         /* $ZSTATUS */
} layer;

/* A node in a full userdata; after the key follows the name, if it is no variable's. */
typedef struct address_node {
    const void *magic;
    int32_t kind;
    int32_t code;
    uint64_t name_size;
    perilune_node key; /* of a name that is no variable's: under a name that stands for it */
} address_node;

/* Where a call goes. */
typedef struct address {
    int kind;
    int code;         /* KIND_BAD: why */
    const char *name; /* of kinds ISV and BAD */
    size_t name_size;
    database *db; /* set by session_for, of globals */
    const perilune_node *key;
    uint64_t block[256];
} address;

/* yottadb_errors.c */
layer *layer_of(lua_State *L);
/* Raises "YDB Error: <code>: <text>". */
int raise_code(lua_State *L, int code);
int raise_perilune(lua_State *L, const address *at, int status);
/* Raises why `db` takes no calls. */
int raise_doomed(lua_State *L, const database *db);
/* The number after "YDB Error: " in the string at `index`, and 1; or 0. */
int code_in(lua_State *L, int index, int *code);
extern const luaL_Reg error_functions[];

/* yottadb_address.c */
/* Kind of a variable's name; `code` says what is wrong with it. */
int kind_of(const char *name, size_t size, int *code);
const address_node *to_address_node(lua_State *L, int index);
/* Reads (varname[, {subs}][, sub...]) or (node[, {subs}][, sub...]) from `first` to `last`. */
void resolve(lua_State *L, int first, int last, address *at);
/* Pushes the number at `index` as M writes it. */
void push_number_text(lua_State *L, int index, const char *what);
void push_text(lua_State *L, const perilune_value *value);
/* Pushes a node at `at`, with the metatable at `class` (0: none). */
void push_address(lua_State *L, const address *at, int class);
extern const luaL_Reg address_functions[];

/* yottadb_data.c */
database *current_database(lua_State *L);
/* The session for `at`; raises if it names no variable, or the transaction must end. */
perilune_session *session_for(lua_State *L, address *at);
int after_fork(lua_State *L, address *at);
/* node:get([default]) and node:set(value) of the first class. */
int value_or_default(lua_State *L);
int assign(lua_State *L);
extern const luaL_Reg value_functions[];

/* Runs a call with `session` in the expression, and raises every error. */
#define ON(status, L, at, expression)                                   \
    do {                                                                \
        for (;;) {                                                      \
            perilune_session *session = session_for(L, at);             \
            (status) = (expression);                                    \
            if ((status) != PERILUNE_FORKED || !after_fork(L, at))      \
                break;                                                  \
        }                                                               \
        if (!ANSWERED(status))                                          \
            raise_perilune(L, at, status);                              \
    } while (0)

/* yottadb_walk.c */
extern const luaL_Reg walk_functions[];

/* yottadb_iterate.c */
extern const luaL_Reg iterate_functions[];

/* yottadb_locks.c */
extern const luaL_Reg named_lock_functions[];

/* yottadb_transactions.c */
extern const luaL_Reg tp_functions[];

#endif

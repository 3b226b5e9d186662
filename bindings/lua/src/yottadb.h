/*
 * What the files of _perilune.yottadb work on: addresses by name or node, and errors as strings.
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

#include "state.h"

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
    int64_t held_before;      /* `held` when the open transaction began */
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

#endif

/*
 * What the files of _perilune work on: databases, nodes, classes, and the state that they lie in.
 *
 * Invariants
 * - Every C function of the module has the same upvalues (UPVALUE_*), so that they can call each other.
 * - A node never changes. It lies in a full userdata (`struct node`), or, where the Lua has 64-bit
 *   light userdata, in the word itself (light.c). A node of a class always takes one and the same
 *   form, so that == can be Lua's.
 * - No Perilune call is on the C stack when a Lua error is raised: statuses are returned first.
 * - `live` of a database is NULL when no call may be made: it is closed, or its transaction must end.
 */
#ifndef PERILUNE_LUA_STATE_H
#define PERILUNE_LUA_STATE_H

#include "compat.h"

#include <perilune.h>

#include <stddef.h>
#include <string.h>

#define UPVALUE_STATE lua_upvalueindex(1)
#define UPVALUE_CACHE lua_upvalueindex(2)
#define UPVALUE_PLACES lua_upvalueindex(3)
#define UPVALUE_METHODS lua_upvalueindex(4)
#define UPVALUES 4

#define NODE_MAGIC 0x504c4e31u
#define METHOD_MAGIC 0x504c4e32u
#define DATABASE_MAGIC UINT64_C(0x504552494c44423a)

typedef struct state state;
typedef struct database database;

/* A node in a full userdata; the encoded key follows. */
typedef struct node {
    uint32_t magic;
    uint16_t class_id; /* which class; unique in the Lua state */
    uint8_t method;    /* number of the method that the last subscript names; 0: none */
    uint8_t derived;   /* 1: the class is not the first one: get and set may be overridden */
    database *db;      /* alive as long as the class, which the metatable is */
    uint32_t place;    /* number of a name whose integer children are light; 0: none */
    uint32_t keeps; /* 1: likely to be used again (no integer below a name), worth a table of its children */
    uint64_t serial; /* given once in a Lua state: names this object in the cache */
    perilune_node key;
} node;

#define NODE_KEY_OFFSET offsetof(node, key)

/* A node given as an argument: its key, and how its children are made. */
typedef struct handle {
    database *db;
    const perilune_node *key;
    uint16_t class_id;
    uint8_t derived;
    uint8_t method;
    uint32_t place;
    uint64_t identity; /* of the object: its serial number, or a light node's word */
    union {
        perilune_node head;
        uint64_t bytes[64];
    } block; /* of a light node */
} handle;

enum doom {
    DOOM_NONE = 0,
    DOOM_AGAIN = 1,   /* conflict or restart: run again from the outermost level */
    DOOM_ROLLBACK = 2 /* the innermost level is to be rolled back */
};

struct database {
    uint64_t magic;
    perilune_db *db;
    perilune_session *session;
    perilune_session *live;
    state *state;
    int doom;        /* enum doom */
    int doom_status; /* what to say about it */
    int class_count;
    int own_class; /* class_id of its first class */
    int is_snapshot;
    int is_remote; /* behind a server */
    lua_State *sql_state; /* whose statement runs, for functions that it calls (sql.c) */
    int in_sql;           /* such functions that run */
    uint32_t sql_base;    /* levels of transaction that the innermost of them has found open, and ends none of */
    char *path;
    perilune_options options;
    char *shm_dir;
};

/* A name with a class, known by a small number so that a light node can mean it. */
typedef struct place {
    database *db; /* NULL: closed */
    uint16_t class_id;
    uint8_t derived;
    perilune_node *root;
} place;

enum { PLACES_MAX = 4096, STRING_SLOTS = 512, INTEGER_SLOTS = 512, TEXT_MAX = 40 };

/* Where the cache's Lua table has what belongs to slot i: children by text, by integer, and the texts. */
#define STRING_CHILD(i) ((int)(i) + 1)
#define INTEGER_CHILD(i) (STRING_SLOTS + (int)(i) + 1)
#define STRING_TEXT(i) (STRING_SLOTS + INTEGER_SLOTS + (int)(i) + 1)
#define CACHE_PLACES (STRING_SLOTS + INTEGER_SLOTS + STRING_SLOTS)

typedef struct string_slot {
    uint64_t parent;
    const char *string;
    const node *child;
} string_slot;

typedef struct integer_slot {
    uint64_t parent;
    int64_t subscript;
    const node *child;
} integer_slot;

enum {
    FORMS_FULL = 0,  /* full userdata only */
    FORMS_LIGHT = 1, /* light userdata */
    FORMS_FFI = 2    /* LuaJIT: cdata, made by perilune/ffi.lua */
};

/* What perilune/ffi.lua reads (jit.c). */
typedef struct jit_result {
    double number;
    int32_t size; /* of the text in `bytes` */
    char bytes[4092];
} jit_result;

struct state {
    uint64_t serial; /* the last one given */
    int place_count;
    int class_count;
    int forms;     /* FORMS_*: how integer children of names are made */
    int default_db; /* reference in the registry, or LUA_NOREF */
    int convert;    /* reference of a function that makes nodes of cdata, or LUA_NOREF */
    int class_hook; /* reference of a function that is called with each new class, or LUA_NOREF */
    int iterators;  /* reference of a function that makes iterators of walks, or LUA_NOREF */
    place places[PLACES_MAX];
    string_slot strings[STRING_SLOTS];
    integer_slot integers[INTEGER_SLOTS];
    lua_State *thread; /* with LuaJIT: one that lives as long as the state */
    jit_result result;
};

state *state_of(lua_State *L);

/* The methods of nodes by their numbers less 1, and the metamethods of their classes: methods.c and nodes.c fill these
 * tables. */
extern const luaL_Reg node_methods[], node_metamethods[];
enum { METHOD_GET = 1, METHOD_SET = 2, METHOD_PAIRS = 23 };

#endif

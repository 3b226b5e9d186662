/*
 * What the files of _perilune share: databases, nodes, classes, and who may call what.
 *
 * Invariants
 * - Every C function of the module has the same upvalues (UPVALUE_*), so that they can call each other.
 * - A node never changes. It lies in a full userdata (`struct node`), or, where the Lua has 64-bit
 *   light userdata, in the word itself (light.c). The same node of the same class always takes the
 *   same form, so that == can be Lua's.
 * - No Perilune call is on the C stack when a Lua error is raised: statuses are returned first.
 * - `live` of a database is NULL when no call may be made: it is closed, or its transaction must end.
 */
#ifndef PERILUNE_LUA_MODULE_H
#define PERILUNE_LUA_MODULE_H

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

/* errors.c */
#define ANSWERED(status) ((status) >= PERILUNE_OK)
int raise_status(lua_State *L, database *db, int status, const perilune_node *at);
int raise_argument(lua_State *L, const char *format, ...);
int raise_thread(lua_State *L, int status);
/* Raises the message on the top of the stack. */
int raise_message(lua_State *L, int status);
/* The same with message, place and node, which are the three values on the top of the stack (or nil). */
int raise_from_there(lua_State *L, int status);
int open_errors(lua_State *L);
/* Raises why `db` takes no calls. */
int raise_unusable(lua_State *L, database *db);
/* After fork(): gives the child a session of its own. 1: try again. */
int reopened(lua_State *L, database *db);

/* Runs a call that returns a status; `db->live` must be read in the expression. */
#define CALL(status, L, db, expression)                                 \
    do {                                                                \
        if ((db)->live == NULL)                                         \
            raise_unusable(L, db);                                      \
        (status) = (expression);                                        \
    } while ((status) == PERILUNE_FORKED && reopened(L, db))

/* As CALL, and raises every error. */
#define TRY(status, L, db, at, expression)       \
    do {                                         \
        CALL(status, L, db, expression);         \
        if (!ANSWERED(status))                   \
            raise_status(L, db, status, at);     \
    } while (0)

/* values.c */
void to_value(lua_State *L, int index, const char *what, perilune_value *value);
void to_subscript(lua_State *L, int index, perilune_value *value);
/* What is at `index`, for messages: "a table", "nil", "nothing". */
const char *described(lua_State *L, int index);
/* Pushes a value that the library gave. NB: this may run finalizers, which may call the library: where values
 * lie that another call replaces, only the first that is pushed is what was read. */
void push_value(lua_State *L, const perilune_value *value);
/* The same for bytes of the library's. */
void push_bytes(lua_State *L, const char *bytes, size_t size);
double to_timeout(lua_State *L, int index);
int open_values(lua_State *L);
extern const char empty_list_key, empty_map_key, list_key, delete_key;
int is_sentinel(lua_State *L, int index, const char *key);
void push_sentinel(lua_State *L, const char *key);
double nearest(const char *text, size_t size);
void shortest_text(double number, char text[40]);
/* 1 when the table at `index` was marked by perilune.list. */
int is_list(lua_State *L, int index);

/* nodes.c */
state *state_of(lua_State *L);
/* The node at `index`, or 0 if it is none. */
int to_handle(lua_State *L, int index, handle *out);
/* The node at `index`; raises if it is none. */
void check_handle(lua_State *L, int index, handle *out);
/* Pushes the class (metatable) of a node. */
void push_class(lua_State *L, int index);
/* Pushes the node whose key is `key`, of the class whose metatable is at `class`. */
void push_node(lua_State *L, database *db, int class, const perilune_node *key);
/* Pushes the node `name` with the subscripts in the stack from `first` to the top. */
void push_named(lua_State *L, database *db, int class, int name, int first);
void descend(lua_State *L, int first, int last);
/* Pushes the child of the node at `parent` with the subscript at `subscript`. */
void push_child(lua_State *L, int parent, const handle *of, int subscript);
int push_class_made(lua_State *L, int index);
int open_nodes(lua_State *L);
/* Makes a class of `db` whose parent class is at `parent`, or with 0 the first of the database at
 * `database_at`, and pushes it. */
void push_new_class(lua_State *L, database *db, int parent, int database_at);
/* Pushes the database of the class at `class`. */
database *push_class_database(lua_State *L, int class);
extern const luaL_Reg node_metamethods[];

/* light.c */
int light_of(lua_State *L, int index, handle *out);
/* The name and the subscript of a light node without a method: NULL if the value is none. */
const place *light_parts(lua_State *L, int index, int64_t *subscript);
int push_light_integer(lua_State *L, const handle *of, int64_t subscript);
int push_light_method(lua_State *L, int parent, const handle *of, int method);
/* The light form of `key`, if it has one: pushes it and returns 1. */
int may_be_light(lua_State *L, const perilune_node *key, int method);
int push_light_key(lua_State *L, uint32_t number, const perilune_node *key);
uint32_t place_of(lua_State *L, database *db, int class, uint16_t class_id, int derived, const perilune_node *root);
void forget_places(lua_State *L, const database *db);
int open_light(lua_State *L);

/* jit.c */
int push_jit(lua_State *L, state *s);

/* cache.c */
int cached_string(lua_State *L, const handle *of, const char *string);
void keep_string(lua_State *L, const handle *of, int text, const node *child);
int cached_integer(lua_State *L, const handle *of, int64_t subscript);
void keep_integer(lua_State *L, const handle *of, int64_t subscript, const node *child);
void forget_cached(lua_State *L, const database *db);

/* methods.c */
enum { METHOD_GET = 1 }; /* its number */
extern const luaL_Reg node_methods[];
/* The C function of a method's number. */
lua_CFunction method_function(int method);
int node_get(lua_State *L);
int node_set(lua_State *L);

/* database.c */
int durability_of(lua_State *L, int index);
database *check_database(lua_State *L, int index);
database *to_database(lua_State *L, int index);
/* The default database, opened if need be; pushes it. */
database *push_default(lua_State *L);
/* Pushes the first class of the database at `index`. */
void push_own_class(lua_State *L, int index);
int open_databases(lua_State *L);
extern const luaL_Reg database_functions[];

/* ship.c */
int ship(lua_State *L, const perilune_transaction_options *options, int function, int with_tx, int must);
int open_shipping(lua_State *L);

/* transactions.c */
extern const luaL_Reg transaction_functions[];
int open_transactions(lua_State *L);

/* walk.c */
int node_next(lua_State *L);
int node_previous(lua_State *L);
int node_subscripts(lua_State *L);
int node_pairs_method(lua_State *L);
int node_ipairs(lua_State *L);
int node_children(lua_State *L);
int node_nodes(lua_State *L);
int hand_over(lua_State *L);
int open_walk(lua_State *L);

/* A cursor that the collector closes, opened at `key`, in a userdata that is pushed. */
typedef struct loop {
    perilune_cursor *cursor;
} loop;
loop *push_loop(lua_State *L, database *db, const perilune_node *key, int kind, uint32_t flags);
void end_loop(loop *open);
/* 1: a step; 0: the end. */
int loop_step(lua_State *L, database *db, loop *open, perilune_value *subscript, perilune_value *value, int32_t *data);

/* tree.c */
/* Calls the C function `body` with the arguments on the stack as a transaction of the node at 1. */
int in_one_transaction(lua_State *L, lua_CFunction body);
enum { SUBSCRIPTS_MAX = 255 };
int node_settree(lua_State *L);
int node_gettree(lua_State *L);
int node_dump(lua_State *L);

/* json.c, jsonread.c */
int node_tojson(lua_State *L);
int node_fromjson(lua_State *L);

/* locks.c */
int node_grab(lua_State *L);
int node_release(lua_State *L);
int node_lock(lua_State *L);
int node_lock_count(lua_State *L);
int node_wait(lua_State *L);
int node_watch(lua_State *L);
int open_locks(lua_State *L);
extern const luaL_Reg lock_functions[], batch_functions[];

#endif

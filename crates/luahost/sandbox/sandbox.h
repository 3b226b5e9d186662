/*
 * A fenced-in LuaJIT state that runs scripts of clients who are not trusted.
 *
 * Invariants
 * - A script reaches the outside only by the host's function `ask`.
 * - Tables that outlive a script cannot be changed by one: what scripts see of them are proxies (shelter.c), or parts that
 *   they take out of them (direct.c).
 * - All memory that a script causes is counted before it is taken (memory.c): Lua's by the allocator, ours by buffer_room(),
 *   what the host answers and keeps by ask(). Not counted: SMALL_KEPT bytes that are free, machine code, which LuaJIT
 *   bounds, and answers of up to SCRATCH_KEPT bytes.
 * - No C function here runs long without looking whether the script is to stop, or is bounded by the
 *   memory that a script may have.
 * - Functions of the host are left before a Lua error is raised: no frame of theirs is ever jumped over.
 */
#ifndef PERILUNE_SANDBOX_H
#define PERILUNE_SANDBOX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that somebody else keeps. */
typedef struct text {
    const char *bytes;
    size_t length;
} text;

/* What a script asks of its host. */
enum {
    ASK_CALL = 0,     /* run a command; answers its reply in the wire format */
    ASK_LOG = 1,      /* level as digits, message */
    ASK_SHA1 = 2,     /* answers 40 hexadecimal digits */
    ASK_MODULE = 3,   /* answers the source of the module called so; length 0: there is none */
    ASK_COMMAND = 4,  /* length 0 if there is no command called so */
    ASK_ALLOWED = 5,  /* '0' or '1'; length 0 if there is no such command */
    ASK_REGISTER = 6, /* reference, name, description, flags...; answers an error, or length 0 */
    ASK_NODE = 7,     /* an operation of a node; answers in the wire format */
    ASK_NOTHING = -1  /* the memory of the last answer is given back */
};

enum { ANSWERED = 0, MUST_END = 1 };

#define ABSENT_GLOBAL "Script attempted to access nonexistent global variable '%s'"

/* Where an argument begins and ends in the bytes that all of them lie in. */
typedef size_t span[2];

/* What a question may take and has taken. */
typedef struct means {
    size_t room; /* bytes that the answer, and what the host keeps more, may take */
    size_t kept; /* bytes that the host keeps for the run until its end; it says so */
} means;

typedef int (*ask_function)(void *host, int question, text words, const span *spans, size_t count, int protocol,
                            means *means, text *answer);

/* One run of a script. */
typedef struct sandbox_run {
    void *host;
    ask_function ask;
    uint64_t number;   /* unique in the sandbox; 0 is none */
    int reference;     /* of the function */
    int function;      /* 1: called as f(KEYS, ARGV), else KEYS and ARGV are globals */
    int open;          /* 1: may set globals, which are gone afterwards */
    int positional;    /* 1: called as f(argument, ...) */
    int loading;       /* 1: defines functions */
    int protocol;      /* 2 or 3: of the reply */
    uint32_t seed;     /* of math.random */
    text name;         /* for errors */
    const text *keys;
    size_t key_count;
    const text *arguments;
    size_t argument_count;
} sandbox_run;

enum { RUN_REPLIED = 0, RUN_ENDED = 1, RUN_STOPPED = 2 };

typedef struct buffer {
    char *bytes;
    size_t length;
    size_t room;
} buffer;

/* What sandboxes take together, in portions. */
typedef struct pool {
    _Atomic size_t used;
    _Atomic size_t limit;
} pool;

/* Strings that each run wants: they are made once, and found without being hashed. */
enum {
    NAME_KEYS,
    NAME_ARGV,
    NAME_OK,
    NAME_DONE,
    NAME_ERR,
    NAME_DOUBLE,
    NAME_MAP,
    NAME_SET,
    NAME_BIG_NUMBER,
    NAME_VERBATIM,
    NAMES
};

/* What scripts are given, as globals. */
enum { LIST_KEYS, LIST_ARGUMENTS, LISTS };

/* One that all scripts are given that take but its parts. */
typedef struct shared_list {
    int reference;
    size_t filled; /* so many are there */
} shared_list;

/* What direct.c knows of a script. */
typedef struct script_traits {
    unsigned char reach;
    unsigned char lists[LISTS];
    unsigned char own; /* bits: the lists of its own that its globals have now */
} script_traits;

/* Memory of Lua's that is free. */
typedef struct free_block {
    struct free_block *next;
} free_block;

enum {
    SMALL_STEP = 16,        /* bytes: between one kind of blocks kept free and the next */
    SMALL_KINDS = 16,       /* up to 256 bytes */
    SMALL_KEPT = 256 << 10  /* bytes of all of them */
};

typedef struct json_options {
    int encode_max_depth, decode_max_depth, precision;
    int sparse_convert, sparse_ratio, sparse_safe;
    int encode_invalid, decode_invalid, keep_buffer;
} json_options;

typedef struct sandbox {
    lua_State *L;
    lua_State *owner;   /* of what `allocate` gives */
    lua_Alloc allocate; /* LuaJIT's own */
    void *allocator;
    free_block *free[SMALL_KINDS];
    size_t free_bytes;
    size_t used; /* bytes, of Lua, of buffers, of answers and of what the host keeps */
    size_t limit;
    size_t granted; /* of the pool's */
    size_t ceiling; /* the lesser of both */
    pool *pool;
    size_t answered; /* bytes of the answer that is there, and of what the host keeps: they are among those used */
    size_t kept;
    const sandbox_run *run;
    int script_protocol; /* what redis.setresp() has chosen */
    int ending;          /* the host has asked for the script's end */
    const void *raised;  /* the text of the error that redis.call() raised last */
    int line;            /* where the error was */
    int tail;            /* a guess: the frame was gone */
    char source[64];
    buffer out;     /* the reply */
    buffer scratch; /* of the function that runs now */
    buffer words;   /* the arguments of a question, one behind the other */
    span *spans;
    size_t span_room;
    json_options json;
    uint64_t chance;      /* of math.random */
    uint64_t modules_run; /* the run that the loaded modules belong to */
    /* References in the registry: what scripts see as _G, what is behind it, functions of state.c, the metatable of
     * globals that may be set, modules by their names, what runs functions of programs, `redis` of scripts and of what
     * is loaded. */
    int proxy, globals, handler, body, describe, compile, open_globals, modules, shipped, redis, registration;
    int names[NAMES];     /* references too */
    int survey, literals; /* and these: of direct.lua, and what looks for literals that there are none of */
    shared_list lists[LISTS];
    script_traits *traits; /* by the reference of a script */
    size_t traits_room;
    const char *stack;    /* where the C stack was when the run began */
    /* By other threads: */
    pthread_mutex_t mutex;
    pthread_t thread;
    uint64_t running;            /* number of the run on `thread`; under the mutex */
    _Atomic uint64_t stop;       /* number of the run that is to stop */
    uint64_t current;            /* number of the run; the script's thread only */
} sandbox;

/* ticks.c: 0 where there is no counter. */
uint64_t sandbox_ticks(void);

/* state.c */
sandbox *sandbox_new(size_t limit, pool *pool);
void sandbox_limit(sandbox *S, size_t limit);
void sandbox_free(sandbox *S);
int sandbox_compile(sandbox *S, text source, const char *name, int *reference, text *error);
void sandbox_forget(sandbox *S, int reference);
int sandbox_do(sandbox *S, const sandbox_run *run, text *reply);
int sandbox_stop(sandbox *S, uint64_t number);
size_t sandbox_memory(const sandbox *S);

/* memory.c */
void *counted(void *ud, void *block, size_t old_size, size_t new_size);
/* Counts so many bytes more; 0 if the script may not have them. */
int count_in(sandbox *S, size_t more);
void count_out(sandbox *S, size_t less);
/* Counts what the host has taken, within the room that it was told. */
void count_taken(sandbox *S, size_t more);
/* The same, if need be when what is no longer wanted has been given back; raises if the script may not have them. */
void count_in_or_raise(sandbox *S, lua_State *L, size_t more);
/* How many more there may be. */
size_t room_left(const sandbox *S);
/* Gives back to the pool what is not used: between runs. */
void settle(sandbox *S);

sandbox *sandbox_of(lua_State *L);
/* Pushes one of the strings NAME_... */
void push_name(sandbox *S, lua_State *L, int name);
/* Raises if the script is to stop; called every so many steps by all that may take long. */
void check_stop(sandbox *S, lua_State *L);
/* Raises if the C stack is deep; called by all that call back into Lua. */
void check_depth(sandbox *S, lua_State *L);
/* Makes room for `more` bytes; raises if the script may not have them. */
char *buffer_room(sandbox *S, lua_State *L, buffer *b, size_t more);
void buffer_put(sandbox *S, lua_State *L, buffer *b, const void *bytes, size_t length);
void buffer_byte(sandbox *S, lua_State *L, buffer *b, char byte);
/* Empties it, and gives back what it has more than SCRATCH_KEPT bytes of. */
void shrink(sandbox *S, buffer *b);
/* The answer is not wanted any more. */
void forget_answer(sandbox *S);
/* Writes a whole number, without a zero behind it: at most WHOLE_DIGITS bytes; how many. */
size_t write_whole(char *place, long long number);
/* Asks the host; raises if the script must end. The answer lasts until the next question, or forget_answer(). */
text ask(sandbox *S, lua_State *L, int question, size_t count);
/* Makes first..last of the stack the arguments of a question, numbers as Redis writes them; 0 if one is neither a
 * string nor a number. */
int collect(sandbox *S, lua_State *L, int first, int last);

/* replies.c */
void push_reply(sandbox *S, lua_State *L, text reply);
void write_reply(sandbox *S, lua_State *L, int index, int protocol);
void write_error(sandbox *S, lua_State *L, buffer *b, text message);

/* calls.c */
void open_calls(sandbox *S);
/* Pushes what `redis` is while a library is loaded; at the top is what it is else. */
void open_registration(lua_State *L);
int client_call(lua_State *L);

/* nodes.c */
void open_script_nodes(sandbox *S);
/* ask(operation, count, subscript, ..., value), for Lua. */
int ask_node(lua_State *L);
void load_json(lua_State *L);

/* shipped.c */
void open_shipped(sandbox *S, int globals);
int sandbox_shipped(const sandbox *S);

/* direct.c */
void open_direct(sandbox *S, int globals);
/* Gives the script at the top its globals for the run. */
void hand_globals(sandbox *S, lua_State *L);
/* Pushes the keys and the other arguments. */
void push_lists(lua_State *L, const sandbox_run *run);
/* Makes places for the lists in the globals; the names are there, and all other globals. */
void place_lists(sandbox *S);
/* Takes lists of its own from the globals of a script that has run. */
void take_lists(sandbox *S, int reference);
/* The reference is that of another script, or none's. */
void forget_traits(sandbox *S, int reference);

/* shelter.c */
void open_shelter(sandbox *S);
int is_proxy(lua_State *L, int index);
/* Compiles text; what it must not have is an error. */
int load_text(lua_State *L, const char *bytes, size_t length, const char *name);

/* chance.c, sorting.c, patterns.c, json.c, msgpack.c, packing.c: functions of libraries */
extern const luaL_Reg chance_functions[], table_functions[], pattern_functions[], json_functions[],
    msgpack_functions[], packing_functions[];
void seed_chance(sandbox *S, uint32_t seed);
void reset_json(sandbox *S);

enum {
    WHOLE_DIGITS = 20,
    NUMBER_BYTES = 32,
    SOURCE_BYTES = 1 << 20,   /* of one script or module */
    STEPS_UNCHECKED = 4096,   /* between two looks at the stop flag */
    STACK_BYTES = 512 << 10,  /* of the C stack that functions calling back into Lua may use */
    NESTED_REPLIES = 200,
    LOGGED_BYTES = 1024,      /* of what redis.log() is given */
    LIST_KEPT = 16,           /* texts in a list that scripts share */
    SCRATCH_KEPT = 64 << 10,  /* bytes of a buffer kept between scripts, and of an answer that is not counted */
    PORTION = 256 << 10       /* bytes that are taken from the pool at a time */
};

#endif

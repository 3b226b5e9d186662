/*
 * A fenced-in LuaJIT state that runs scripts of clients who are not trusted: what all of its parts know of it.
 *
 * Invariants
 * - A script reaches the outside only by the host's function `ask`.
 * - Tables that outlive a script cannot be changed by one: what scripts see of them are proxies (environment.c), or parts that
 *   they take out of them (script_globals.c).
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

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that somebody else keeps. */
typedef struct text {
    const char *bytes;
    size_t length;
} text;

/* What the sandbox itself asks of its host; libraries count from 0. */
enum { OF_SANDBOX = -1 };
enum {
    ASK_MODULE = 0, /* answers the source of the module called so; length 0: there is none */
    ASK_NOTHING = 1 /* the memory of the last answer is given back */
};

enum { ANSWERED = 0, MUST_END = 1 };

#define ABSENT_GLOBAL "Script attempted to access nonexistent global variable '%s'"

/* Where an argument begins and ends in the bytes that all of them lie in. */
typedef size_t span[2];

/* What a question may take and has taken. */
typedef struct allowance {
    size_t room; /* bytes that the answer, and what the host keeps more, may take */
    size_t kept; /* bytes that the host keeps for the run until its end; it says so */
} allowance;

/* A function of a library, by their numbers. */
typedef struct question {
    int library, function;
} question;

typedef int (*ask_function)(void *host, question asked, text words, const span *spans, size_t count, allowance *allowed,
                            text *answer);

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
    int variant;       /* of the reply: its format knows them */
    uint32_t seed;     /* of math.random */
    text name;         /* for errors */
    const text *keys;
    size_t key_count;
    const text *arguments;
    size_t argument_count;
} sandbox_run;

/* What a value is that a function is called with (call.h), or answers; VALUE_BYTES: the reply tells it, in the form of values.c. */
enum { VALUE_NOTHING = 0, VALUE_TRUTH = 1, VALUE_NUMBER = 2, VALUE_TEXT = 3, VALUE_BYTES = 4 };

typedef union payload {
    double number; /* of a truth value 0 or 1 */
    text bytes;
} payload;

typedef struct value {
    int kind;
    payload what;
} value;

typedef struct sandbox sandbox;

/* A function that the host answers: its number is its place. */
typedef struct host_function {
    const char *name;
    int while_loading; /* 1: scripts that define functions may call it, too */
} host_function;

/* What scripts find as a global. */
typedef struct library {
    const char *name;
    /* Adds the library, whose number it is, to the globals; NULL: it is a table of `functions`. */
    void (*open)(sandbox *S, int number, int globals);
    const host_function *functions;
    size_t count;
} library;

/* How what a script returns, and the error that ends it, become bytes for the host. */
typedef struct format {
    /* A run begins; it has ended; or NULL. NB: outside of protected mode: nothing may be allocated. */
    void (*begin)(sandbox *S);
    void (*end)(sandbox *S);
    /* Appends the value at `index` to S->out. */
    void (*write_result)(sandbox *S, lua_State *L, int index);
    /* Appends the error at 1 to it, of which failure.h tells more. */
    void (*write_failure)(sandbox *S, lua_State *L);
    text no_memory; /* the reply where there is none even for the error */
} format;

/* What a sandbox gives its scripts besides Lua's own libraries. */
typedef struct offer {
    const library *const *libraries;
    size_t count;
    const format *format;
} offer;

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
    NAMES
};

/* The lists that scripts are given as globals. */
enum { LIST_KEYS, LIST_ARGUMENTS, LISTS };

/* A list that is given to all scripts which only take its parts (script_globals.c). */
typedef struct shared_list {
    int reference;
    size_t filled; /* how many strings it holds */
} shared_list;

/* What script_globals.c knows of a script. */
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

struct sandbox {
    lua_State *L;
    const offer *offer;
    void *own; /* what the format keeps */
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
    const value *given; /* what the function is called with */
    size_t given_count;
    int ending;          /* the host has asked for the script's end */
    const void *raised;  /* the text of the error that raise_plain() raised last */
    int line;            /* where the error was */
    int tail;            /* a guess: the frame was gone */
    char source[64];
    buffer out;     /* the reply */
    buffer scratch; /* of the function that runs now */
    buffer words;   /* the arguments of a question, one behind the other */
    span *spans;
    size_t span_room;
    json_options json;
    uint64_t random;      /* of math.random */
    uint64_t modules_run; /* the run that the loaded modules belong to */
    int nodes; /* the number of the library of nodes, if there is one */
    /* References in the registry: what scripts see as _G, what is behind it, functions of run.c and call.c, the metatable of
     * globals that may be set, modules by their names, what runs functions of programs (or LUA_NOREF). */
    int proxy, globals, handler, body, describe, compile, call, write, open_globals, modules, shipped;
    int names[NAMES];     /* references too */
    int traits_function, literals; /* and these: the functions that script_globals.lua and literals.lua return */
    shared_list lists[LISTS];
    script_traits *traits; /* by the reference of a script */
    size_t traits_room;
    const char *stack;    /* how far the C stack may reach in this run */
    const char *host_stack, *least_stack; /* and how far when the host is asked, and in C that calls itself */
    struct sandbox *outer; /* whose run asked the host for what this one does, on the same thread */
    /* By other threads: */
    _Atomic int thread;          /* of the run, as the kernel numbers them */
    _Atomic uint64_t running;    /* number of the run on it, or 0 */
    _Atomic uint64_t stop;       /* number of the run that is to stop */
    _Atomic unsigned heard;      /* how many signals had come when it was told so last */
    uint64_t current;            /* number of the run; the script's thread only */
};

/* The sandbox that a state belongs to. */
sandbox *sandbox_of(lua_State *L);
/* Pushes one of the strings NAME_... */
void push_name(sandbox *S, lua_State *L, int name);

enum {
    STEPS_UNCHECKED = 4096,  /* between two looks at the stop flag */
    STACK_BYTES = 512 << 10, /* of the C stack that functions calling back into Lua may use */
    SCRATCH_KEPT = 64 << 10  /* bytes of a buffer kept between scripts, and of an answer that is not counted */
};

#endif

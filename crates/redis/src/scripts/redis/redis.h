/*
 * What the parts of Redis's library for scripts keep in a sandbox.
 */
#ifndef PERILUNE_SCRIPTS_REDIS_H
#define PERILUNE_SCRIPTS_REDIS_H

#include <sandbox.h>

/* What scripts ask: the numbers that `Asked` of mod.rs has. */
enum {
    ASK_CALL = 0,     /* run a command; answers its reply in RESP2 */
    ASK_CALL3 = 1,    /* and in RESP3 */
    ASK_LOG = 2,      /* level as digits, message */
    ASK_SHA1 = 3,     /* answers 40 hexadecimal digits */
    ASK_COMMAND = 4,  /* length 0 if there is no command called so */
    ASK_ALLOWED = 5,  /* '0' or '1'; length 0 if there is no such command */
    ASK_REGISTER = 6  /* reference, name, description, flags...; answers an error, or length 0 */
};

/* Strings that each run wants: they are made once, and found without being hashed. */
enum { WORD_OK, WORD_DONE, WORD_ERR, WORD_DOUBLE, WORD_MAP, WORD_SET, WORD_BIG_NUMBER, WORD_VERBATIM, WORDS };

/* Of one sandbox. */
typedef struct redis {
    int number;   /* of the library */
    int protocol; /* what redis.setresp() has chosen */
    int words[WORDS]; /* references in the registry */
    int scripts, registration; /* and these: what scripts have as `redis`, and what those that define functions have */
} redis;

static inline redis *redis_of(const sandbox *S)
{
    return S->own;
}

/* Pushes one of the strings WORD_... */
static inline void push_word(const sandbox *S, lua_State *L, int word)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, redis_of(S)->words[word]);
}

#endif

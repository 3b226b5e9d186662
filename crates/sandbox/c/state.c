/*
 * Makes a sandbox, with its Lua state and all that scripts see in it, and frees it.
 */
#include "state.h"

#include "call.h"
#include "script_globals.h"
#include "memory.h"
#include "run.h"
#include "environment.h"
#include "stop.h"

#include <pthread.h>
#include <stdlib.h>

static int open_globals(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    open_environment(S);
    open_runs(S);
    open_calls(S);
    static const char *const names[NAMES] = {[NAME_KEYS] = "KEYS", [NAME_ARGV] = "ARGV"};
    for (size_t i = 0; i < NAMES; i++) {
        lua_pushstring(L, names[i]);
        S->names[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    place_lists(S);
    return 0;
}

sandbox *sandbox_new(size_t limit, pool *pool, const offer *offer)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, catch_signal);
    sandbox *S = calloc(1, sizeof *S);
    if (S == NULL)
        return NULL;
    S->limit = limit;
    S->pool = pool;
    S->offer = offer;
    /* NB: no block may come from anywhere but counted(): so LuaJIT's allocator is that of another state. */
    S->owner = luaL_newstate();
    if (S->owner != NULL)
        S->allocate = lua_getallocf(S->owner, &S->allocator);
    lua_State *L = S->owner != NULL ? lua_newstate(counted, S) : NULL;
    if (L == NULL) {
        if (S->owner != NULL)
            lua_close(S->owner);
        S->used = 0;
        settle(S);
        free(S);
        return NULL;
    }
    S->L = L;
    lua_pushcfunction(L, open_globals);
    if (lua_pcall(L, 0, 0, 0) != 0) {
        sandbox_free(S);
        return NULL;
    }
    return S;
}

void sandbox_free(sandbox *S)
{
    lua_close(S->L);
    lua_close(S->owner);
    free(S->out.bytes);
    free(S->scratch.bytes);
    free(S->words.bytes);
    free(S->spans);
    free(S->traits);
    S->used = 0;
    settle(S);
    free(S);
}

size_t sandbox_memory(const sandbox *S)
{
    return S->used;
}

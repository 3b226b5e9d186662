/*
 * Compiles scripts and runs them, in protected mode: whatever a script raises ends its run and nothing else. What
 * it returns, or the error that ends it, becomes the reply, in the form that the host has chosen (`struct
 * format`).
 */
#include "run.h"

#include "ask.h"
#include "buffer.h"
#include "random.h"
#include "script_globals.h"
#include "failure.h"
#include "json.h"
#include "memory.h"
#include "source.h"
#include "stop.h"

/* In protected mode: compiles the source that is the light userdata at 1 and gives it the globals; its
 * reference or nothing is left in `reference`. */
typedef struct compilation {
    text source;
    const char *name;
    int reference;
} compilation;

static int compile(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    compilation *c = lua_touserdata(L, 1);
    if (load_text(L, c->source.bytes, c->source.length, c->name) != 0)
        return lua_error(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->proxy);
    lua_setfenv(L, -2);
    c->reference = luaL_ref(L, LUA_REGISTRYINDEX);
    forget_traits(S, c->reference);
    return 0;
}

int sandbox_compile(sandbox *S, text source, const char *name, int *reference, text *error)
{
    lua_State *L = S->L;
    compilation c = {source, name, LUA_NOREF};
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->compile);
    lua_pushlightuserdata(L, &c);
    int failed = lua_pcall(L, 1, 0, 0);
    *reference = c.reference;
    *error = (text){"not enough memory", 17};
    if (failed != 0 && lua_type(L, -1) == LUA_TSTRING)
        error->bytes = lua_tolstring(L, -1, &error->length); /* on the stack until the next call */
    return failed == 0;
}

void sandbox_forget(sandbox *S, int reference)
{
    luaL_unref(S->L, LUA_REGISTRYINDEX, reference);
    forget_traits(S, reference);
}

/* Whether keys and arguments are globals. */
static int has_lists(const sandbox_run *run)
{
    return !run->function && !run->positional && !run->loading;
}

void write_reply_of(sandbox *S, lua_State *L, int index)
{
    S->offer->format->write_result(S, L, index);
    /* The host makes a copy, and that is the script's too. */
    if (S->out.length > SCRATCH_KEPT) {
        lua_settop(L, 0);
        count_in_or_raise(S, L, S->out.length);
        count_out(S, S->out.length);
    }
}

/* Runs in protected mode: the function, with what it is given; its first result becomes the reply. */
static int body(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    const sandbox_run *run = S->run;
    check_depth(S, L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, run->reference);
    if (run->open) {
        lua_createtable(L, 0, 4);
        lua_rawgeti(L, LUA_REGISTRYINDEX, S->open_globals);
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "_G");
        lua_setfenv(L, -2);
    }
    int arguments = 0;
    if (run->function) {
        push_lists(L, run);
        arguments = 2;
    } else if (has_lists(run)) {
        hand_globals(S, L);
    } else if (run->positional) {
        luaL_checkstack(L, (int)run->argument_count, "too many arguments");
        for (size_t i = 0; i < run->argument_count; i++)
            lua_pushlstring(L, run->arguments[i].bytes, run->arguments[i].length);
        arguments = (int)run->argument_count;
    }
    lua_call(L, arguments, 1);
    if (!run->loading)
        write_reply_of(S, L, lua_gettop(L));
    return 0;
}

/* In protected mode too: the reply that the error at index 1 becomes. */
static int describe(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    S->scratch.length = 0;
    S->out.length = 0;
    S->offer->format->write_failure(S, L);
    return 0;
}

void begin_run(sandbox *S, const sandbox_run *run)
{
    shrink(S, &S->out);
    S->run = run;
    S->ending = 0;
    S->raised = NULL;
    S->line = 0;
    reset_json(S);
    seed_random(S, run->seed);
    if (S->offer->format->begin != NULL)
        S->offer->format->begin(S);
    begin_stoppable(S, run->number);
}

static void finish(sandbox *S)
{
    end_stoppable(S);
    /* The host gives back what it has answered and kept. */
    count_out(S, S->answered + S->kept);
    S->answered = S->kept = 0;
}

/* All but the reply. */
static void shrink_all(sandbox *S)
{
    shrink(S, &S->scratch);
    shrink(S, &S->words);
    settle(S);
}

int end_run(sandbox *S, int failed, text *reply)
{
    lua_State *L = S->L;
    finish(S);
    if (has_lists(S->run))
        take_lists(S, S->run->reference);
    if (S->offer->format->end != NULL)
        S->offer->format->end(S);
    int outcome = RUN_REPLIED;
    if (S->ending)
        outcome = RUN_ENDED;
    else if (failed != 0 && is_stopped(S))
        outcome = RUN_STOPPED;
    S->current = 0;
    int described = 1;
    if (outcome == RUN_REPLIED && failed != 0) {
        described = 0;
        if (failed != LUA_ERRMEM) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, S->describe);
            lua_insert(L, -2);
            described = lua_pcall(L, 1, 0, 0) == 0;
        }
    }
    S->run = NULL;
    *reply = (text){S->out.bytes, S->out.length};
    if (!described) {
        lua_settop(L, 0);
        lua_gc(L, LUA_GCCOLLECT, 0);
        *reply = S->offer->format->no_memory;
    }
    if (failed != 0)
        lua_settop(L, 0);
    shrink_all(S);
    return outcome;
}

int sandbox_do(sandbox *S, const sandbox_run *run, text *reply)
{
    lua_State *L = S->L;
    lua_settop(L, 0);
    begin_run(S, run);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->handler);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->body);
    int outcome = end_run(S, lua_pcall(L, 0, 0, 1), reply);
    lua_settop(L, 0);
    return outcome;
}

void open_runs(sandbox *S)
{
    const struct {
        lua_CFunction function;
        int *reference;
    } functions[] = {{body, &S->body}, {describe, &S->describe}, {compile, &S->compile}, {note_failure, &S->handler}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        lua_pushcfunction(S->L, functions[i].function);
        *functions[i].reference = luaL_ref(S->L, LUA_REGISTRYINDEX);
    }
}

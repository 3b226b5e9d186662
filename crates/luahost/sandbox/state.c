/*
 * Sandboxes: the running of scripts, their buffers, and how a script is stopped from another thread.
 *
 * To stop a run, another thread stores its number and sends the thread that runs it a signal, whose handler
 * sets a hook; the hook raises an error at the next instruction, again and again until the script has
 * ended, whatever it catches. LuaJIT is built so that compiled loops look at the hook too. Our own C
 * functions look at the number. The signal is SIGURG, which nobody is hurt by.
 */
#include "sandbox.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static __thread sandbox *volatile on_this_thread;

sandbox *sandbox_of(lua_State *L)
{
    void *S = NULL;
    lua_getallocf(L, &S);
    return S;
}

void push_name(sandbox *S, lua_State *L, int name)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->names[name]);
}

static int is_stopped(const sandbox *S)
{
    return S->ending || (S->current != 0 && atomic_load_explicit(&S->stop, memory_order_acquire) == S->current);
}

static void on_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    if (is_stopped(sandbox_of(L)))
        luaL_error(L, "the script was stopped");
    else
        lua_sethook(L, NULL, 0, 0);
}

/* NB: off and on again, since the signal may have come while LuaJIT was changing its dispatch itself. */
static void set_hook(sandbox *S)
{
    lua_sethook(S->L, NULL, 0, 0);
    lua_sethook(S->L, on_hook, LUA_MASKCOUNT, 1);
}

static void on_signal(int number)
{
    (void)number;
    sandbox *S = on_this_thread;
    if (S != NULL && is_stopped(S))
        set_hook(S);
}

static void catch_signal(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGURG, &action, NULL);
}

void check_stop(sandbox *S, lua_State *L)
{
    if (is_stopped(S)) {
        set_hook(S);
        luaL_error(L, "the script was stopped");
    }
}

void check_depth(sandbox *S, lua_State *L)
{
    if (S->stack - (const char *)__builtin_frame_address(0) > STACK_BYTES)
        luaL_error(L, "C stack overflow");
}

/* Stops run `number` if it runs; to be called again until it has ended. 1 if it still runs. */
int sandbox_stop(sandbox *S, uint64_t number)
{
    pthread_mutex_lock(&S->mutex);
    int runs = S->running == number && number != 0;
    if (runs) {
        atomic_store_explicit(&S->stop, number, memory_order_release);
        pthread_kill(S->thread, SIGURG);
    }
    pthread_mutex_unlock(&S->mutex);
    return runs;
}

static int body(lua_State *L);
static int describe(lua_State *L);
static int compile(lua_State *L);
static int on_error(lua_State *L);

static int furnish(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    open_shelter(S);
    const struct {
        lua_CFunction function;
        int *reference;
    } functions[] = {{body, &S->body}, {describe, &S->describe}, {compile, &S->compile}, {on_error, &S->handler}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        lua_pushcfunction(L, functions[i].function);
        *functions[i].reference = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    static const char *const names[NAMES] = {
        [NAME_KEYS] = "KEYS", [NAME_ARGV] = "ARGV", [NAME_OK] = "ok", [NAME_DONE] = "OK",
        [NAME_ERR] = "err", [NAME_DOUBLE] = "double", [NAME_MAP] = "map", [NAME_SET] = "set",
        [NAME_BIG_NUMBER] = "big_number", [NAME_VERBATIM] = "verbatim_string"};
    for (size_t i = 0; i < NAMES; i++) {
        lua_pushstring(L, names[i]);
        S->names[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    place_lists(S);
    return 0;
}

sandbox *sandbox_new(size_t limit, pool *pool)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, catch_signal);
    sandbox *S = calloc(1, sizeof *S);
    if (S == NULL)
        return NULL;
    S->limit = limit;
    S->pool = pool;
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
    pthread_mutex_init(&S->mutex, NULL);
    lua_pushcfunction(L, furnish);
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
    pthread_mutex_destroy(&S->mutex);
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

/* Makes room for `more` bytes, and if it is to be had for as many as there are. */
static void enlarge(sandbox *S, lua_State *L, buffer *b, size_t more)
{
    size_t wanted = b->length + more, room = b->room * 2 > wanted ? b->room * 2 : wanted;
    if (wanted < more)
        luaL_error(L, "not enough memory");
    if (!count_in(S, room - b->room)) {
        room = wanted;
        count_in_or_raise(S, L, room - b->room);
    }
    char *bytes = realloc(b->bytes, room);
    if (bytes == NULL) {
        count_out(S, room - b->room);
        luaL_error(L, "not enough memory");
    }
    b->bytes = bytes;
    b->room = room;
}

char *buffer_room(sandbox *S, lua_State *L, buffer *b, size_t more)
{
    if (b->room - b->length < more)
        enlarge(S, L, b, more);
    return b->bytes + b->length;
}

void buffer_put(sandbox *S, lua_State *L, buffer *b, const void *bytes, size_t length)
{
    char *place = buffer_room(S, L, b, length);
    if (length > 0)
        memcpy(place, bytes, length);
    b->length += length;
}

void buffer_byte(sandbox *S, lua_State *L, buffer *b, char byte)
{
    *buffer_room(S, L, b, 1) = byte;
    b->length++;
}

void shrink(sandbox *S, buffer *b)
{
    b->length = 0;
    if (b->room > SCRATCH_KEPT) {
        count_out(S, b->room);
        free(b->bytes);
        b->bytes = NULL;
        b->room = 0;
    }
}

void forget_answer(sandbox *S)
{
    if (S->answered == 0)
        return;
    count_out(S, S->answered);
    S->answered = 0;
    text none;
    means nothing = {0, S->kept};
    S->run->ask(S->run->host, ASK_NOTHING, (text){NULL, 0}, NULL, 0, S->script_protocol, &nothing, &none);
}

text ask(sandbox *S, lua_State *L, int question, size_t count)
{
    text answer = {NULL, 0};
    if (S->run == NULL)
        luaL_error(L, "no script runs");
    forget_answer(S);
    text words = {S->words.bytes, S->words.length};
    means means = {room_left(S), S->kept};
    int outcome =
        S->run->ask(S->run->host, question, words, S->spans, count, S->script_protocol, &means, &answer);
    shrink(S, &S->words);
    count_out(S, S->kept);
    S->kept = means.kept;
    S->answered = answer.length > SCRATCH_KEPT ? answer.length : 0;
    count_taken(S, S->kept + S->answered);
    if (outcome != ANSWERED)
        S->ending = 1;
    check_stop(S, L);
    return answer;
}

/* How many digits a number has. */
static size_t digits_of(unsigned long long number)
{
    static const unsigned long long powers[] = {0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
                                                10000000000, 100000000000, 1000000000000, 10000000000000,
                                                100000000000000, 1000000000000000, 10000000000000000,
                                                100000000000000000, 1000000000000000000, 10000000000000000000u};
    /* Of the bits, rounded down: 1233 / 4096 is the logarithm of 2. */
    size_t least = (size_t)(64 - __builtin_clzll(number | 1)) * 1233 >> 12;
    return least + (number >= powers[least]);
}

size_t write_whole(char *place, long long number)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051"
                                "525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    size_t sign = number < 0;
    unsigned long long rest = sign ? 0 - (unsigned long long)number : (unsigned long long)number;
    size_t length = sign + digits_of(rest), at = length;
    place[0] = '-';
    for (; rest >= 100; rest /= 100)
        memcpy(place + (at -= 2), pairs + 2 * (rest % 100), 2);
    if (rest >= 10)
        memcpy(place + (at - 2), pairs + 2 * rest, 2);
    else
        place[at - 1] = (char)('0' + rest);
    return length;
}

/* Writes a number as Redis does, at most NUMBER_BYTES; how many. */
static size_t write_number(char *place, lua_Number number)
{
    long long whole = number > -1e15 && number < 1e15 ? (long long)number : 0;
    if ((lua_Number)whole == number && (whole != 0 || !signbit(number)))
        return write_whole(place, whole);
    return (size_t)snprintf(place, NUMBER_BYTES, "%.17g", number);
}

/* Makes room for so many spans. */
static void room_for_spans(sandbox *S, lua_State *L, size_t count)
{
    count_in_or_raise(S, L, (count - S->span_room) * sizeof *S->spans);
    span *spans = realloc(S->spans, count * sizeof *spans);
    if (spans == NULL) {
        count_out(S, (count - S->span_room) * sizeof *S->spans);
        luaL_error(L, "not enough memory");
    }
    S->spans = spans;
    S->span_room = count;
}

/* NB: behind each argument there is room for all that follow, were they numbers. */
int collect(sandbox *S, lua_State *L, int first, int last)
{
    int count = last < first ? 0 : last - first + 1;
    if ((size_t)count > S->span_room)
        room_for_spans(S, L, (size_t)count);
    S->words.length = 0;
    buffer_room(S, L, &S->words, NUMBER_BYTES * (size_t)count);
    char *bytes = S->words.bytes;
    span *spans = S->spans;
    size_t at = 0, room = S->words.room;
    for (int i = 0; i < count; i++) {
        size_t length;
        int type = lua_type(L, first + i);
        spans[i][0] = at;
        if (type == LUA_TSTRING) {
            const char *string = lua_tolstring(L, first + i, &length);
            size_t wanted = length + NUMBER_BYTES * (size_t)(count - i);
            if (room - at < wanted) {
                S->words.length = at;
                buffer_room(S, L, &S->words, wanted);
                bytes = S->words.bytes;
                room = S->words.room;
            }
            memcpy(bytes + at, string, length);
        } else if (type == LUA_TNUMBER) {
            length = write_number(bytes + at, lua_tonumber(L, first + i));
        } else {
            return 0;
        }
        at += length;
        spans[i][1] = at;
    }
    S->words.length = at;
    return 1;
}

int load_text(lua_State *L, const char *bytes, size_t length, const char *name)
{
    const sandbox *S = sandbox_of(L);
    if (length > SOURCE_BYTES) {
        lua_pushfstring(L, "the code is longer than %d bytes", (int)SOURCE_BYTES);
        return LUA_ERRSYNTAX;
    }
    int failed = luaL_loadbufferx(L, bytes, length, name, "t");
    if (failed != 0)
        return failed;
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->literals);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 1);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pop(L, 2);
    lua_pushliteral(L, "a number ends in LL, ULL or i: scripts have no 64-bit and no complex numbers");
    return LUA_ERRSYNTAX;
}

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

/* 1 and a reference, or 0 and why not, in memory that lasts until the next call. */
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

/* Runs in protected mode: the function, with what it is given; its first result becomes the reply. */
static int body(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    const sandbox_run *run = S->run;
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
    if (!run->loading) {
        write_reply(S, L, -1, run->protocol);
        /* The host makes a copy, and that is the script's too. */
        if (S->out.length > SCRATCH_KEPT) {
            lua_settop(L, 0);
            count_in_or_raise(S, L, S->out.length);
            count_out(S, S->out.length);
        }
    }
    return 0;
}

/* Notes where an error was raised. */
static int on_error(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    lua_Debug ar;
    S->line = 0;
    S->tail = 0;
    S->source[0] = 0;
    for (int level = 1; level <= 2; level++) {
        if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar))
            break;
        S->line = ar.currentline;
        snprintf(S->source, sizeof S->source, "%s", ar.source);
        if (ar.what == NULL || strcmp(ar.what, "C") != 0) {
            lua_settop(L, 1);
            return 1;
        }
    }
    /* `return f()`: the frame of the script is gone. That call ends it, so it is most likely its last line. */
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->run->reference);
    if (lua_getinfo(L, ">S", &ar)) {
        S->line = ar.lastlinedefined > 0 ? ar.lastlinedefined : 1;
        S->tail = 1;
        snprintf(S->source, sizeof S->source, "%s", ar.source);
    }
    lua_settop(L, 1);
    return 1;
}

/* In protected mode too: the reply that the error at index 1 becomes. */
static int describe(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    text message = {NULL, 0};
    S->scratch.length = 0;
    if (lua_istable(L, 1)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING)
            message.bytes = lua_tolstring(L, -1, &message.length);
    } else if (lua_type(L, 1) == LUA_TSTRING && lua_tostring(L, 1) == S->raised) {
        message.bytes = lua_tolstring(L, 1, &message.length);
    }
    if (message.bytes == NULL) {
        buffer_put(S, L, &S->scratch, "ERR ", 4);
        if (S->tail && S->source[0] == '@' && lua_type(L, 1) == LUA_TSTRING) {
            char place[96];
            int length = snprintf(place, sizeof place, "%s:%d: ", S->source + 1, S->line);
            buffer_put(S, L, &S->scratch, place, (size_t)length);
        }
        switch (lua_type(L, 1)) {
        case LUA_TSTRING:
        case LUA_TNUMBER:
            message.bytes = lua_tolstring(L, 1, &message.length);
            break;
        case LUA_TBOOLEAN:
            message.bytes = lua_toboolean(L, 1) ? "true" : "false";
            message.length = strlen(message.bytes);
            break;
        default:
            message.bytes = luaL_typename(L, 1);
            message.length = strlen(message.bytes);
        }
    }
    buffer_put(S, L, &S->scratch, message.bytes, message.length);
    if (S->line > 0) {
        char place[128];
        buffer_put(S, L, &S->scratch, " script: ", 9);
        buffer_put(S, L, &S->scratch, S->run->name.bytes, S->run->name.length);
        int length = snprintf(place, sizeof place, ", on %s:%d.", S->source, S->line);
        buffer_put(S, L, &S->scratch, place, (size_t)length);
    }
    S->out.length = 0;
    write_error(S, L, &S->out, (text){S->scratch.bytes, S->scratch.length});
    return 0;
}

static void begin(sandbox *S, const sandbox_run *run)
{
    S->run = run;
    S->script_protocol = 2;
    S->ending = 0;
    S->raised = NULL;
    S->line = 0;
    S->out.length = 0;
    S->stack = (const char *)__builtin_frame_address(0);
    S->current = run->number;
    reset_json(S);
    seed_chance(S, run->seed);
    pthread_mutex_lock(&S->mutex);
    S->thread = pthread_self();
    S->running = run->number;
    pthread_mutex_unlock(&S->mutex);
    on_this_thread = S;
}

static void finish(sandbox *S)
{
    on_this_thread = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    pthread_mutex_lock(&S->mutex);
    S->running = 0;
    pthread_mutex_unlock(&S->mutex);
    if (lua_gethookmask(S->L) != 0)
        lua_sethook(S->L, NULL, 0, 0);
    /* The host gives back what it has answered and kept. */
    count_out(S, S->answered + S->kept);
    S->answered = S->kept = 0;
}

/* Which library scripts have as `redis`. NB: outside of protected mode, where nothing may be allocated. */
static void choose_library(sandbox *S, int reference)
{
    lua_State *L = S->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->globals);
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    lua_setfield(L, -2, "redis");
    lua_pop(L, 1);
}

/* All but the reply. */
static void shrink_all(sandbox *S)
{
    shrink(S, &S->scratch);
    shrink(S, &S->words);
    settle(S);
}

int sandbox_do(sandbox *S, const sandbox_run *run, text *reply)
{
    static const char no_memory[] =
        "-ERR not enough memory for the script: see script-memory-limit and script-memory-total\r\n";
    lua_State *L = S->L;
    lua_settop(L, 0);
    shrink(S, &S->out);
    begin(S, run);
    if (run->loading)
        choose_library(S, S->registration);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->handler);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->body);
    int failed = lua_pcall(L, 0, 0, 1);
    finish(S);
    if (has_lists(run))
        take_lists(S, run->reference);
    if (run->loading)
        choose_library(S, S->redis);
    int outcome = RUN_REPLIED;
    if (S->ending)
        outcome = RUN_ENDED;
    else if (failed != 0 && is_stopped(S))
        outcome = RUN_STOPPED;
    S->current = 0;
    if (outcome == RUN_REPLIED && failed != 0) {
        int described = 0;
        if (failed != LUA_ERRMEM) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, S->describe);
            lua_insert(L, -2);
            described = lua_pcall(L, 1, 0, 0) == 0;
        }
        if (!described) {
            S->run = NULL;
            lua_settop(L, 0);
            lua_gc(L, LUA_GCCOLLECT, 0);
            *reply = (text){no_memory, sizeof no_memory - 1};
            shrink_all(S);
            return RUN_REPLIED;
        }
    }
    S->run = NULL;
    *reply = (text){S->out.bytes, S->out.length};
    lua_settop(L, 0);
    shrink_all(S);
    return outcome;
}

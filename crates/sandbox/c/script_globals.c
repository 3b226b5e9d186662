/*
 * Globals of a script without proxies in between, where that is safe.
 *
 * The problem: scripts see shared tables such as `string` through proxies only, so that none can change them
 * (proxy.c). A lookup through proxies costs about a hundred instructions, and `redis.call('GET', KEYS[1])` makes
 * three.
 *
 * The idea: most scripts set no globals, and take a field of such a table with the very instruction that follows;
 * the table itself they never hold. script_globals.lua reads this from the bytecode, once for each compiled script. Such a
 * script gets a small table of its own as its globals: the names that it uses, with the tables themselves where
 * others have proxies.
 *
 * Examples
 *   return redis.call('GET', KEYS[1])   `redis` is the table itself; KEYS a list that scripts share, filled for each run
 *   local r = redis; return r.call()    `redis` is the proxy, since `r` could be written into
 *   local k = KEYS; return k[1]         KEYS is a new list in each run, and taken away after it
 *   x = 1, or a use of _G or load       all globals by the proxy
 *
 * Invariants
 * - A shared table lies in a script's register only until the next instruction, which replaces it by a field of it
 *   or by its length.
 * - A script that sets a global, or names what gives it all of them (WHOLE in script_globals.lua), or is long, has the
 *   proxy.
 * - Between two runs no globals refer to a list that was made for one script. The shared lists then still hold the
 *   strings of the last run; a run whose script uses a list fills it before the script begins.
 */
#include "script_globals.h"

#include "proxy.h"

#include <stdlib.h>

static const char script_globals[] = {
#include "script_globals.inc"
};
static const char literals[] = {
#include "literals.inc"
};

enum { LIST_KEPT = 16 /* texts in a list that scripts share */ };

/* What is known of the globals of a script. */
enum { UNKNOWN = 0, BY_PROXY = 1, DIRECT = 2 };

/* What a script does with KEYS or ARGV: nothing; takes parts; more. */
enum { UNUSED = 0, PARTS = 1, WHOLE = 2 };

static const int list_names[LISTS] = {NAME_KEYS, NAME_ARGV};

/* proxied(value): the table behind a proxy, or nothing. */
static int proxied(lua_State *L)
{
    lua_settop(L, 1);
    if (!lua_istable(L, 1) || !is_proxy(L, 1))
        return 0;
    return luaL_getmetafield(L, 1, "__index");
}

void open_script_globals(sandbox *S, int globals)
{
    lua_State *L = S->L;
    if (luaL_loadbufferx(L, script_globals, sizeof script_globals, "=script_globals", "t") != 0)
        lua_error(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
    lua_getfield(L, -1, LUA_JITLIBNAME ".util");
    lua_remove(L, -2);
    lua_call(L, 0, 1);
    if (luaL_loadbufferx(L, literals, sizeof literals, "=literals", "t") != 0)
        lua_error(L);
    lua_getfield(L, -2, "funck");
    lua_call(L, 1, 1);
    S->literals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_getfield(L, -1, "funcbc");
    lua_getfield(L, -2, "funck");
    lua_remove(L, -3);
    lua_pushvalue(L, globals);
    lua_pushcfunction(L, proxied);
    lua_call(L, 4, 1);
    S->traits_function = luaL_ref(L, LUA_REGISTRYINDEX);
    for (int i = 0; i < LISTS; i++) {
        lua_createtable(L, LIST_KEPT, 0);
        S->lists[i].reference = luaL_ref(L, LUA_REGISTRYINDEX);
    }
}

/* What is known of the script; room is made for it. */
static script_traits *traits_of(sandbox *S, lua_State *L, int reference)
{
    size_t index = (size_t)reference;
    if (index >= S->traits_room) {
        size_t room = index * 2 + 64;
        script_traits *traits = realloc(S->traits, room * sizeof *traits);
        if (traits == NULL)
            luaL_error(L, "not enough memory");
        memset(traits + S->traits_room, 0, (room - S->traits_room) * sizeof *traits);
        S->traits = traits;
        S->traits_room = room;
    }
    return &S->traits[index];
}

void forget_traits(sandbox *S, int reference)
{
    if (reference >= 0 && (size_t)reference < S->traits_room)
        memset(&S->traits[reference], 0, sizeof *S->traits);
}

/* Sets the global called NAME_... of the globals at the top to the value above them, which is popped. */
static void set_global(sandbox *S, lua_State *L, int name)
{
    push_name(S, L, name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
}

static void share_list(sandbox *S, lua_State *L, int list)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->lists[list].reference);
    set_global(S, L, list_names[list]);
}

/* Learns what the script at the top does with its globals, and gives it those that it may have. */
static void learn_traits(sandbox *S, lua_State *L, script_traits *traits)
{
    int script = lua_gettop(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->traits_function);
    lua_pushvalue(L, script);
    lua_call(L, 1, 3);
    script_traits found = {BY_PROXY, {WHOLE, WHOLE}, 0};
    if (lua_istable(L, script + 1)) {
        found.reach = DIRECT;
        for (int i = 0; i < LISTS; i++)
            found.lists[i] = (unsigned char)lua_tointeger(L, script + 2 + i);
        lua_settop(L, script + 1);
        for (int i = 0; i < LISTS; i++)
            if (found.lists[i] != UNUSED)
                share_list(S, L, i);
        lua_setfenv(L, script);
    }
    lua_settop(L, script);
    *traits = found;
}

static void push_texts(lua_State *L, const text *texts, size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, texts[i].bytes, texts[i].length);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

void push_lists(lua_State *L, const sandbox_run *run)
{
    push_texts(L, run->keys, run->key_count);
    push_texts(L, run->arguments, run->argument_count);
}

/* Fills the list that scripts share. */
static void fill(sandbox *S, lua_State *L, int list, const text *texts, size_t count)
{
    shared_list *shared = &S->lists[list];
    size_t before = shared->filled;
    lua_rawgeti(L, LUA_REGISTRYINDEX, shared->reference);
    if (count > before)
        shared->filled = count; /* should there be no memory for all of them */
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, texts[i].bytes, texts[i].length);
        lua_rawseti(L, -2, (int)i + 1);
    }
    for (size_t i = count; i < before; i++) {
        lua_pushnil(L);
        lua_rawseti(L, -2, (int)i + 1);
    }
    shared->filled = count;
    lua_pop(L, 1);
}

/* Fills a list for the script whose globals are at the top: the shared one, or a new one if the script keeps the list or
 * the list is long. */
static void give_list(sandbox *S, lua_State *L, script_traits *traits, int list, const text *texts, size_t count)
{
    if (traits->lists[list] == UNUSED)
        return;
    if (traits->lists[list] == PARTS && count <= LIST_KEPT) {
        fill(S, L, list, texts, count);
        return;
    }
    push_texts(L, texts, count);
    traits->own |= (unsigned char)(1 << list);
    set_global(S, L, list_names[list]);
}

void hand_globals(sandbox *S, lua_State *L)
{
    const sandbox_run *run = S->run;
    script_traits *traits = traits_of(S, L, run->reference);
    if (traits->reach == UNKNOWN)
        learn_traits(S, L, traits);
    if (traits->reach == DIRECT) {
        lua_getfenv(L, -1);
        give_list(S, L, traits, LIST_KEYS, run->keys, run->key_count);
        give_list(S, L, traits, LIST_ARGUMENTS, run->arguments, run->argument_count);
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, S->globals);
        push_lists(L, run);
        push_name(S, L, NAME_ARGV);
        lua_insert(L, -2);
        lua_rawset(L, -4);
        set_global(S, L, NAME_KEYS);
    }
    lua_pop(L, 1);
}

int has_plain_globals(const sandbox *S, int reference)
{
    return (size_t)reference < S->traits_room && S->traits[reference].reach != UNKNOWN;
}

void hand_plain_globals(sandbox *S, lua_State *L, int reference)
{
    if (has_plain_globals(S, reference))
        return;
    int function = lua_gettop(L);
    script_traits *traits = traits_of(S, L, reference);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->traits_function);
    lua_pushvalue(L, function);
    lua_call(L, 1, 3);
    traits->reach = BY_PROXY;
    if (lua_istable(L, function + 1) && lua_tointeger(L, function + 2) == UNUSED && lua_tointeger(L, function + 3) == UNUSED) {
        lua_settop(L, function + 1);
        lua_setfenv(L, function);
        traits->reach = DIRECT;
    }
    lua_settop(L, function);
}

/* NB: both have their places before either is set to nothing, and no global is added later, so that they keep them. */
void place_lists(sandbox *S)
{
    lua_State *L = S->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->globals);
    for (int set = 1; set >= 0; set--) {
        for (int i = 0; i < LISTS; i++) {
            if (set)
                lua_pushboolean(L, 1);
            else
                lua_pushnil(L);
            set_global(S, L, list_names[i]);
        }
    }
    lua_pop(L, 1);
}

/* NB: outside of protected mode: what is set to nothing, or to what is there, has its place, so that nothing is allocated. */
void take_lists(sandbox *S, int reference)
{
    lua_State *L = S->L;
    if ((size_t)reference >= S->traits_room)
        return;
    script_traits *traits = &S->traits[reference];
    if (traits->reach == BY_PROXY) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, S->globals);
        for (int i = 0; i < LISTS; i++) {
            lua_pushnil(L);
            set_global(S, L, list_names[i]);
        }
        lua_pop(L, 1);
    } else if (traits->own != 0) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
        lua_getfenv(L, -1);
        for (int i = 0; i < LISTS; i++)
            if (traits->own & 1 << i)
                share_list(S, L, i);
        lua_pop(L, 2);
        traits->own = 0;
    }
}

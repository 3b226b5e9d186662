/*
 * Reads and writes that perilune/ffi.lua calls by LuaJIT's FFI, since LuaJIT compiles such calls and not those of
 * lua_CFunctions.
 *
 * They take addresses and numbers, and leave a value's number or bytes in `jit_result` of the state. What they
 * cannot do (long strings, integers above 2^53, any failure) they answer with ELSEWHERE; ffi.lua then calls the
 * ordinary C function.
 *
 * Invariants
 * - Only the functions here write the result. Lua takes it before it allocates, so that no finalizer, which might
 *   read another value, runs in between.
 * - A debug hook might run in between, at any instruction of the interpreter. While one is set, nothing is read
 *   here.
 * - No Lua error is raised here, and nothing is put on the stack. A call that answers ELSEWHERE has written
 *   nothing.
 */
#include "jit.h"

#include "errors.h"

#include <math.h>

enum { ELSEWHERE = -1, NOTHING = 0, NUMBER = 1, TEXT = 2, FALSE_ = 3, TRUE_ = 4 };

/* Integers up to 2^53 are numbers of LuaJIT. */
#define EXACT INT64_C(9007199254740992)

static int hooked(const state *s)
{
    return lua_gethookmask(s->thread) != 0;
}

static int give(int status, const perilune_value *value, jit_result *result)
{
    if (status != PERILUNE_OK)
        return status == PERILUNE_NOT_FOUND ? NOTHING : ELSEWHERE;
    switch (value->type) {
    case PERILUNE_INT:
        if (value->as.i < -EXACT || value->as.i > EXACT)
            return ELSEWHERE;
        result->number = (double)value->as.i;
        return NUMBER;
    case PERILUNE_DOUBLE:
        result->number = value->as.d;
        return NUMBER;
    case PERILUNE_STRING:
        if (value->as.s.n > sizeof result->bytes)
            return ELSEWHERE;
        memcpy(result->bytes, value->as.s.p, value->as.s.n);
        result->size = (int32_t)value->as.s.n;
        return TEXT;
    case PERILUNE_BOOL:
        return value->as.i != 0 ? TRUE_ : FALSE_;
    default:
        return ELSEWHERE;
    }
}

static int take(double number, perilune_value *value)
{
    if (number >= -9223372036854775808.0 && number < 9223372036854775808.0 && (double)(int64_t)number == number)
        *value = perilune_int((int64_t)number);
    else if (isfinite(number))
        *value = perilune_double(number);
    else
        return 0;
    return 1;
}

static int get(database *db, const perilune_node *key, jit_result *result)
{
    perilune_value value;
    if (db->live == NULL || hooked(db->state))
        return ELSEWHERE;
    return give(perilune_get(db->live, key, &value), &value, result);
}

static int get_child(const place *at, int64_t subscript, jit_result *result)
{
    perilune_value value;
    if (at->db == NULL || at->db->live == NULL || hooked(at->db->state))
        return ELSEWHERE;
    return give(perilune_get_child_int(at->db->live, at->root, subscript, &value), &value, result);
}

/* 0: it is set. */
static int set(database *db, const perilune_node *key, const perilune_value *value)
{
    return db->live == NULL || perilune_set(db->live, key, value) != PERILUNE_OK ? ELSEWHERE : NOTHING;
}

static int set_number(database *db, const perilune_node *key, double number)
{
    perilune_value value;
    return take(number, &value) ? set(db, key, &value) : ELSEWHERE;
}

static int set_text(database *db, const perilune_node *key, const char *text, size_t size)
{
    perilune_value value = perilune_string(text, size);
    return set(db, key, &value);
}

static int set_child(const place *at, int64_t subscript, const perilune_value *value)
{
    if (at->db == NULL || at->db->live == NULL)
        return ELSEWHERE;
    return perilune_set_child_int(at->db->live, at->root, subscript, value) == PERILUNE_OK ? NOTHING : ELSEWHERE;
}

static int set_child_number(const place *at, int64_t subscript, double number)
{
    perilune_value value;
    return take(number, &value) ? set_child(at, subscript, &value) : ELSEWHERE;
}

static int set_child_text(const place *at, int64_t subscript, const char *text, size_t size)
{
    perilune_value value = perilune_string(text, size);
    return set_child(at, subscript, &value);
}

/* Pushes the addresses of the places, of the result and of the functions above; returns how many. */
int push_jit(lua_State *L, state *s)
{
    /* NB: hooks are the same for all coroutines; this one stays. */
    lua_pushthread(L);
    luaL_ref(L, LUA_REGISTRYINDEX);
    s->thread = L;
    lua_pushlightuserdata(L, s->places);
    lua_pushlightuserdata(L, &s->result);
    lua_pushlightuserdata(L, (void *)(uintptr_t)get);
    lua_pushlightuserdata(L, (void *)(uintptr_t)get_child);
    lua_pushlightuserdata(L, (void *)(uintptr_t)set_number);
    lua_pushlightuserdata(L, (void *)(uintptr_t)set_text);
    lua_pushlightuserdata(L, (void *)(uintptr_t)set_child_number);
    lua_pushlightuserdata(L, (void *)(uintptr_t)set_child_text);
    return 8;
}

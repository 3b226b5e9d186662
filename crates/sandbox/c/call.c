/*
 * Calls a function with values, and takes its answer as one: what runs once for each row of a statement.
 *
 * The problem: run.c gives a script texts, and makes bytes of what it returns, in protected mode of its own. For a
 * function such as `return n + 1` all that takes ten times as long as the function.
 *
 * The idea: numbers and nil are pushed, and taken, as they are, which takes no memory and so raises nothing; then the
 * function itself is what is called in protected mode. A text needs memory: with one among the arguments it is call(),
 * in protected mode, that pushes them. A short text that is answered stays on the stack, where the host reads it. All
 * else that is answered becomes bytes by the host's format, as a script's.
 *
 * Examples
 *   f(1, nil)     pushes f, 1, nil, and calls; 2 is taken off the stack
 *   f("a")        calls call(), which pushes f and "a", and calls
 *   return {1}    the table goes through write_answer(), in protected mode
 */
#include "call.h"

#include "run.h"
#include "script_globals.h"
#include "stop.h"

enum { PUSHED_PLAINLY = 8 /* arguments for which a Lua stack always has room; LUA_MINSTACK is 20 */ };

static void push(lua_State *L, const value *given)
{
    switch (given->kind) {
    case VALUE_TRUTH:
        lua_pushboolean(L, given->what.number != 0);
        break;
    case VALUE_NUMBER:
        lua_pushnumber(L, given->what.number);
        break;
    case VALUE_TEXT:
        lua_pushlstring(L, given->what.bytes.bytes, given->what.bytes.length);
        break;
    default:
        lua_pushnil(L);
    }
}

/* In protected mode: the function, with what takes memory to push, or called for the first time. */
static int call(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    check_depth(S, L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->run->reference);
    hand_plain_globals(S, L, S->run->reference);
    luaL_checkstack(L, (int)S->given_count, "too many arguments");
    for (size_t i = 0; i < S->given_count; i++)
        push(L, &S->given[i]);
    lua_call(L, (int)S->given_count, 1);
    return 1;
}

/* In protected mode: the value at 1 becomes the reply. */
static int write_answer(lua_State *L)
{
    write_reply_of(sandbox_of(L), L, 1);
    return 0;
}

/* Whether the values can be pushed outside of protected mode. */
static int are_plain(const value *given, size_t count)
{
    if (count > PUSHED_PLAINLY)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (given[i].kind == VALUE_TEXT)
            return 0;
    return 1;
}

/* Takes the value at the top, if it is one that needs no memory. */
static int take(lua_State *L, value *answer)
{
    switch (lua_type(L, -1)) {
    case LUA_TNIL:
        answer->kind = VALUE_NOTHING;
        return 1;
    case LUA_TBOOLEAN:
        answer->kind = VALUE_TRUTH;
        answer->what.number = lua_toboolean(L, -1);
        return 1;
    case LUA_TNUMBER:
        answer->kind = VALUE_NUMBER;
        answer->what.number = lua_tonumber(L, -1);
        return 1;
    case LUA_TSTRING:
        answer->kind = VALUE_TEXT;
        answer->what.bytes.bytes = lua_tolstring(L, -1, &answer->what.bytes.length);
        return answer->what.bytes.length <= SCRATCH_KEPT;
    default:
        return 0;
    }
}

int sandbox_call(sandbox *S, const sandbox_run *run, const value *given, size_t count, value *answer)
{
    lua_State *L = S->L;
    lua_settop(L, 0);
    begin_run(S, run);
    int failed;
    if (are_plain(given, count) && has_plain_globals(S, run->reference) && !is_deep(S)) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, run->reference);
        for (size_t i = 0; i < count; i++)
            push(L, &given[i]);
        failed = lua_pcall(L, (int)count, 1, 0);
    } else {
        S->given = given;
        S->given_count = count;
        lua_rawgeti(L, LUA_REGISTRYINDEX, S->call);
        failed = lua_pcall(L, 0, 1, 0);
    }
    int is_taken = failed == 0 && take(L, answer);
    if (failed == 0 && !is_taken) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, S->write);
        lua_insert(L, -2);
        failed = lua_pcall(L, 1, 0, 0);
    }
    text reply;
    int outcome = end_run(S, failed, &reply);
    if (!is_taken) {
        answer->kind = VALUE_BYTES;
        answer->what.bytes = reply;
    }
    return outcome;
}

void open_calls(sandbox *S)
{
    lua_pushcfunction(S->L, call);
    S->call = luaL_ref(S->L, LUA_REGISTRYINDEX);
    lua_pushcfunction(S->L, write_answer);
    S->write = luaL_ref(S->L, LUA_REGISTRYINDEX);
}

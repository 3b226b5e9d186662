/*
 * Lua values as bytes: the arguments and answers of questions to the host, and results of scripts in the format
 * `values`.
 *
 * A value is a letter and what follows it, with numbers in the machine's byte order:
 *
 *   n  nothing        i  an integer of 8 bytes   s  a length of 8 bytes, bytes
 *   t  true           d  a double                l  a count of 8 bytes, so many values
 *   f  false          e  an error, as s          m  a count of 8 bytes, so many keys, each before its value
 *
 * Both sides are one program and trust each other, so that only lengths are checked. A whole number of up to 2^53
 * is an integer.
 */
#include "values.h"

#include "ask.h"
#include "buffer.h"
#include "failure.h"
#include "stop.h"

enum { NESTED_VALUES = 200, NUMBER_TAKES = 9 };

#define EXACT 9007199254740992.0

typedef struct reader {
    const char *at;
    size_t left;
} reader;

static void take(lua_State *L, reader *r, void *to, size_t length)
{
    if (r->left < length)
        luaL_error(L, "an answer of the host ends early");
    memcpy(to, r->at, length);
    r->at += length;
    r->left -= length;
}

static text take_bytes(lua_State *L, reader *r)
{
    uint64_t length;
    take(L, r, &length, sizeof length);
    if (r->left < length)
        luaL_error(L, "an answer of the host ends early");
    text found = {r->at, (size_t)length};
    r->at += length;
    r->left -= (size_t)length;
    return found;
}

static void push_value(sandbox *S, lua_State *L, reader *r, int depth);

static void push_table(sandbox *S, lua_State *L, reader *r, int is_list, int depth)
{
    uint64_t count;
    take(L, r, &count, sizeof count);
    check_nesting(S, L);
    if (depth > NESTED_VALUES || count > r->left)
        luaL_error(L, "an answer of the host cannot be understood");
    luaL_checkstack(L, 4, "an answer has too many levels");
    int known = count < 1 << 16 ? (int)count : 0;
    lua_createtable(L, is_list ? known : 0, is_list ? 0 : known);
    for (uint64_t i = 1; i <= count; i++) {
        if (i % STEPS_UNCHECKED == 0)
            check_stop(S, L);
        push_value(S, L, r, depth + 1);
        if (is_list) {
            lua_rawseti(L, -2, (int)i);
            continue;
        }
        push_value(S, L, r, depth + 1);
        if (lua_isnil(L, -2))
            lua_pop(L, 2);
        else
            lua_rawset(L, -3);
    }
}

static void push_value(sandbox *S, lua_State *L, reader *r, int depth)
{
    char kind = 0;
    int64_t integer;
    double number;
    text bytes;
    take(L, r, &kind, 1);
    switch (kind) {
    case 'n':
        lua_pushnil(L);
        break;
    case 't':
    case 'f':
        lua_pushboolean(L, kind == 't');
        break;
    case 'i':
        take(L, r, &integer, sizeof integer);
        lua_pushnumber(L, (lua_Number)integer);
        break;
    case 'd':
        take(L, r, &number, sizeof number);
        lua_pushnumber(L, number);
        break;
    case 's':
        bytes = take_bytes(L, r);
        lua_pushlstring(L, bytes.bytes, bytes.length);
        break;
    case 'l':
    case 'm':
        push_table(S, L, r, kind == 'l', depth);
        break;
    case 'e':
        bytes = take_bytes(L, r);
        lua_pushlstring(L, bytes.bytes, bytes.length);
        luaL_error(L, "%s", lua_tostring(L, -1));
        break;
    default:
        luaL_error(L, "an answer of the host cannot be understood");
    }
}

void push_answer(sandbox *S, lua_State *L, text answer)
{
    reader r = {answer.bytes, answer.length};
    if (answer.length == 0)
        lua_pushnil(L);
    else
        push_value(S, L, &r, 0);
}

static void put_number(sandbox *S, lua_State *L, buffer *b, char kind, const void *number)
{
    char *place = buffer_room(S, L, b, NUMBER_TAKES);
    place[0] = kind;
    memcpy(place + 1, number, 8);
    b->length += NUMBER_TAKES;
}

static void put_bytes(sandbox *S, lua_State *L, buffer *b, char kind, text bytes)
{
    uint64_t length = bytes.length;
    buffer_room(S, L, b, NUMBER_TAKES + bytes.length);
    put_number(S, L, b, kind, &length);
    buffer_put(S, L, b, bytes.bytes, bytes.length);
}

/* Appends a value that is no table; 0 if it is none of those. */
static int put_scalar(sandbox *S, lua_State *L, buffer *b, int index)
{
    text bytes;
    lua_Number number;
    int64_t integer;
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        buffer_byte(S, L, b, 'n');
        return 1;
    case LUA_TBOOLEAN:
        buffer_byte(S, L, b, lua_toboolean(L, index) ? 't' : 'f');
        return 1;
    case LUA_TNUMBER:
        number = lua_tonumber(L, index);
        integer = number >= -EXACT && number <= EXACT ? (int64_t)number : 0;
        if ((lua_Number)integer == number)
            put_number(S, L, b, 'i', &integer);
        else
            put_number(S, L, b, 'd', &number);
        return 1;
    case LUA_TSTRING:
        bytes.bytes = lua_tolstring(L, index, &bytes.length);
        put_bytes(S, L, b, 's', bytes);
        return 1;
    default:
        return 0;
    }
}

int collect_values(sandbox *S, lua_State *L, int first, int last)
{
    int count = last < first ? 0 : last - first + 1;
    if ((size_t)count > S->span_room)
        room_for_spans(S, L, (size_t)count);
    S->words.length = 0;
    for (int i = 0; i < count; i++) {
        S->spans[i][0] = S->words.length;
        if (!put_scalar(S, L, &S->words, first + i))
            return first + i;
        S->spans[i][1] = S->words.length;
    }
    return 0;
}

/* How many values of the table at the top are at 1, 2, ... */
static uint64_t list_length(sandbox *S, lua_State *L)
{
    for (int count = 0;; count++) {
        lua_rawgeti(L, -1, count + 1);
        int last = lua_isnil(L, -1);
        lua_pop(L, 1);
        if (last)
            return (uint64_t)count;
        if (count % STEPS_UNCHECKED == 0)
            check_stop(S, L);
    }
}

static void write_value(sandbox *S, lua_State *L, int index, int depth);

static void write_table(sandbox *S, lua_State *L, int table, int depth)
{
    lua_pushvalue(L, table);
    uint64_t count = list_length(S, L);
    if (count > 0 || (lua_pushnil(L), !lua_next(L, table))) {
        put_number(S, L, &S->out, 'l', &count);
        for (uint64_t i = 1; i <= count; i++) {
            lua_rawgeti(L, table, (int)i);
            write_value(S, L, lua_gettop(L), depth + 1);
            lua_pop(L, 1);
        }
        return;
    }
    for (count = 1, lua_pop(L, 1); lua_next(L, table); lua_pop(L, 1))
        count++;
    check_stop(S, L);
    put_number(S, L, &S->out, 'm', &count);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        write_value(S, L, lua_gettop(L) - 1, depth + 1);
        write_value(S, L, lua_gettop(L), depth + 1);
    }
}

static void write_value(sandbox *S, lua_State *L, int index, int depth)
{
    int height = lua_gettop(L);
    check_nesting(S, L);
    if (depth > NESTED_VALUES || !lua_checkstack(L, 8))
        luaL_error(L, "what the script returns has too many levels");
    check_stop(S, L);
    if (lua_type(L, index) == LUA_TTABLE)
        write_table(S, L, index, depth);
    else if (!put_scalar(S, L, &S->out, index))
        luaL_error(L, "the script returns a %s", luaL_typename(L, index));
    lua_settop(L, height);
}

static void write_result(sandbox *S, lua_State *L, int index)
{
    write_value(S, L, index, 0);
}

static void write_failure(sandbox *S, lua_State *L)
{
    put_bytes(S, L, &S->out, 'e', any_message(L, 1));
}

const format values_format = {
    NULL, NULL, write_result, write_failure, {NO_MEMORY_VALUE, sizeof NO_MEMORY_VALUE - 1}};

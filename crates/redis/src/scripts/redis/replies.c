/*
 * Replies of commands become Lua values, and what a script returns becomes a reply: as in Redis 7.
 *
 * The first kind is written by the server itself, so that only its form is followed here; lengths are
 * checked all the same.
 */
#include "replies.h"

#include <buffer.h>
#include <number.h>
#include <stop.h>

#include <stdio.h>
#include <stdlib.h>

enum { NESTED_REPLIES = 200 };

typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static int malformed(lua_State *L)
{
    return luaL_error(L, "a reply of the server cannot be understood");
}

/* The line behind the kind's byte. */
static text line(lua_State *L, cursor *c)
{
    const char *end = memchr(c->at, '\r', (size_t)(c->end - c->at));
    if (end == NULL || end + 1 >= c->end)
        malformed(L);
    text found = {c->at, (size_t)(end - c->at)};
    c->at = end + 2;
    return found;
}

static long long integer(text t)
{
    unsigned long long value = 0;
    size_t i = t.length > 0 && t.bytes[0] == '-';
    int negative = (int)i;
    for (; i < t.length; i++)
        value = value * 10 + (unsigned)(t.bytes[i] - '0');
    return (long long)(negative ? 0 - value : value);
}

static void push_one(sandbox *S, lua_State *L, cursor *c, int depth);

static void push_wrapped(lua_State *L, const char *field, text t)
{
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, t.bytes, t.length);
    lua_setfield(L, -2, field);
}

static text bulk(lua_State *L, cursor *c, long long length)
{
    if (length < 0 || (size_t)length + 2 > (size_t)(c->end - c->at))
        malformed(L);
    text found = {c->at, (size_t)length};
    c->at += length + 2;
    return found;
}

static void push_elements(sandbox *S, lua_State *L, cursor *c, char kind, long long count, int depth)
{
    if (depth > NESTED_REPLIES)
        malformed(L);
    luaL_checkstack(L, 8, "a reply has too many levels");
    if (kind != '*') {
        lua_createtable(L, 0, 1);
        lua_createtable(L, 0, count < 1 << 16 ? (int)count : 0);
    } else {
        lua_createtable(L, count < 1 << 16 ? (int)count : 0, 0);
    }
    for (long long i = 1; i <= count; i++) {
        if (i % STEPS_UNCHECKED == 0)
            check_stop(S, L);
        push_one(S, L, c, depth + 1);
        if (kind == '*') {
            lua_rawseti(L, -2, (int)i);
            continue;
        }
        if (kind == '%')
            push_one(S, L, c, depth + 1);
        else
            lua_pushboolean(L, 1);
        if (lua_isnil(L, -2))
            lua_pop(L, 2);
        else
            lua_rawset(L, -3);
    }
    if (kind != '*')
        lua_setfield(L, -2, kind == '%' ? "map" : "set");
}

static void push_verbatim(lua_State *L, text t)
{
    lua_createtable(L, 0, 1);
    lua_createtable(L, 0, 2);
    lua_pushlstring(L, t.bytes, t.length < 3 ? t.length : 3);
    lua_setfield(L, -2, "format");
    lua_pushlstring(L, t.length < 4 ? "" : t.bytes + 4, t.length < 4 ? 0 : t.length - 4);
    lua_setfield(L, -2, "string");
    lua_setfield(L, -2, "verbatim_string");
}

static void push_one(sandbox *S, lua_State *L, cursor *c, int depth)
{
    if (c->at >= c->end)
        malformed(L);
    char kind = *c->at++;
    text head = line(L, c);
    long long number = kind == ',' || kind == '+' || kind == '-' ? 0 : integer(head);
    switch (kind) {
    case '+':
        lua_createtable(L, 0, 1);
        push_word(S, L, WORD_OK);
        if (head.length == 2 && memcmp(head.bytes, "OK", 2) == 0)
            push_word(S, L, WORD_DONE);
        else
            lua_pushlstring(L, head.bytes, head.length);
        lua_rawset(L, -3);
        break;
    case '-':
        push_wrapped(L, "err", head);
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, "ignore_error_stats_update");
        break;
    case ':':
        lua_pushnumber(L, (lua_Number)number);
        break;
    case '_':
        lua_pushnil(L);
        break;
    case '#':
        lua_pushboolean(L, head.length > 0 && head.bytes[0] == 't');
        break;
    case ',':
        lua_createtable(L, 0, 1);
        lua_pushnumber(L, strtod(head.bytes, NULL));
        lua_setfield(L, -2, "double");
        break;
    case '(':
        push_wrapped(L, "big_number", head);
        break;
    case '$':
        if (number < 0) {
            lua_pushboolean(L, 0);
        } else {
            text t = bulk(L, c, number);
            lua_pushlstring(L, t.bytes, t.length);
        }
        break;
    case '=':
        push_verbatim(L, bulk(L, c, number));
        break;
    case '*':
    case '%':
    case '~':
        if (number < 0)
            lua_pushboolean(L, 0);
        else
            push_elements(S, L, c, kind, number, depth);
        break;
    default:
        malformed(L);
    }
}

/* The end of the digits behind the first byte of a reply of up to 15 bytes in its first line; what they say. */
static size_t leading_number(text reply, size_t *number)
{
    size_t at = 1, most = reply.length < 16 ? reply.length : 16;
    *number = 0;
    for (; at < most && (unsigned char)(reply.bytes[at] - '0') < 10; at++)
        *number = *number * 10 + (size_t)(reply.bytes[at] - '0');
    return at;
}

void push_reply(sandbox *S, lua_State *L, text reply)
{
    /* Most are a string, a number or nothing. */
    if (reply.length > 3) {
        size_t number, end = leading_number(reply, &number);
        char kind = reply.bytes[0];
        if (kind == '$' && end > 1 && end + number + 4 == reply.length) {
            lua_pushlstring(L, reply.bytes + end + 2, number);
            return;
        }
        if (kind == ':' && end > 1 && end + 2 == reply.length) {
            lua_pushnumber(L, (lua_Number)number);
            return;
        }
        if (reply.length == 5 && memcmp(reply.bytes, "$-1\r\n", 5) == 0) {
            lua_pushboolean(L, 0);
            return;
        }
    }
    cursor c = {reply.bytes, reply.bytes + reply.length};
    push_one(S, L, &c, 0);
}

/* A line of a reply: what would end it becomes a blank. */
static void write_line(sandbox *S, lua_State *L, buffer *b, text t)
{
    char *place = buffer_room(S, L, b, t.length + 2);
    for (size_t i = 0; i < t.length; i++)
        place[i] = t.bytes[i] == '\r' || t.bytes[i] == '\n' ? ' ' : t.bytes[i];
    memcpy(place + t.length, "\r\n", 2);
    b->length += t.length + 2;
}

void write_error(sandbox *S, lua_State *L, buffer *b, text message)
{
    buffer_byte(S, L, b, '-');
    write_line(S, L, b, message);
}

static void write_head(sandbox *S, lua_State *L, char kind, long long number)
{
    char *head = buffer_room(S, L, &S->out, WHOLE_DIGITS + 3);
    size_t length = write_whole(head + 1, number);
    head[0] = kind;
    memcpy(head + 1 + length, "\r\n", 2);
    S->out.length += length + 3;
}

static void write_bulk(sandbox *S, lua_State *L, text t)
{
    write_head(S, L, '$', (long long)t.length);
    buffer_put(S, L, &S->out, t.bytes, t.length);
    buffer_put(S, L, &S->out, "\r\n", 2);
}

static void write_null(sandbox *S, lua_State *L, int protocol)
{
    buffer_put(S, L, &S->out, protocol == 3 ? "_\r\n" : "$-1\r\n", protocol == 3 ? 3 : 5);
}

static void write_double(sandbox *S, lua_State *L, double value, int protocol)
{
    char number[64];
    int length = value != value ? snprintf(number, sizeof number, "nan")
                                : snprintf(number, sizeof number, "%.17g", value);
    if (value == value && value - value == 0) {
        /* The shortest that reads back as the same. */
        for (int digits = 1; digits <= 17; digits++) {
            length = snprintf(number, sizeof number, "%.*g", digits, value);
            if (strtod(number, NULL) == value)
                break;
        }
    }
    if (protocol == 3) {
        buffer_byte(S, L, &S->out, ',');
        write_line(S, L, &S->out, (text){number, (size_t)length});
    } else {
        write_bulk(S, L, (text){number, (size_t)length});
    }
}

static void write_value(sandbox *S, lua_State *L, int index, int protocol, int depth);

/* Map and set: the table at the top. */
static void write_pairs(sandbox *S, lua_State *L, int protocol, int depth, int is_map)
{
    int table = lua_gettop(L), count = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        count++;
    check_stop(S, L);
    if (protocol == 3)
        write_head(S, L, is_map ? '%' : '~', count);
    else
        write_head(S, L, '*', is_map ? 2 * (long long)count : count);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        write_value(S, L, lua_gettop(L) - 1, protocol, depth + 1);
        if (is_map)
            write_value(S, L, lua_gettop(L), protocol, depth + 1);
    }
}

/* Pushes the field that the string at the top names, instead of it, if it is of this type. */
static int named_field(lua_State *L, int index, int type)
{
    lua_rawget(L, index);
    if (lua_type(L, -1) == type)
        return 1;
    lua_pop(L, 1);
    return 0;
}

static int field(lua_State *L, int index, const char *name, int type)
{
    lua_pushstring(L, name);
    return named_field(L, index, type);
}

/* Pushes the field called WORD_..., if it is of this type. */
static int known_field(sandbox *S, lua_State *L, int index, int word, int type)
{
    push_word(S, L, word);
    return named_field(L, index, type);
}

static text top(lua_State *L)
{
    text t;
    t.bytes = lua_tolstring(L, -1, &t.length);
    return t;
}

static void write_verbatim(sandbox *S, lua_State *L, int protocol)
{
    int table = lua_gettop(L);
    if (!field(L, table, "string", LUA_TSTRING)) {
        write_null(S, L, protocol);
        return;
    }
    text body = top(L);
    text format = field(L, table, "format", LUA_TSTRING) ? top(L) : (text){"txt", 3};
    if (protocol != 3) {
        write_bulk(S, L, body);
        return;
    }
    write_head(S, L, '=', (long long)body.length + 4);
    buffer_put(S, L, &S->out, "txt:", 4);
    memcpy(S->out.bytes + S->out.length - 4, format.bytes, format.length < 3 ? format.length : 3);
    buffer_put(S, L, &S->out, body.bytes, body.length);
    buffer_put(S, L, &S->out, "\r\n", 2);
}

/* A table that says what it is by one field; 0 if it is an array. */
static int write_marked(sandbox *S, lua_State *L, int index, int protocol, int depth)
{
    if (known_field(S, L, index, WORD_ERR, LUA_TSTRING)) {
        text message = top(L);
        if (message.length > 0 && message.bytes[0] == '-')
            message = (text){message.bytes + 1, message.length - 1};
        write_error(S, L, &S->out, message);
    } else if (known_field(S, L, index, WORD_OK, LUA_TSTRING)) {
        buffer_byte(S, L, &S->out, '+');
        write_line(S, L, &S->out, top(L));
    } else if (known_field(S, L, index, WORD_DOUBLE, LUA_TNUMBER)) {
        write_double(S, L, lua_tonumber(L, -1), protocol);
    } else if (known_field(S, L, index, WORD_MAP, LUA_TTABLE)) {
        write_pairs(S, L, protocol, depth, 1);
    } else if (known_field(S, L, index, WORD_SET, LUA_TTABLE)) {
        write_pairs(S, L, protocol, depth, 0);
    } else if (known_field(S, L, index, WORD_BIG_NUMBER, LUA_TSTRING)) {
        if (protocol == 3) {
            buffer_byte(S, L, &S->out, '(');
            write_line(S, L, &S->out, top(L));
        } else {
            write_bulk(S, L, top(L));
        }
    } else if (known_field(S, L, index, WORD_VERBATIM, LUA_TTABLE)) {
        write_verbatim(S, L, protocol);
    } else {
        return 0;
    }
    return 1;
}

static void write_array(sandbox *S, lua_State *L, int index, int protocol, int depth)
{
    /* As in Redis it ends at the first nil; then its length is known. */
    int count = 0;
    for (;; count++) {
        lua_rawgeti(L, index, count + 1);
        int last = lua_isnil(L, -1);
        lua_pop(L, 1);
        if (last)
            break;
        if (count % STEPS_UNCHECKED == 0)
            check_stop(S, L);
    }
    write_head(S, L, '*', count);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, index, i);
        write_value(S, L, lua_gettop(L), protocol, depth + 1);
        lua_pop(L, 1);
    }
}

static void write_integer(sandbox *S, lua_State *L, lua_Number number)
{
    /* As the processor converts for Redis: what does not fit, and NaN, is the least integer. */
    int fits = number >= -9223372036854775808.0 && number < 9223372036854775808.0;
    write_head(S, L, ':', fits ? (long long)number : INT64_MIN);
}

static void write_value(sandbox *S, lua_State *L, int index, int protocol, int depth)
{
    int height = lua_gettop(L);
    if (depth > NESTED_REPLIES || !lua_checkstack(L, 8)) {
        write_error(S, L, &S->out, (text){"ERR reached lua stack limit", 27});
        return;
    }
    check_stop(S, L);
    switch (lua_type(L, index)) {
    case LUA_TSTRING: {
        text t;
        t.bytes = lua_tolstring(L, index, &t.length);
        write_bulk(S, L, t);
        break;
    }
    case LUA_TBOOLEAN:
        if (redis_of(S)->protocol == 3 && protocol == 3)
            buffer_put(S, L, &S->out, lua_toboolean(L, index) ? "#t\r\n" : "#f\r\n", 4);
        else if (lua_toboolean(L, index))
            buffer_put(S, L, &S->out, ":1\r\n", 4);
        else if (redis_of(S)->protocol == 3)
            buffer_put(S, L, &S->out, ":0\r\n", 4);
        else
            write_null(S, L, protocol);
        break;
    case LUA_TNUMBER:
        write_integer(S, L, lua_tonumber(L, index));
        break;
    case LUA_TTABLE:
        if (!write_marked(S, L, index, protocol, depth))
            write_array(S, L, index, protocol, depth);
        break;
    default:
        write_null(S, L, protocol);
    }
    lua_settop(L, height);
}

void write_reply(sandbox *S, lua_State *L, int index, int protocol)
{
    write_value(S, L, index < 0 ? lua_gettop(L) + index + 1 : index, protocol, 0);
}

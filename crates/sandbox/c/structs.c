/*
 * The library `struct`: numbers and strings in and out of bytes, by a format.
 *
 * `>` `<` `=` order of bytes; `!n` alignment; x padding; b B h H l L T, in In integers; f d floats;
 * s string up to a zero byte, cn n bytes (c0: as many as the number before says); blanks.
 */
#include "structs.h"

#include "buffer.h"
#include "stop.h"

#include <ctype.h>
#include <math.h>

enum { INTEGER_BYTES = 32, ALIGNMENT = 8 };

typedef struct form {
    lua_State *L;
    const char *at;
    int little;
    size_t align;
} form;

static size_t digits(form *f, size_t otherwise)
{
    if (!isdigit((unsigned char)*f->at))
        return otherwise;
    size_t number = 0;
    while (isdigit((unsigned char)*f->at)) {
        if (number > (size_t)(INT32_MAX / 10) || number * 10 > (size_t)(INT32_MAX - (*f->at - '0')))
            luaL_error(f->L, "integral size overflow");
        number = number * 10 + (size_t)(*f->at++ - '0');
    }
    return number;
}

/* Bytes of the option that was just read; not known for s. */
static size_t size_of(form *f, int option)
{
    switch (option) {
    case 'B': case 'b': case 'x': return 1;
    case 'H': case 'h': return 2;
    case 'L': case 'l': case 'T': case 'd': return 8;
    case 'f': return 4;
    case 'c': return digits(f, 1);
    case 'i': case 'I': {
        size_t size = digits(f, 4);
        if (size > INTEGER_BYTES)
            luaL_error(f->L, "integral size %d is larger than limit of %d", (int)size, INTEGER_BYTES);
        return size;
    }
    default: return 0;
    }
}

/* Zero bytes needed before an option of `size` bytes at `length`. */
static size_t padding(const form *f, size_t length, int option, size_t size)
{
    if (size == 0 || option == 'c')
        return 0;
    if (size > f->align)
        size = f->align;
    return size > 1 ? (size - (length & (size - 1))) & (size - 1) : 0;
}

static void control(form *f, int option)
{
    switch (option) {
    case ' ': return;
    case '>': f->little = 0; return;
    case '<': f->little = 1; return;
    case '=': f->little = 1; return;
    case '!': {
        size_t align = digits(f, ALIGNMENT);
        if (align == 0 || (align & (align - 1)) != 0)
            luaL_error(f->L, "alignment %d is not a power of 2", (int)align);
        f->align = align;
        return;
    }
    default: {
        const char *message = lua_pushfstring(f->L, "invalid format option '%c'", option);
        luaL_argerror(f->L, 1, message);
    }
    }
}

static void put_integer(form *f, unsigned char *to, lua_Number number, size_t size)
{
    uint64_t value = number < 0 ? (uint64_t)(int64_t)(number < -9.3e18 ? -9.2e18 : number)
                                : number < 1.8446744073709552e19 ? (uint64_t)number : 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = i < 8 ? (unsigned char)(value >> (8 * i)) : (unsigned char)(number < 0 && i < 8 ? 0xFF : 0);
        to[f->little ? i : size - 1 - i] = byte;
    }
}

static void put_bytes(form *f, unsigned char *to, const void *from, size_t size)
{
    const unsigned char *bytes = from;
    for (size_t i = 0; i < size; i++)
        to[i] = bytes[f->little ? i : size - 1 - i];
}

static void put_string(sandbox *S, form *f, int option, size_t size, int index)
{
    size_t length;
    const char *bytes = luaL_checklstring(f->L, index, &length);
    if (size == 0 && option == 'c')
        size = length;
    luaL_argcheck(f->L, option == 's' || length >= size, index, "string too short");
    buffer_put(S, f->L, &S->scratch, bytes, option == 's' ? length : size);
    if (option == 's')
        buffer_byte(S, f->L, &S->scratch, 0);
}

static int pack(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    form f = {L, luaL_checkstring(L, 1), 1, 1};
    int index = 2;
    S->scratch.length = 0;
    lua_pushnil(L); /* what lies behind the arguments is no argument */
    while (*f.at != 0) {
        int option = (unsigned char)*f.at++;
        size_t size = size_of(&f, option), gap = padding(&f, S->scratch.length, option, size);
        unsigned char *place = (unsigned char *)buffer_room(S, L, &S->scratch, gap + INTEGER_BYTES);
        check_stop(S, L);
        memset(place, 0, gap);
        place += gap;
        S->scratch.length += gap;
        switch (option) {
        case 'x':
            buffer_byte(S, L, &S->scratch, 0);
            continue;
        case 'b': case 'B': case 'h': case 'H': case 'l': case 'L': case 'T': case 'i': case 'I':
            put_integer(&f, place, luaL_checknumber(L, index++), size);
            break;
        case 'f': {
            float number = (float)luaL_checknumber(L, index++);
            put_bytes(&f, place, &number, size);
            break;
        }
        case 'd': {
            double number = luaL_checknumber(L, index++);
            put_bytes(&f, place, &number, size);
            break;
        }
        case 'c': case 's':
            put_string(S, &f, option, size, index++);
            continue;
        default:
            control(&f, option);
            continue;
        }
        S->scratch.length += size;
    }
    lua_pushlstring(L, S->scratch.bytes == NULL ? "" : S->scratch.bytes, S->scratch.length);
    shrink(S, &S->scratch);
    return 1;
}

static lua_Number get_integer(const form *f, const unsigned char *from, size_t size, int is_signed)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size && i < 8; i++)
        value |= (uint64_t)from[f->little ? i : size - 1 - i] << (8 * i);
    if (!is_signed)
        return (lua_Number)value;
    if (size < 8 && size > 0 && (value >> (8 * size - 1) & 1) != 0)
        value |= ~UINT64_C(0) << (8 * size);
    return (lua_Number)(int64_t)value;
}

static void push_float(const form *f, const unsigned char *from, size_t size)
{
    unsigned char bytes[8] = {0};
    for (size_t i = 0; i < size; i++)
        bytes[i] = from[f->little ? i : size - 1 - i];
    float single;
    double number;
    memcpy(&single, bytes, sizeof single);
    memcpy(&number, bytes, sizeof number);
    if (size == 4)
        number = single;
    /* NB: one NaN, since others could pass for pointers. */
    lua_pushnumber(f->L, number != number ? (lua_Number)NAN : number);
}

static int unpack(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    form f = {L, luaL_checkstring(L, 1), 1, 1};
    size_t length;
    const char *bytes = luaL_checklstring(L, 2, &length);
    lua_Integer start = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, start > 0, 3, "offset must be 1 or greater");
    size_t at = (size_t)start - 1;
    int count = 0;
    lua_settop(L, 2);
    while (*f.at != 0) {
        int option = (unsigned char)*f.at++;
        size_t size = size_of(&f, option);
        at += padding(&f, at, option, size);
        check_stop(S, L);
        luaL_argcheck(L, size <= length && at <= length - size, 2, "data string too short");
        luaL_checkstack(L, 4, "too many results");
        const char *from = bytes + at;
        switch (option) {
        case 'x':
            break;
        case 'b': case 'B': case 'h': case 'H': case 'l': case 'L': case 'T': case 'i': case 'I':
            lua_pushnumber(L, get_integer(&f, (const unsigned char *)from, size, islower(option)));
            count++;
            break;
        case 'f': case 'd':
            push_float(&f, (const unsigned char *)from, size);
            count++;
            break;
        case 'c':
            if (size == 0) {
                if (count == 0 || lua_type(L, -1) != LUA_TNUMBER)
                    return luaL_error(L, "format 'c0' needs a previous size");
                lua_Number wanted = lua_tonumber(L, -1);
                lua_pop(L, 1);
                count--;
                luaL_argcheck(L, wanted >= 0 && wanted <= (lua_Number)(length - at), 2, "data string too short");
                size = (size_t)wanted;
            }
            lua_pushlstring(L, from, size);
            count++;
            break;
        case 's': {
            const char *end = memchr(from, 0, length - at);
            if (end == NULL)
                return luaL_error(L, "unfinished string in data");
            lua_pushlstring(L, from, (size_t)(end - from));
            size = (size_t)(end - from) + 1;
            count++;
            break;
        }
        default:
            control(&f, option);
        }
        at += size;
    }
    lua_pushinteger(L, (lua_Integer)at + 1);
    return count + 1;
}

static int size(lua_State *L)
{
    form f = {L, luaL_checkstring(L, 1), 1, 1};
    size_t total = 0;
    while (*f.at != 0) {
        int option = (unsigned char)*f.at++;
        size_t size = size_of(&f, option);
        total += padding(&f, total, option, size);
        if (option == 's')
            luaL_argerror(L, 1, "option 's' has no fixed size");
        else if (option == 'c' && size == 0)
            luaL_argerror(L, 1, "option 'c0' has no fixed size");
        if (strchr("bBhHlLTiIfdcx", option) == NULL)
            control(&f, option);
        else if (size > INT32_MAX - total)
            return luaL_error(L, "format result too large");
        else
            total += size;
    }
    lua_pushinteger(L, (lua_Integer)total);
    return 1;
}

const luaL_Reg struct_functions[] = {
    {"pack", pack},
    {"size", size},
    {"unpack", unpack},
    {NULL, NULL},
};

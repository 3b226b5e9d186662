/*
 * The library `cmsgpack`: MessagePack in and out, in the forms that lua-cmsgpack 0.4.0 chooses.
 *
 * Integral numbers are packed as integers, others as the shortest float that holds them; tables with keys
 * 1 to n as arrays. Tables nested deeper than 16 are packed as nil.
 */
#include "msgpack.h"

#include "buffer.h"
#include "stop.h"

#include <math.h>

enum { NESTED_PACKED = 16, NESTED_UNPACKED = 1000 };

/* ---- Packing ---- */

static void put_head(sandbox *S, lua_State *L, unsigned char kind, uint64_t value, int bytes)
{
    unsigned char head[9] = {kind};
    for (int i = bytes; i > 0; i--, value >>= 8)
        head[i] = (unsigned char)value;
    buffer_put(S, L, &S->scratch, head, (size_t)bytes + 1);
}

static void pack_integer(sandbox *S, lua_State *L, int64_t n)
{
    if (n >= -32 && n <= 127)
        buffer_byte(S, L, &S->scratch, (char)n);
    else if (n >= 0 && n <= 0xFF)
        put_head(S, L, 0xCC, (uint64_t)n, 1);
    else if (n >= 0 && n <= 0xFFFF)
        put_head(S, L, 0xCD, (uint64_t)n, 2);
    else if (n >= 0 && n <= 0xFFFFFFFF)
        put_head(S, L, 0xCE, (uint64_t)n, 4);
    else if (n >= 0)
        put_head(S, L, 0xCF, (uint64_t)n, 8);
    else if (n >= INT8_MIN)
        put_head(S, L, 0xD0, (uint64_t)n, 1);
    else if (n >= INT16_MIN)
        put_head(S, L, 0xD1, (uint64_t)n, 2);
    else if (n >= INT32_MIN)
        put_head(S, L, 0xD2, (uint64_t)n, 4);
    else
        put_head(S, L, 0xD3, (uint64_t)n, 8);
}

static void pack_number(sandbox *S, lua_State *L, lua_Number number)
{
    if (number >= -9223372036854775808.0 && number < 9223372036854775808.0 && floor(number) == number) {
        pack_integer(S, L, (int64_t)number);
        return;
    }
    float single = (float)number;
    if ((double)single == number) {
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        put_head(S, L, 0xCA, bits, 4);
    } else {
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        put_head(S, L, 0xCB, bits, 8);
    }
}

static void pack_string(sandbox *S, lua_State *L, int index)
{
    size_t length;
    const char *bytes = lua_tolstring(L, index, &length);
    if (length < 32)
        buffer_byte(S, L, &S->scratch, (char)(0xA0 | length));
    else if (length <= 0xFF)
        put_head(S, L, 0xD9, length, 1);
    else if (length <= 0xFFFF)
        put_head(S, L, 0xDA, length, 2);
    else
        put_head(S, L, 0xDB, length, 4);
    buffer_put(S, L, &S->scratch, bytes, length);
}

static void pack_count(sandbox *S, lua_State *L, size_t count, unsigned char fixed, unsigned char wide)
{
    if (count <= 15)
        buffer_byte(S, L, &S->scratch, (char)(fixed | count));
    else if (count <= 0xFFFF)
        put_head(S, L, wide, count, 2);
    else
        put_head(S, L, wide + 1, count, 4);
}

static void pack_value(sandbox *S, lua_State *L, int depth);

static void pack_table(sandbox *S, lua_State *L, int depth)
{
    int table = lua_gettop(L), is_array = 1;
    size_t count = 0;
    double most = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        lua_Number key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        is_array &= key >= 1 && floor(key) == key;
        if (key > most)
            most = key;
        if (++count % STEPS_UNCHECKED == 0)
            check_stop(S, L);
    }
    if (is_array && most == (double)count) {
        pack_count(S, L, count, 0x90, 0xDC);
        for (size_t i = 1; i <= count; i++) {
            lua_rawgeti(L, table, (int)i);
            pack_value(S, L, depth + 1);
            lua_pop(L, 1);
        }
        return;
    }
    pack_count(S, L, count, 0x80, 0xDE);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        pack_value(S, L, depth + 1);
        lua_pop(L, 1);
        pack_value(S, L, depth + 1);
    }
}

/* The value at the top. */
static void pack_value(sandbox *S, lua_State *L, int depth)
{
    check_stop(S, L);
    int type = lua_type(L, -1);
    if (type == LUA_TTABLE && (depth == NESTED_PACKED || !lua_checkstack(L, 8)))
        type = LUA_TNIL;
    switch (type) {
    case LUA_TSTRING: pack_string(S, L, -1); break;
    case LUA_TNUMBER: pack_number(S, L, lua_tonumber(L, -1)); break;
    case LUA_TBOOLEAN: buffer_byte(S, L, &S->scratch, (char)(lua_toboolean(L, -1) ? 0xC3 : 0xC2)); break;
    case LUA_TTABLE: pack_table(S, L, depth); break;
    default: buffer_byte(S, L, &S->scratch, (char)0xC0);
    }
}

static int pack(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int count = lua_gettop(L);
    if (count == 0)
        return luaL_argerror(L, 0, "MessagePack pack needs input.");
    S->scratch.length = 0;
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, i);
        pack_value(S, L, 0);
        lua_pop(L, 1);
    }
    lua_pushlstring(L, S->scratch.bytes, S->scratch.length);
    shrink(S, &S->scratch);
    return 1;
}

/* ---- Unpacking ---- */

typedef struct source {
    sandbox *S;
    lua_State *L;
    const unsigned char *at, *end;
    unsigned steps;
} source;

static const unsigned char *bytes_of(source *m, size_t count)
{
    if ((size_t)(m->end - m->at) < count)
        luaL_error(m->L, "Missing bytes in input.");
    const unsigned char *found = m->at;
    m->at += count;
    return found;
}

static uint64_t number_of(source *m, int bytes)
{
    const unsigned char *at = bytes_of(m, (size_t)bytes);
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static void unpack_value(source *m, int depth);

static void unpack_string(source *m, size_t length)
{
    lua_pushlstring(m->L, (const char *)bytes_of(m, length), length);
}

static void unpack_array(source *m, size_t count, int depth)
{
    lua_newtable(m->L);
    for (size_t i = 1; i <= count; i++) {
        unpack_value(m, depth);
        lua_rawseti(m->L, -2, (int)i);
    }
}

static void unpack_map(source *m, size_t count, int depth)
{
    lua_newtable(m->L);
    for (size_t i = 0; i < count; i++) {
        unpack_value(m, depth);
        if (lua_isnil(m->L, -1) || (lua_type(m->L, -1) == LUA_TNUMBER && lua_tonumber(m->L, -1) != lua_tonumber(m->L, -1)))
            luaL_error(m->L, "Bad data format in input.");
        unpack_value(m, depth);
        lua_rawset(m->L, -3);
    }
}

static void unpack_float(source *m, int bytes)
{
    uint64_t bits = number_of(m, bytes);
    double number;
    if (bytes == 4) {
        uint32_t half = (uint32_t)bits;
        float single;
        memcpy(&single, &half, sizeof single);
        number = single;
    } else {
        memcpy(&number, &bits, sizeof number);
    }
    /* NB: one NaN, since others could pass for pointers. */
    lua_pushnumber(m->L, number != number ? (lua_Number)NAN : number);
}

static void unpack_value(source *m, int depth)
{
    lua_State *L = m->L;
    if (++m->steps % STEPS_UNCHECKED == 0)
        check_stop(m->S, L);
    check_nesting(m->S, L);
    if (depth > NESTED_UNPACKED || !lua_checkstack(L, 8))
        luaL_error(L, "Bad data format in input.");
    unsigned kind = *bytes_of(m, 1);
    if (kind < 0x80) {
        lua_pushinteger(L, kind);
    } else if (kind < 0x90) {
        unpack_map(m, kind & 15, depth + 1);
    } else if (kind < 0xA0) {
        unpack_array(m, kind & 15, depth + 1);
    } else if (kind < 0xC0) {
        unpack_string(m, kind & 31);
    } else if (kind >= 0xE0) {
        lua_pushinteger(L, (int)kind - 256);
    } else {
        switch (kind) {
        case 0xC0: lua_pushnil(L); break;
        case 0xC2: case 0xC3: lua_pushboolean(L, kind & 1); break;
        case 0xC4: case 0xD9: unpack_string(m, number_of(m, 1)); break;
        case 0xC5: case 0xDA: unpack_string(m, number_of(m, 2)); break;
        case 0xC6: case 0xDB: unpack_string(m, number_of(m, 4)); break;
        case 0xCA: unpack_float(m, 4); break;
        case 0xCB: unpack_float(m, 8); break;
        case 0xCC: lua_pushnumber(L, (lua_Number)number_of(m, 1)); break;
        case 0xCD: lua_pushnumber(L, (lua_Number)number_of(m, 2)); break;
        case 0xCE: lua_pushnumber(L, (lua_Number)number_of(m, 4)); break;
        case 0xCF: lua_pushnumber(L, (lua_Number)number_of(m, 8)); break;
        case 0xD0: lua_pushnumber(L, (lua_Number)(int8_t)number_of(m, 1)); break;
        case 0xD1: lua_pushnumber(L, (lua_Number)(int16_t)number_of(m, 2)); break;
        case 0xD2: lua_pushnumber(L, (lua_Number)(int32_t)number_of(m, 4)); break;
        case 0xD3: lua_pushnumber(L, (lua_Number)(int64_t)number_of(m, 8)); break;
        case 0xDC: unpack_array(m, number_of(m, 2), depth + 1); break;
        case 0xDD: unpack_array(m, number_of(m, 4), depth + 1); break;
        case 0xDE: unpack_map(m, number_of(m, 2), depth + 1); break;
        case 0xDF: unpack_map(m, number_of(m, 4), depth + 1); break;
        default: luaL_error(L, "Bad data format in input.");
        }
    }
}

/* Values from `offset` on, `limit` at most (0: all, and no offset among the results). */
static int unpack_some(lua_State *L, lua_Integer limit, lua_Integer offset)
{
    size_t length;
    const unsigned char *bytes = (const unsigned char *)luaL_checklstring(L, 1, &length);
    if (offset < 0 || limit < 0)
        return luaL_error(L, "Invalid request to unpack with offset of %d and limit of %d.", (int)offset, (int)length);
    if ((size_t)offset > length)
        return luaL_error(L, "Start offset %d greater than input length %d.", (int)offset, (int)length);
    source m = {sandbox_of(L), L, bytes + offset, bytes + length, 0};
    int all = limit == 0, count = 0;
    while (m.at < m.end && (all || count < limit)) {
        luaL_checkstack(L, 4, "in function mp_unpack_full");
        unpack_value(&m, 0);
        count++;
    }
    if (all)
        return count;
    lua_pushinteger(L, m.at < m.end ? (lua_Integer)(m.at - bytes) : -1);
    lua_insert(L, -1 - count);
    return count + 1;
}

static int unpack(lua_State *L)
{
    return unpack_some(L, 0, 0);
}

static int unpack_one(lua_State *L)
{
    return unpack_some(L, 1, luaL_optinteger(L, 2, 0));
}

static int unpack_limit(lua_State *L)
{
    return unpack_some(L, luaL_checkinteger(L, 2), luaL_optinteger(L, 3, 0));
}

const luaL_Reg msgpack_functions[] = {
    {"pack", pack},
    {"unpack", unpack},
    {"unpack_limit", unpack_limit},
    {"unpack_one", unpack_one},
    {NULL, NULL},
};

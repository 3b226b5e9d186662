/*
 * The library `cjson`: JSON in and out, with the options, limits and messages of lua-cjson 2.1.0.
 *
 * Options last for one run. Numbers are written with 14 digits unless encode_number_precision says otherwise.
 */
#include "json.h"

#include "buffer.h"
#include "stop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void reset_json(sandbox *S)
{
    S->json = (json_options){.encode_max_depth = 1000,
                             .decode_max_depth = 1000,
                             .precision = 14,
                             .sparse_ratio = 2,
                             .sparse_safe = 10,
                             .decode_invalid = 1,
                             .keep_buffer = 1};
}

/* ---- Encoding ---- */

/* Bytes from which a string is measured before room is made for it: an escape takes six. */
enum { LONG_STRING = 4096 };

static void encode(sandbox *S, lua_State *L, buffer *b, int depth);

/* As many bytes as a string takes, or some more. */
static size_t escaped_length(const char *bytes, size_t length)
{
    size_t total = length;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < 32 || c == 127)
            total += 5;
        else if (c == '"' || c == '\\' || c == '/')
            total++;
    }
    return total;
}

static void encode_string(sandbox *S, lua_State *L, buffer *b, int index)
{
    size_t length;
    const char *bytes = lua_tolstring(L, index, &length);
    char *place = buffer_room(S, L, b, (length > LONG_STRING ? escaped_length(bytes, length) : 6 * length) + 2);
    char *start = place;
    *place++ = '"';
    for (size_t i = 0; i < length; i++) {
        static const char digits[] = "0123456789abcdef";
        unsigned char c = (unsigned char)bytes[i];
        char escape = 0;
        switch (c) {
        case '"': case '\\': case '/': escape = (char)c; break;
        case '\b': escape = 'b'; break;
        case '\f': escape = 'f'; break;
        case '\n': escape = 'n'; break;
        case '\r': escape = 'r'; break;
        case '\t': escape = 't'; break;
        default: break;
        }
        if (escape != 0) {
            *place++ = '\\';
            *place++ = escape;
        } else if (c < 32 || c == 127) {
            memcpy(place, "\\u00", 4);
            place[4] = digits[c >> 4];
            place[5] = digits[c & 15];
            place += 6;
        } else {
            *place++ = (char)c;
        }
    }
    *place++ = '"';
    b->length += (size_t)(place - start);
}

static int cannot(lua_State *L, const char *reason)
{
    return luaL_error(L, "Cannot serialise %s: %s", luaL_typename(L, -1), reason);
}

static void encode_number(sandbox *S, lua_State *L, buffer *b, int index)
{
    lua_Number number = lua_tonumber(L, index);
    if (number != number || number - number != 0) {
        if (S->json.encode_invalid == 2) {
            buffer_put(S, L, b, "null", 4);
            return;
        }
        if (!S->json.encode_invalid)
            luaL_error(L, "Cannot serialise number: must not be NaN or Inf");
        const char *text = number != number ? "nan" : number > 0 ? "inf" : "-inf";
        buffer_put(S, L, b, text, strlen(text));
        return;
    }
    char *place = buffer_room(S, L, b, 32);
    b->length += (size_t)snprintf(place, 32, "%.*g", S->json.precision, number);
}

/* The length of the table at the top as an array; -1 if it is none. */
static int array_length(sandbox *S, lua_State *L)
{
    double most = 0;
    int count = 0, table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        lua_Number key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (!(key >= 1) || floor(key) != key) {
            lua_pop(L, 2);
            return -1;
        }
        if (key > most)
            most = key;
        if (++count % STEPS_UNCHECKED == 0)
            check_stop(S, L);
    }
    if (S->json.sparse_ratio > 0 && most > (double)count * S->json.sparse_ratio && most > S->json.sparse_safe) {
        if (!S->json.sparse_convert)
            cannot(L, "excessively sparse array");
        return -1;
    }
    return most > INT32_MAX ? -1 : (int)most;
}

static void encode_array(sandbox *S, lua_State *L, buffer *b, int length, int depth)
{
    int table = lua_gettop(L);
    buffer_byte(S, L, b, '[');
    for (int i = 1; i <= length; i++) {
        if (i > 1)
            buffer_byte(S, L, b, ',');
        lua_rawgeti(L, table, i);
        encode(S, L, b, depth);
        lua_pop(L, 1);
    }
    buffer_byte(S, L, b, ']');
}

static void encode_object(sandbox *S, lua_State *L, buffer *b, int depth)
{
    int table = lua_gettop(L), first = 1;
    buffer_byte(S, L, b, '{');
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (!first)
            buffer_byte(S, L, b, ',');
        first = 0;
        if (lua_type(L, -2) == LUA_TNUMBER) {
            buffer_byte(S, L, b, '"');
            encode_number(S, L, b, -2);
            buffer_put(S, L, b, "\":", 2);
        } else if (lua_type(L, -2) == LUA_TSTRING) {
            encode_string(S, L, b, -2);
            buffer_byte(S, L, b, ':');
        } else {
            lua_pop(L, 1);
            cannot(L, "table key must be a number or string");
        }
        encode(S, L, b, depth);
    }
    buffer_byte(S, L, b, '}');
}

/* The value at the top. */
static void encode(sandbox *S, lua_State *L, buffer *b, int depth)
{
    check_stop(S, L);
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        encode_string(S, L, b, -1);
        break;
    case LUA_TNUMBER:
        encode_number(S, L, b, -1);
        break;
    case LUA_TBOOLEAN:
        buffer_put(S, L, b, lua_toboolean(L, -1) ? "true" : "false", lua_toboolean(L, -1) ? 4 : 5);
        break;
    case LUA_TNIL:
        buffer_put(S, L, b, "null", 4);
        break;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, -1) != NULL)
            cannot(L, "type not supported");
        buffer_put(S, L, b, "null", 4);
        break;
    case LUA_TTABLE: {
        check_nesting(S, L);
        if (++depth > S->json.encode_max_depth || !lua_checkstack(L, 8))
            luaL_error(L, "Cannot serialise, excessive nesting (%d)", depth);
        int length = array_length(S, L);
        if (length > 0)
            encode_array(S, L, b, length, depth);
        else
            encode_object(S, L, b, depth);
        break;
    }
    default:
        cannot(L, "type not supported");
    }
}

static int json_encode(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    S->scratch.length = 0;
    encode(S, L, &S->scratch, 0);
    lua_pushlstring(L, S->scratch.bytes, S->scratch.length);
    shrink(S, &S->scratch);
    return 1;
}

/* ---- Decoding ---- */

typedef struct source {
    sandbox *S;
    lua_State *L;
    const char *start, *at, *end;
    int depth;
    unsigned steps;
} source;

enum token {
    TOKEN_OBJECT, TOKEN_OBJECT_END, TOKEN_ARRAY, TOKEN_ARRAY_END, TOKEN_STRING, TOKEN_NUMBER, TOKEN_BOOLEAN,
    TOKEN_NULL, TOKEN_COLON, TOKEN_COMMA, TOKEN_END
};

static const char *const token_names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                          "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                          "T_COLON",     "T_COMMA",   "T_END"};

static int expected(source *j, const char *what, const char *found, const char *at)
{
    return luaL_error(j->L, "Expected %s but found %s at character %d", what, found, (int)(at - j->start) + 1);
}

static int hexadecimal(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* At "\u": writes the character, skips the escape; 0 if it is none. */
static int unicode(source *j, buffer *b)
{
    int code = hexadecimal(j->at + 2, j->end), used = 6;
    if (code < 0 || (code & 0xFC00) == 0xDC00)
        return 0;
    if ((code & 0xF800) == 0xD800) {
        int low = j->end - j->at >= 12 && j->at[6] == '\\' && j->at[7] == 'u' ? hexadecimal(j->at + 8, j->end) : -1;
        if ((low & 0xFC00) != 0xDC00 || low < 0)
            return 0;
        code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
        used = 12;
    }
    unsigned char bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length; i-- > 0; code >>= 6)
        bytes[i] = (unsigned char)(i == 0 ? marks[length] | code : 0x80 | (code & 0x3F));
    buffer_put(j->S, j->L, b, bytes, length);
    j->at += used;
    return 1;
}

/* Pushes the string at the opening quote. */
static void decode_string(source *j, const char *what)
{
    buffer *b = &j->S->scratch;
    b->length = 0;
    j->at++;
    for (;;) {
        const char *from = j->at;
        while (j->at < j->end && *j->at != '"' && *j->at != '\\' && *j->at != 0)
            j->at++;
        buffer_put(j->S, j->L, b, from, (size_t)(j->at - from));
        if (j->at >= j->end || *j->at == 0)
            expected(j, what, "unexpected end of string", j->at);
        if (*j->at == '"')
            break;
        char c = j->at + 1 < j->end ? j->at[1] : 0;
        if (c == 'u') {
            if (!unicode(j, b))
                expected(j, what, "invalid unicode escape code", j->at);
            continue;
        }
        static const char from_letters[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *known = c == 0 ? NULL : strchr(from_letters, c);
        if (known == NULL)
            expected(j, what, "invalid escape code", j->at);
        buffer_byte(j->S, j->L, b, to[known - from_letters]);
        j->at += 2;
    }
    j->at++;
    lua_pushlstring(j->L, b->bytes == NULL ? "" : b->bytes, b->length);
}

static int is_word(source *j, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(j->end - j->at) < length || memcmp(j->at, word, length) != 0)
        return 0;
    j->at += length;
    return 1;
}

/* Pushes the number at the cursor; strings of Lua end with a zero byte, where strtod stops. */
static int decode_number(source *j)
{
    const char *digits = j->at + (*j->at == '-');
    int odd = (digits[0] | 32) == 'i' || (digits[0] | 32) == 'n' ||
              (digits[0] == '0' && digits[1] != 0 && strchr("0123456789xX", digits[1]) != NULL);
    if (odd && !j->S->json.decode_invalid)
        return 0;
    char *end;
    double number = strtod(j->at, &end);
    if (end == j->at)
        return 0;
    j->at = end;
    lua_pushnumber(j->L, number);
    return 1;
}

/* The next token; its value, if it has one, is pushed. `what` is wanted, for messages. */
static enum token next_token(source *j, const char *what, const char **place)
{
    if (++j->steps % STEPS_UNCHECKED == 0)
        check_stop(j->S, j->L);
    while (j->at < j->end && memchr(" \t\n\r", *j->at, 4) != NULL)
        j->at++;
    *place = j->at;
    if (j->at >= j->end)
        return TOKEN_END;
    static const char marks[] = "{}[]";
    const char *mark = *j->at == 0 ? NULL : strchr(marks, *j->at);
    if (mark != NULL) {
        j->at++;
        return (enum token)(mark - marks);
    }
    switch (*j->at) {
    case ':': j->at++; return TOKEN_COLON;
    case ',': j->at++; return TOKEN_COMMA;
    case '"': decode_string(j, what); return TOKEN_STRING;
    case 0: return TOKEN_END;
    default: break;
    }
    if (is_word(j, "true") || is_word(j, "false")) {
        lua_pushboolean(j->L, j->at[-2] == 'u');
        return TOKEN_BOOLEAN;
    }
    if (is_word(j, "null")) {
        lua_pushlightuserdata(j->L, NULL);
        return TOKEN_NULL;
    }
    if (strchr("-0123456789iInN", *j->at) != NULL) {
        if (decode_number(j))
            return TOKEN_NUMBER;
        expected(j, what, *j->at == '-' || (*j->at >= '0' && *j->at <= '9') ? "invalid number" : "invalid token", *place);
    }
    expected(j, what, "invalid token", *place);
    return TOKEN_END;
}

static void decode_value(source *j, enum token token, const char *place);

static void descend(source *j)
{
    check_nesting(j->S, j->L);
    if (++j->depth > j->S->json.decode_max_depth || !lua_checkstack(j->L, 8))
        luaL_error(j->L, "Found too many nested data structures (%d) at character %d", j->depth,
                   (int)(j->at - j->start));
}

static void decode_object(source *j)
{
    const char *place;
    lua_newtable(j->L);
    enum token token = next_token(j, "object key string or object end", &place);
    if (token == TOKEN_OBJECT_END)
        return;
    for (;;) {
        if (token != TOKEN_STRING)
            expected(j, "object key string", token_names[token], place);
        token = next_token(j, "colon", &place);
        if (token != TOKEN_COLON)
            expected(j, "colon", token_names[token], place);
        token = next_token(j, "value", &place);
        decode_value(j, token, place);
        lua_rawset(j->L, -3);
        token = next_token(j, "comma or object end", &place);
        if (token == TOKEN_OBJECT_END)
            return;
        if (token != TOKEN_COMMA)
            expected(j, "comma or object end", token_names[token], place);
        token = next_token(j, "object key string", &place);
    }
}

static void decode_array(source *j)
{
    const char *place;
    lua_newtable(j->L);
    enum token token = next_token(j, "value", &place);
    if (token == TOKEN_ARRAY_END)
        return;
    for (int i = 1;; i++) {
        decode_value(j, token, place);
        lua_rawseti(j->L, -2, i);
        token = next_token(j, "comma or array end", &place);
        if (token == TOKEN_ARRAY_END)
            return;
        if (token != TOKEN_COMMA)
            expected(j, "comma or array end", token_names[token], place);
        token = next_token(j, "value", &place);
    }
}

static void decode_value(source *j, enum token token, const char *place)
{
    switch (token) {
    case TOKEN_STRING: case TOKEN_NUMBER: case TOKEN_BOOLEAN: case TOKEN_NULL:
        return;
    case TOKEN_OBJECT:
        descend(j);
        decode_object(j);
        break;
    case TOKEN_ARRAY:
        descend(j);
        decode_array(j);
        break;
    default:
        expected(j, "value", token_names[token], place);
    }
    j->depth--;
}

static int json_decode(lua_State *L)
{
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    size_t length;
    const char *bytes = luaL_checklstring(L, 1, &length), *place;
    source j = {sandbox_of(L), L, bytes, bytes, bytes + length, 0, 0};
    if (length >= 2 && (bytes[0] == 0 || bytes[1] == 0))
        return luaL_error(L, "JSON parser does not support UTF-16 or UTF-32");
    enum token token = next_token(&j, "value", &place);
    decode_value(&j, token, place);
    token = next_token(&j, "the end", &place);
    if (token != TOKEN_END)
        expected(&j, "the end", token_names[token], place);
    return 1;
}

/* ---- Options ---- */

static int integer_option(lua_State *L, int index, int *option, int least, int greatest)
{
    if (!lua_isnoneornil(L, index)) {
        lua_Integer value = luaL_checkinteger(L, index);
        char message[64];
        snprintf(message, sizeof message, "expected integer between %d and %d", least, greatest);
        luaL_argcheck(L, least <= value && value <= greatest, index, message);
        *option = (int)value;
    }
    lua_pushinteger(L, *option);
    return 1;
}

static int boolean_option(lua_State *L, int index, int *option)
{
    if (lua_isboolean(L, index))
        *option = lua_toboolean(L, index);
    else if (lua_type(L, index) == LUA_TSTRING)
        *option = strcmp(lua_tostring(L, index), "null") == 0 ? 2 : strcmp(lua_tostring(L, index), "on") == 0;
    if (*option == 2)
        lua_pushliteral(L, "null");
    else
        lua_pushboolean(L, *option);
    return 1;
}

static int encode_max_depth(lua_State *L)
{
    return integer_option(L, 1, &sandbox_of(L)->json.encode_max_depth, 1, 2000);
}

static int decode_max_depth(lua_State *L)
{
    return integer_option(L, 1, &sandbox_of(L)->json.decode_max_depth, 1, 2000);
}

static int number_precision(lua_State *L)
{
    return integer_option(L, 1, &sandbox_of(L)->json.precision, 1, 16);
}

static int sparse_array(lua_State *L)
{
    json_options *options = &sandbox_of(L)->json;
    lua_settop(L, 3);
    boolean_option(L, 1, &options->sparse_convert);
    integer_option(L, 2, &options->sparse_ratio, 0, INT32_MAX);
    integer_option(L, 3, &options->sparse_safe, 0, INT32_MAX);
    return 3;
}

static int keep_buffer(lua_State *L)
{
    return boolean_option(L, 1, &sandbox_of(L)->json.keep_buffer);
}

static int encode_invalid(lua_State *L)
{
    return boolean_option(L, 1, &sandbox_of(L)->json.encode_invalid);
}

static int decode_invalid(lua_State *L)
{
    return boolean_option(L, 1, &sandbox_of(L)->json.decode_invalid);
}

static int json_new(lua_State *L);

const luaL_Reg json_functions[] = {
    {"decode", json_decode},
    {"decode_invalid_numbers", decode_invalid},
    {"decode_max_depth", decode_max_depth},
    {"encode", json_encode},
    {"encode_invalid_numbers", encode_invalid},
    {"encode_keep_buffer", keep_buffer},
    {"encode_max_depth", encode_max_depth},
    {"encode_number_precision", number_precision},
    {"encode_sparse_array", sparse_array},
    {"new", json_new},
    {NULL, NULL},
};

/* cjson.new(): a table with these functions; their options are those of the script, whichever table it uses. */
static int json_new(lua_State *L)
{
    lua_newtable(L);
    for (const luaL_Reg *f = json_functions; f->name != NULL; f++) {
        lua_pushcfunction(L, f->func);
        lua_setfield(L, -2, f->name);
    }
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}

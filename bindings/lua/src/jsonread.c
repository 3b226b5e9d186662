/*
 * node:fromjson(text): makes a subtree what JSON text says.
 *
 * Invariants
 * - The subtree is replaced in one transaction, after all of the text was read without a fault.
 * - Depth is bounded by what a node can have (255 subscripts), so recursion is.
 * - Nothing but JSON is taken: no comments, no trailing commas, no NaN.
 */
#include "jsonread.h"

#include "errors.h"
#include "handles.h"
#include "tree.h"
#include "values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct reader {
    lua_State *L;
    const char *start, *p, *end;
    handle root;
    int storing; /* 0: only look whether it is JSON */
    size_t depth;
    perilune_value subscripts[SUBSCRIPTS_MAX];
} reader;

static void fault(const reader *r, const char *what)
{
    raise_argument(r->L, "fromjson: %s at byte %d of the text", what, (int)(r->p - r->start) + 1);
}

static void blanks(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static void store(reader *r, const perilune_value *value)
{
    int status;
    if (!r->storing)
        return;
    TRY(status, r->L, r->root.db, r->root.key,
        perilune_set_child(r->root.db->live, r->root.key, r->subscripts, r->depth, value));
}

static int hex4(reader *r)
{
    int code = 0;
    if (r->end - r->p < 4)
        fault(r, "an escape \\u without four digits");
    for (int i = 0; i < 4; i++) {
        char c = *r->p++;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            fault(r, "an escape \\u without four digits");
        code = code * 16 + digit;
    }
    return code;
}

static char *put_utf8(char *to, int code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

static char *escape(reader *r, char *to)
{
    static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    if (r->p == r->end)
        fault(r, "a string without an end");
    char c = *r->p++;
    const char *known = c == 0 ? NULL : strchr(from, c);
    if (known != NULL) {
        *to++ = plain[known - from];
        return to;
    }
    if (c != 'u')
        fault(r, "an unknown escape");
    int code = hex4(r);
    if (code >= 0xd800 && code < 0xdc00 && r->end - r->p >= 2 && r->p[0] == '\\' && r->p[1] == 'u') {
        r->p += 2;
        int low = hex4(r);
        if (low < 0xdc00 || low > 0xdfff)
            fault(r, "half of a surrogate pair");
        return put_utf8(to, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
    }
    if (code >= 0xd800 && code < 0xe000)
        fault(r, "half of a surrogate pair");
    return put_utf8(to, code);
}

/* Reads a string; its bytes lie in the text or in a userdata that is pushed (always one value). */
static void string(reader *r, const char **bytes, size_t *size)
{
    const char *from = ++r->p;
    while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 32)
        r->p++;
    if (r->p < r->end && *r->p == '"') {
        lua_pushnil(r->L);
        *bytes = from;
        *size = (size_t)(r->p++ - from);
        return;
    }
    /* NB: no escape is shorter than what it stands for. */
    const char *close = r->p;
    while (close < r->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= r->end)
        fault(r, "a string without an end");
    char *copy = new_userdata(r->L, (size_t)(close - from) + 1);
    char *to = copy + (r->p - from);
    memcpy(copy, from, (size_t)(r->p - from));
    while (*r->p != '"') {
        if ((unsigned char)*r->p < 32)
            fault(r, "a control character in a string");
        if (*r->p != '\\') {
            *to++ = *r->p++;
            continue;
        }
        r->p++;
        to = escape(r, to);
    }
    r->p++;
    *bytes = copy;
    *size = (size_t)(to - copy);
}

static void digits(reader *r)
{
    if (r->p == r->end || *r->p < '0' || *r->p > '9')
        fault(r, "a number without digits");
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
}

static void number(reader *r, perilune_value *value)
{
    const char *from = r->p;
    char text[64];
    if (*r->p == '-')
        r->p++;
    if (r->p < r->end && *r->p == '0')
        r->p++;
    else
        digits(r);
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        digits(r);
    }
    if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            r->p++;
        digits(r);
    }
    size_t size = (size_t)(r->p - from);
    if (size < sizeof text) {
        memcpy(text, from, size);
        for (size_t i = 0; i < size; i++)
            if (text[i] == 'e')
                text[i] = 'E';
        if (perilune_number_parse(text, size, value) == PERILUNE_OK)
            return;
    }
    double nearby = nearest(from, size);
    if (!isfinite(nearby))
        fault(r, "a number that is too large");
    *value = perilune_double(nearby);
}

static void value(reader *r);

static void in_brackets(reader *r, char close)
{
    int64_t index = 0;
    int list = close == ']';
    r->p++;
    blanks(r);
    if (r->p < r->end && *r->p == close) {
        perilune_value empty = perilune_of_type(list ? PERILUNE_EMPTY_LIST : PERILUNE_EMPTY_MAP);
        r->p++;
        store(r, &empty);
        return;
    }
    if (r->depth >= SUBSCRIPTS_MAX)
        fault(r, "more than 255 levels");
    for (;;) {
        int top = lua_gettop(r->L), own = 0;
        perilune_value subscript = perilune_int(++index);
        if (!list) {
            if (r->p == r->end || *r->p != '"')
                fault(r, "no key where one is expected");
            subscript = perilune_string(NULL, 0);
            string(r, &subscript.as.s.p, &subscript.as.s.n);
            own = subscript.as.s.n == 2 && memcmp(subscript.as.s.p, "__", 2) == 0;
            blanks(r);
            if (r->p == r->end || *r->p++ != ':')
                fault(r, "no colon after a key");
            blanks(r);
        }
        if (own && r->p < r->end && (*r->p == '{' || *r->p == '['))
            fault(r, "an object or a list as the value of \"__\"");
        r->subscripts[r->depth] = subscript;
        r->depth += !own;
        value(r);
        r->depth -= !own;
        lua_settop(r->L, top);
        blanks(r);
        if (r->p == r->end)
            fault(r, "no end of a list or object");
        if (*r->p == close)
            break;
        if (*r->p != ',')
            fault(r, "no comma where one is expected");
        r->p++;
        blanks(r);
    }
    r->p++;
}

static int word(reader *r, const char *text)
{
    size_t size = strlen(text);
    if ((size_t)(r->end - r->p) < size || memcmp(r->p, text, size) != 0)
        return 0;
    r->p += size;
    return 1;
}

static void value(reader *r)
{
    perilune_value v = perilune_absent();
    luaL_checkstack(r->L, 12, "fromjson");
    if (r->p == r->end)
        fault(r, "no value");
    switch (*r->p) {
    case '{':
        in_brackets(r, '}');
        return;
    case '[':
        in_brackets(r, ']');
        return;
    case '"':
        v.type = PERILUNE_STRING;
        string(r, &v.as.s.p, &v.as.s.n);
        break;
    case 't':
    case 'f':
    case 'n':
        if (word(r, "true"))
            v = perilune_bool(1);
        else if (word(r, "false"))
            v = perilune_bool(0);
        else if (word(r, "null"))
            v = perilune_of_type(PERILUNE_NULL);
        else
            fault(r, "an unknown word");
        break;
    default:
        if (*r->p != '-' && (*r->p < '0' || *r->p > '9'))
            fault(r, "no value");
        number(r, &v);
    }
    store(r, &v);
}

static void read_all(reader *r, int storing)
{
    r->p = r->start;
    r->storing = storing;
    r->depth = 0;
    blanks(r);
    value(r);
    blanks(r);
    if (r->p != r->end)
        fault(r, "something after the value");
}

/* tx, node, text */
static int fromjson_body(lua_State *L)
{
    reader r;
    size_t size;
    int status;
    r.L = L;
    check_handle(L, 2, &r.root);
    r.start = lua_tolstring(L, 3, &size);
    r.end = r.start + size;
    TRY(status, L, r.root.db, r.root.key, perilune_kill(r.root.db->live, r.root.key));
    read_all(&r, 1);
    return 0;
}

/* n:fromjson(text): replaces the subtree. */
int node_fromjson(lua_State *L)
{
    reader r;
    size_t size;
    check_handle(L, 1, &r.root);
    lua_settop(L, 2);
    if (lua_type(L, 2) != LUA_TSTRING)
        return raise_argument(L, "fromjson takes text, not %s", described(L, 2));
    r.L = L;
    r.start = lua_tolstring(L, 2, &size);
    r.end = r.start + size;
    read_all(&r, 0);
    return in_one_transaction(L, fromjson_body);
}

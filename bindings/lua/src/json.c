/*
 * node:tojson(): a subtree as JSON text.
 *
 * One cursor goes through the whole subtree, a batch of entries at a time, and the text grows behind it. What
 * turns out only later is corrected in the text: that a node with a value has children, that what began as a list
 * (1, 2, 4) is none.
 *
 * Invariants
 * - Children 1, 2, ... n without a value beside them are a list; everything else is an object in the order of the
 *   tree, with a node's own value beside children as "__".
 * - Numbers keep all digits; text is written as it is, so bytes that are no UTF-8 stay what they are.
 */
#include "json.h"

#include "errors.h"
#include "handles.h"
#include "values.h"
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>

static const char text_key;

/* A list or an object that is open. */
typedef struct level {
    size_t start; /* of its text */
    size_t count; /* of its items */
    size_t marks; /* how many marks are those of the levels around it */
    int is_list;  /* so far */
} level;

/* A growing text in a userdata, and what is open at its end. */
typedef struct text {
    char *p;
    size_t n, capacity;
    size_t value;  /* where the value begins that was added last */
    int is_scalar; /* whether there is one that stands beside children */
    int depth;
    level levels[256];
    size_t *marks; /* where the items of open lists begin */
    size_t marks_count, marks_capacity;
} text;

static int text_gc(lua_State *L)
{
    text *t = lua_touserdata(L, 1);
    free(t->p);
    free(t->marks);
    t->p = NULL;
    t->marks = NULL;
    return 0;
}

static text *push_text(lua_State *L)
{
    text *t = new_userdata(L, sizeof *t);
    memset(t, 0, sizeof *t);
    lua_pushlightuserdata(L, (void *)&text_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, text_gc);
        lua_setfield(L, -2, "__gc");
        lua_pushlightuserdata(L, (void *)&text_key);
        lua_pushvalue(L, -2);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    lua_setmetatable(L, -2);
    return t;
}

static void grow(lua_State *L, text *t, size_t n)
{
    size_t capacity = (t->n + n) * 2 + 256;
    char *larger = realloc(t->p, capacity);
    if (larger == NULL)
        luaL_error(L, "not enough memory");
    t->p = larger;
    t->capacity = capacity;
}

/* Where `n` more bytes can be written. */
static inline char *room(lua_State *L, text *t, size_t n)
{
    if (t->capacity - t->n < n)
        grow(L, t, n);
    return t->p + t->n;
}

static inline void add(lua_State *L, text *t, const char *p, size_t n)
{
    memcpy(room(L, t, n), p, n);
    t->n += n;
}

static inline void add_char(lua_State *L, text *t, char c)
{
    *room(L, t, 1) = c;
    t->n++;
}

static void add_mark(lua_State *L, text *t)
{
    if (t->marks_count == t->marks_capacity) {
        size_t capacity = t->marks_capacity * 2 + 16;
        size_t *larger = realloc(t->marks, capacity * sizeof *larger);
        if (larger == NULL)
            luaL_error(L, "not enough memory");
        t->marks = larger;
        t->marks_capacity = capacity;
    }
    t->marks[t->marks_count++] = t->n;
}

static inline int is_plain(unsigned char c)
{
    return c >= 32 && c != '"' && c != '\\';
}

/* How many bytes from `p` on stand for themselves in JSON. */
static size_t plain_bytes(const char *p, size_t n)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    size_t i = 0;
    /* Eight at a time: the high bit of each byte that is below 32, a quote or a backslash. A byte behind one such may be
     * told wrongly, which the loop below puts right (H. S. Warren, Hacker's Delight, 6-1). */
    for (; n - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
        uint64_t found = ((word - ones * 32) & ~word) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
        if (found & high)
            break;
    }
    while (i < n && is_plain((unsigned char)p[i]))
        i++;
    return i;
}

static void add_escape(lua_State *L, text *t, unsigned char c)
{
    char escape[8];
    const char *known = strchr("\"\"\\\\\bb\ff\nn\rr\tt", c);
    if (c != 0 && known != NULL)
        snprintf(escape, sizeof escape, "\\%c", c == '"' || c == '\\' ? c : known[1]);
    else
        snprintf(escape, sizeof escape, "\\u%04x", c);
    add(L, t, escape, strlen(escape));
}

static void add_string(lua_State *L, text *t, const char *p, size_t n)
{
    add_char(L, t, '"');
    for (;;) {
        size_t plain = plain_bytes(p, n);
        add(L, t, p, plain);
        if (plain == n)
            break;
        add_escape(L, t, (unsigned char)p[plain]);
        p += plain + 1;
        n -= plain + 1;
    }
    add_char(L, t, '"');
}

/* Whether a number is an integer of few digits, whose text needs no rules. */
static inline int is_small(const perilune_value *value)
{
    return value->type == PERILUNE_INT && value->as.i > -1000000000 && value->as.i < 1000000000;
}

static void add_small(lua_State *L, text *t, int64_t number)
{
    char digits[12], *end = digits + sizeof digits, *p = end;
    uint32_t rest = (uint32_t)(number < 0 ? -number : number);
    do
        *--p = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (number < 0)
        *--p = '-';
    add(L, t, p, (size_t)(end - p));
}

static void add_value(lua_State *L, text *t, const perilune_value *value)
{
    char number[512];
    size_t size = 0;
    if (value->type == PERILUNE_STRING) {
        add_string(L, t, value->as.s.p, value->as.s.n);
        return;
    }
    if (is_small(value)) {
        add_small(L, t, value->as.i);
        return;
    }
    if (value->type == PERILUNE_DOUBLE) {
        char exponent[40];
        shortest_text(value->as.d, exponent);
        if (perilune_number_canonical(exponent, strlen(exponent), number, sizeof number, &size) != PERILUNE_OK) {
            strcpy(number, exponent); /* beyond 1E47: JSON has exponents, too */
            size = strlen(number);
        }
    } else {
        perilune_value_text(value, number, sizeof number, &size);
    }
    /* The canonical form has no zero before the point; JSON wants it. */
    const char *p = number;
    if (size > 0 && *p == '-') {
        add(L, t, p++, 1);
        size--;
    }
    if (size > 0 && *p == '.')
        add_char(L, t, '0');
    add(L, t, p, size);
}

static int is_scalar(const perilune_value *value)
{
    return value->type != PERILUNE_ABSENT && value->type != PERILUNE_EMPTY_LIST && value->type != PERILUNE_EMPTY_MAP;
}

/* Makes room for `n` bytes at `at`. */
static char *insert(lua_State *L, text *t, size_t at, size_t n)
{
    size_t end = t->n;
    while (t->n < end + n) {
        size_t rest = end + n - t->n;
        add(L, t, "                ", rest < 16 ? rest : 16);
    }
    memmove(t->p + at + n, t->p + at, end - at);
    return t->p + at;
}

/* The list that is open turns out to be none: its items get their subscripts. */
static void to_object(lua_State *L, text *t, level *open)
{
    char key[32];
    size_t items = t->marks_count - open->marks;
    size_t *marks = t->marks + open->marks;
    size_t extra = 0;
    for (size_t i = 1; i <= items; i++)
        extra += (size_t)snprintf(key, sizeof key, "\"%zu\":", i);
    size_t end = t->n;
    insert(L, t, end, extra);
    for (size_t i = items; i > 0; i--) {
        size_t size = (size_t)snprintf(key, sizeof key, "\"%zu\":", i);
        memmove(t->p + marks[i - 1] + extra, t->p + marks[i - 1], end - marks[i - 1]);
        end = marks[i - 1];
        extra -= size;
        memcpy(t->p + end + extra, key, size);
    }
    t->p[open->start] = '{';
    open->is_list = 0;
    t->marks_count = open->marks;
}

static void open_level(text *t, size_t start, int is_list)
{
    level *open = &t->levels[t->depth++];
    open->start = start;
    open->marks = t->marks_count;
    open->is_list = is_list;
    /* An object that is opened has the node's own value. */
    open->count = !is_list;
}

static void close_level(lua_State *L, text *t)
{
    level *open = &t->levels[--t->depth];
    t->marks_count = open->marks;
    add_char(L, t, open->is_list ? ']' : '}');
}

/* Begins an item of the level that is open. */
static void begin_item(lua_State *L, text *t, const perilune_value *subscript)
{
    level *open = &t->levels[t->depth - 1];
    if (open->is_list && !(subscript->type == PERILUNE_INT && subscript->as.i == (int64_t)open->count + 1))
        to_object(L, t, open);
    if (open->count++ > 0)
        add_char(L, t, ',');
    if (open->is_list) {
        add_mark(L, t);
        return;
    }
    if (subscript->type == PERILUNE_STRING) {
        add_string(L, t, subscript->as.s.p, subscript->as.s.n);
    } else if (is_small(subscript)) {
        add_char(L, t, '"');
        add_small(L, t, subscript->as.i);
        add_char(L, t, '"');
    } else {
        char key[128];
        size_t size = 0;
        perilune_value_text(subscript, key, sizeof key, &size);
        add_string(L, t, key, size);
    }
    add_char(L, t, ':');
}

/* Opens the level of the node whose value was added last, or that has none: there is something below it. */
static void open_value(lua_State *L, text *t)
{
    size_t start = t->value;
    if (t->is_scalar) {
        memcpy(insert(L, t, start, 6), "{\"__\":", 6);
    } else {
        t->n = start;
        add_char(L, t, '[');
    }
    open_level(t, start, !t->is_scalar);
}

/* Adds `entry`, `depth` levels below the root, which shares `shared` of them with the one before it. */
static void add_entry(lua_State *L, text *t, const perilune_entry *entry, int depth, int shared)
{
    int root = (int)entry->depth - depth;
    while (t->depth > shared + 1)
        close_level(L, t);
    if (depth > 0 && t->depth == shared)
        open_value(L, t);
    for (int at = shared + 1; at < depth; at++) {
        perilune_value subscript;
        if (perilune_node_subscript(entry->node, (uint32_t)(root + at), &subscript) != PERILUNE_OK)
            raise_status(L, NULL, PERILUNE_INTERNAL, NULL);
        begin_item(L, t, &subscript);
        size_t start = t->n;
        add_char(L, t, '[');
        open_level(t, start, 1);
    }
    if (depth > 0)
        begin_item(L, t, &entry->subscript);
    t->value = t->n;
    t->is_scalar = is_scalar(&entry->value);
    add_value(L, t, &entry->value);
}

/* n:tojson(): text, or nil when there is nothing. */
int node_tojson(lua_State *L)
{
    enum { FIRST = 8, BATCH = 64 };
    handle h;
    perilune_entry entries[BATCH];
    size_t capacity = FIRST, count;
    int is_empty = 1;
    check_handle(L, 1, &h);
    text *t = push_text(L);
    loop *open = push_loop(L, h.db, h.key, PERILUNE_CURSOR_SUBTREE, PERILUNE_CURSOR_VALUES | PERILUNE_CURSOR_NODES);
    while (h.db->live != NULL) {
        int status = perilune_cursor_fetch(open->cursor, entries, capacity, &count);
        if (!ANSWERED(status))
            raise_status(L, h.db, status, NULL);
        if (status != PERILUNE_OK)
            break;
        for (size_t i = 0; i < count; i++) {
            int depth = (int)entries[i].depth - (int)h.key->depth;
            int shared = (int)entries[i].shared - (int)h.key->depth;
            add_entry(L, t, &entries[i], depth, shared < 0 || is_empty ? 0 : shared);
            is_empty = 0;
        }
        capacity = BATCH;
    }
    end_loop(open);
    if (is_empty)
        return 0;
    while (t->depth > 0)
        close_level(L, t);
    lua_pushlstring(L, t->p, t->n);
    return 1;
}

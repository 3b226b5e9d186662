/*
 * node:tojson(): a subtree as JSON text.
 *
 * Invariants
 * - Children 1, 2, ... n without a value beside them are a list; everything else is an object in the
 *   order of the tree, with a node's own value beside children as "__".
 * - Numbers keep all digits; text is written as it is, so bytes that are no UTF-8 stay what they are.
 */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>

static const char text_key;

/* A growing text in a userdata. */
typedef struct text {
    char *p;
    size_t n, capacity;
} text;

static int text_gc(lua_State *L)
{
    text *t = lua_touserdata(L, 1);
    free(t->p);
    t->p = NULL;
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

static void add(lua_State *L, text *t, const char *p, size_t n)
{
    if (t->capacity - t->n < n) {
        size_t capacity = (t->n + n) * 2 + 256;
        char *larger = realloc(t->p, capacity);
        if (larger == NULL)
            luaL_error(L, "not enough memory");
        t->p = larger;
        t->capacity = capacity;
    }
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

static void add_string(lua_State *L, text *t, const char *p, size_t n)
{
    size_t from = 0;
    add(L, t, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c >= 32 && c != '"' && c != '\\')
            continue;
        char escape[8];
        const char *known = strchr("\"\"\\\\\bb\ff\nn\rr\tt", c);
        if (c != 0 && known != NULL)
            snprintf(escape, sizeof escape, "\\%c", c == '"' || c == '\\' ? c : known[1]);
        else
            snprintf(escape, sizeof escape, "\\u%04x", c);
        add(L, t, p + from, i - from);
        add(L, t, escape, strlen(escape));
        from = i + 1;
    }
    add(L, t, p + from, n - from);
    add(L, t, "\"", 1);
}

static void add_value(lua_State *L, text *t, const perilune_value *value)
{
    char number[512];
    size_t size = 0;
    if (value->type == PERILUNE_STRING) {
        add_string(L, t, value->as.s.p, value->as.s.n);
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
        add(L, t, "0", 1);
    add(L, t, p, size);
}

static int is_scalar(const perilune_value *value)
{
    return value->type != PERILUNE_ABSENT && value->type != PERILUNE_EMPTY_LIST && value->type != PERILUNE_EMPTY_MAP;
}

/* Whether the children of `at` are 1, 2, ... n. */
static int is_sequence(lua_State *L, database *db, const perilune_node *at)
{
    perilune_value subscript;
    int64_t expected = 0;
    loop *open = push_loop(L, db, at, PERILUNE_CURSOR_CHILDREN, 0);
    int sequence = 1;
    while (sequence && loop_step(L, db, open, &subscript, NULL, NULL))
        sequence = subscript.type == PERILUNE_INT && subscript.as.i == ++expected;
    end_loop(open);
    lua_pop(L, 1);
    return sequence;
}

static void add_tree(lua_State *L, text *t, database *db, const perilune_node *at, const perilune_value *own);

static void add_child(lua_State *L, text *t, database *db, loop *open, const perilune_value *value, int32_t data)
{
    uint64_t block[256];
    const perilune_node *child = (perilune_node *)block;
    size_t size;
    int top = lua_gettop(L);
    if (data < 10) {
        add_value(L, t, value);
        return;
    }
    int status = perilune_cursor_node(open->cursor, block, sizeof block, &size);
    if (status == PERILUNE_BUFFER_TOO_SMALL) {
        child = new_userdata(L, size);
        status = perilune_cursor_node(open->cursor, (void *)child, size, &size);
    }
    if (status != PERILUNE_OK)
        raise_status(L, NULL, status, NULL);
    add_tree(L, t, db, child, value);
    lua_settop(L, top);
}

/* Adds the children of `at`, which there are, with the node's own value. */
static void add_tree(lua_State *L, text *t, database *db, const perilune_node *at, const perilune_value *own)
{
    perilune_value subscript, value;
    int32_t data;
    char key[128];
    int first = 1;
    int list = 0;
    int beside = is_scalar(own);
    if (beside) {
        /* NB: before another call, which may take the value's bytes away. */
        add(L, t, "{\"__\":", 6);
        add_value(L, t, own);
        first = 0;
    } else {
        list = is_sequence(L, db, at);
        add(L, t, list ? "[" : "{", 1);
    }
    loop *open =
        push_loop(L, db, at, PERILUNE_CURSOR_CHILDREN, PERILUNE_CURSOR_VALUES | PERILUNE_CURSOR_DATA);
    while (loop_step(L, db, open, &subscript, &value, &data)) {
        if (!first)
            add(L, t, ",", 1);
        first = 0;
        if (!list && subscript.type == PERILUNE_STRING) {
            add_string(L, t, subscript.as.s.p, subscript.as.s.n);
            add(L, t, ":", 1);
        } else if (!list) {
            size_t size = 0;
            perilune_value_text(&subscript, key, sizeof key, &size);
            add_string(L, t, key, size);
            add(L, t, ":", 1);
        }
        add_child(L, t, db, open, &value, data);
    }
    end_loop(open);
    lua_pop(L, 1);
    add(L, t, list ? "]" : "}", 1);
}

/* n:tojson(): text, or nil when there is nothing. */
int node_tojson(lua_State *L)
{
    handle h;
    perilune_value value;
    int32_t data = 0;
    int status;
    check_handle(L, 1, &h);
    TRY(status, L, h.db, h.key, perilune_data(h.db->live, h.key, &data));
    if (data == 0)
        return 0;
    text *t = push_text(L);
    TRY(status, L, h.db, h.key, perilune_get(h.db->live, h.key, &value));
    if (data < 10)
        add_value(L, t, &value);
    else
        add_tree(L, t, h.db, h.key, &value);
    lua_pushlstring(L, t->p, t->n);
    return 1;
}

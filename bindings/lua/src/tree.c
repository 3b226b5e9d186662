/*
 * Subtrees from Lua tables, and as text: settree, dump. (gettree is in gettree.c.)
 *
 * Invariants
 * - settree is one transaction: all of the table is stored or nothing.
 * - A node's own value beside children is the field `__`.
 * - A table that contains itself is refused when it is deeper than a node can be.
 */
#include "tree.h"

#include "errors.h"
#include "handles.h"
#include "nodes.h"
#include "stored.h"
#include "values.h"
#include "walk.h"

#include <stdio.h>

typedef struct storing {
    handle root;
    int filter; /* index of the filter function, or 0 */
    size_t depth;
    perilune_value subscripts[SUBSCRIPTS_MAX];
} storing;

int in_one_transaction(lua_State *L, lua_CFunction body)
{
    int count = lua_gettop(L);
    push_class(L, 1);
    push_class_database(L, lua_gettop(L));
    lua_getfield(L, -1, "transaction");
    lua_insert(L, 1);
    lua_insert(L, 2);
    lua_pop(L, 1);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushcclosure(L, body, UPVALUES);
    lua_insert(L, 3);
    lua_call(L, count + 2, 0);
    return 0;
}

static void store(lua_State *L, storing *s, const perilune_value *value)
{
    int status;
    TRY(status, L, s->root.db, s->root.key,
        perilune_set_child(s->root.db->live, s->root.key, s->subscripts, s->depth, value));
}

/* Refuses a table with both the key 1 and the key "1", which are one subscript. */
static void check_twin(lua_State *L, int table, const perilune_value *subscript)
{
    perilune_value number;
    if (subscript->type != PERILUNE_STRING || !perilune_number_is_canonical(subscript->as.s.p, subscript->as.s.n)
        || perilune_number_parse(subscript->as.s.p, subscript->as.s.n, &number) != PERILUNE_OK)
        return;
    push_value(L, &number);
    if (lua_type(L, -1) == LUA_TNUMBER) {
        lua_pushvalue(L, -1);
        lua_rawget(L, table);
        if (!lua_isnil(L, -1))
            raise_argument(L, "the table has both the key %s and the string '%s', which are one subscript",
                           subscript->as.s.p, subscript->as.s.p);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void store_table(lua_State *L, storing *s, int table);

/* Stores the value on the top of the stack at the subscripts. */
static void store_value(lua_State *L, storing *s)
{
    perilune_value value;
    int top = lua_gettop(L);
    if (lua_istable(L, top)) {
        store_table(L, s, top);
        return;
    }
    if (is_sentinel(L, top, &delete_key))
        value = perilune_absent();
    else if (s->depth == 0)
        to_value(L, top, "the value at __", &value);
    else {
        char what[96];
        const perilune_value *last = &s->subscripts[s->depth - 1];
        if (last->type == PERILUNE_STRING)
            snprintf(what, sizeof what, "the value at key '%.60s'", last->as.s.p);
        else
            snprintf(what, sizeof what, "the value at key %.15g",
                     last->type == PERILUNE_INT ? (double)last->as.i : last->as.d);
        to_value(L, top, what, &value);
    }
    store(L, s, &value);
}

/* Calls the filter with node, key and value (the top two), which it may replace: 0 to leave it out. */
static int filtered(lua_State *L, storing *s)
{
    int key = lua_gettop(L) - 1;
    lua_pushvalue(L, s->filter);
    push_class(L, 2);
    uint64_t block[256];
    size_t size;
    int status = perilune_node_child(block, sizeof block, s->root.key, s->subscripts, s->depth, &size);
    if (status != PERILUNE_OK)
        raise_thread(L, status);
    push_node(L, s->root.db, lua_absindex(L, -1), (perilune_node *)block);
    lua_remove(L, -2);
    lua_pushvalue(L, key);
    lua_pushvalue(L, key + 1);
    lua_call(L, 3, 2);
    lua_replace(L, key + 1);
    lua_replace(L, key);
    return !lua_isnil(L, key) && !lua_isnil(L, key + 1);
}

static int is_own(lua_State *L, int index)
{
    size_t size;
    const char *key = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &size) : NULL;
    return key != NULL && size == 2 && memcmp(key, "__", 2) == 0;
}

static void store_table(lua_State *L, storing *s, int table)
{
    perilune_value empty;
    luaL_checkstack(L, 16, "settree");
    lua_pushnil(L);
    if (!lua_next(L, table)) {
        empty = perilune_of_type(is_list(L, table) ? PERILUNE_EMPTY_LIST : PERILUNE_EMPTY_MAP);
        if (s->depth > 0)
            store(L, s, &empty);
        return;
    }
    do {
        int key = lua_gettop(L) - 1;
        lua_pushvalue(L, key);
        lua_pushvalue(L, key + 1);
        if (s->filter != 0 && !filtered(L, s)) {
            lua_settop(L, key);
            continue;
        }
        if (is_own(L, key + 2)) {
            if (lua_istable(L, key + 3))
                raise_argument(L, "the value at __ must not be a table");
            store_value(L, s);
        } else {
            if (s->depth >= SUBSCRIPTS_MAX)
                raise_argument(L, "the table is deeper than 255 levels, or contains itself");
            to_subscript(L, key + 2, &s->subscripts[s->depth]);
            check_twin(L, table, &s->subscripts[s->depth]);
            s->depth++;
            lua_settop(L, key + 3);
            store_value(L, s);
            s->depth--;
        }
        lua_settop(L, key);
    } while (lua_next(L, table));
}

/* tx, node, table, filter */
static int settree_body(lua_State *L)
{
    storing s;
    lua_settop(L, 4);
    check_handle(L, 2, &s.root);
    s.filter = lua_isnil(L, 4) ? 0 : 4;
    s.depth = 0;
    store_table(L, &s, 3);
    return 0;
}

/* n:settree(table[, filter]) */
int node_settree(lua_State *L)
{
    handle h;
    lua_settop(L, 3);
    check_handle(L, 1, &h);
    if (!lua_istable(L, 2))
        return raise_argument(L, "settree takes a table, not %s", described(L, 2));
    if (!lua_isnil(L, 3) && !lua_isfunction(L, 3))
        return raise_argument(L, "a filter must be a function, not %s", described(L, 3));
    return in_one_transaction(L, settree_body);
}

/* Appends a value as Lua writes it. */
static void add_value(lua_State *L, luaL_Buffer *b, const perilune_value *value)
{
    if (value->type != PERILUNE_STRING) {
        char text[512];
        size_t size = 0;
        perilune_value_text(value, text, sizeof text, &size);
        luaL_addlstring(b, text, size);
        return;
    }
    (void)L;
    luaL_addchar(b, '"');
    for (size_t i = 0; i < value->as.s.n; i++) {
        unsigned char c = (unsigned char)value->as.s.p[i];
        char text[8];
        if (c == '"' || c == '\\') {
            luaL_addchar(b, '\\');
            luaL_addchar(b, (char)c);
        } else if (c < 32 || c == 127) {
            snprintf(text, sizeof text, "\\%03d", c);
            luaL_addstring(b, text);
        } else {
            luaL_addchar(b, (char)c);
        }
    }
    luaL_addchar(b, '"');
}

/* n:dump([lines]): the subtree as text, a node a line, at most `lines` (30) of them. */
int node_dump(lua_State *L)
{
    handle h;
    perilune_value value;
    int64_t most = 30, count = 0;
    check_handle(L, 1, &h);
    if (!lua_isnoneornil(L, 2) && (lua_type(L, 2) != LUA_TNUMBER || !integral(L, 2, &most) || most < 0))
        return raise_argument(L, "dump takes a number of lines");
    loop *open = push_loop(L, h.db, h.key, PERILUNE_CURSOR_SUBTREE, PERILUNE_CURSOR_VALUES);
    lua_createtable(L, 32, 0);
    int lines = lua_gettop(L), more = 0;
    while (loop_step(L, h.db, open, NULL, &value, NULL)) {
        uint64_t block[256];
        char text[4096];
        size_t size = 0;
        luaL_Buffer b;
        if (count == most) {
            more = 1;
            break;
        }
        luaL_buffinit(L, &b);
        if (perilune_cursor_node(open->cursor, block, sizeof block, &size) == PERILUNE_OK
            && perilune_node_text((perilune_node *)block, text, sizeof text, &size) == PERILUNE_OK)
            luaL_addlstring(&b, text, size);
        else
            luaL_addstring(&b, "(a long node)");
        luaL_addchar(&b, '=');
        add_value(L, &b, &value);
        luaL_pushresult(&b);
        lua_rawseti(L, lines, (int)++count);
    }
    end_loop(open);
    if (more) {
        lua_pushfstring(L, "... more: node:dump(lines) shows more than %d lines", (int)most);
        lua_rawseti(L, lines, (int)++count);
    }
    luaL_Buffer b;
    lua_pushvalue(L, lines);
    luaL_buffinit(L, &b);
    for (int64_t i = 1; i <= count; i++) {
        lua_rawgeti(L, lines, (int)i);
        luaL_addvalue(&b);
        luaL_addchar(&b, '\n');
    }
    luaL_pushresult(&b);
    return 1;
}

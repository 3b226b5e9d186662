/*
 * Nodes and their classes: making children, `node.__`, method calls, comparison, text.
 *
 * Invariants
 * - A class is a metatable: methods and metamethods together; a derived one looks up what it lacks
 *   in its parent class. `class_id` differs for every class of a Lua state.
 * - A node's name and subscripts are never reserved: n.get is the node with the subscript "get", and
 *   n:get() is that node called with n, which is the method.
 */
#include "nodes.h"

#include "cache.h"
#include "errors.h"
#include "handles.h"
#include "light.h"
#include "stored.h"
#include "values.h"

#include <stdlib.h>

enum { STACK_NODE = 2048 };

typedef union block {
    perilune_node head;
    uint64_t words[STACK_NODE / 8];
} block;

/* Pushes a full userdata for `key` with the class at `class`. */
static node *new_node(lua_State *L, int class, const handle *like, const perilune_node *key)
{
    size_t size = PERILUNE_NODE_SIZE(key);
    node *n = new_userdata(L, NODE_KEY_OFFSET + size);
    n->magic = NODE_MAGIC;
    n->class_id = like->class_id;
    n->derived = like->derived;
    n->method = 0;
    n->db = like->db;
    n->place = 0;
    n->keeps = 0;
    n->serial = ++like->db->state->serial;
    memcpy(&n->key, key, size);
    lua_pushvalue(L, class);
    lua_setmetatable(L, -2);
    return n;
}

/* What lies in a class's own metatable, which a program cannot reach. */
enum class_part { CLASS_ID = 1, CLASS_DERIVED, CLASS_DATABASE };

static void push_class_part(lua_State *L, int class, enum class_part part)
{
    if (!lua_getmetatable(L, class))
        raise_argument(L, "this is no class of nodes: inherit makes them");
    lua_rawgeti(L, -1, part);
    lua_remove(L, -2);
}

database *push_class_database(lua_State *L, int class)
{
    push_class_part(L, class, CLASS_DATABASE);
    return check_database(L, lua_gettop(L));
}

/* What a class says of its nodes. */
static void class_handle(lua_State *L, database *db, int class, handle *out)
{
    memset(out, 0, offsetof(handle, block));
    out->db = db;
    push_class_part(L, class, CLASS_ID);
    out->class_id = (uint16_t)lua_tointeger(L, -1);
    push_class_part(L, class, CLASS_DERIVED);
    out->derived = (uint8_t)lua_toboolean(L, -1);
    lua_pop(L, 2);
    /* As the parent of its names; serial numbers do not come as far, and light nodes' words are above. */
    out->identity = (UINT64_C(1) << 60) | out->class_id;
}

static int method_of_key(lua_State *L, const perilune_node *key)
{
    perilune_value last;
    if (key->depth == 0 || perilune_node_subscript(key, key->depth, &last) != PERILUNE_OK
        || last.type != PERILUNE_STRING)
        return 0;
    push_bytes(L, last.as.s.p, last.as.s.n);
    lua_rawget(L, UPVALUE_METHODS);
    int method = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return method;
}

void push_node(lua_State *L, database *db, int class, const perilune_node *key)
{
    handle like;
    class = lua_absindex(L, class);
    luaL_checkstack(L, 8, "node");
    class_handle(L, db, class, &like);
    if (key->depth == 0) {
        uint32_t number = place_of(L, db, class, like.class_id, like.derived, key);
        node *root = new_node(L, class, &like, key);
        root->place = number;
        root->keeps = 1;
        return;
    }
    int method = method_of_key(L, key);
    if (may_be_light(L, key, method)) {
        uint64_t root[64];
        size_t size;
        int status = perilune_node_ancestor(root, sizeof root, key, 0, &size);
        if (status != PERILUNE_OK)
            raise_thread(L, status);
        uint32_t number = place_of(L, db, class, like.class_id, like.derived, (perilune_node *)root);
        if (push_light_key(L, number, key))
            return;
    }
    new_node(L, class, &like, key)->method = (uint8_t)method;
}

/* Encodes a child into `b`, or, when it is too long for it, into a userdata that stays on the stack.
 * NULL when `method` is not 0 and there can be no child. */
static const perilune_node *encode(lua_State *L, block *b, const perilune_node *parent, const perilune_value *subscripts,
                                   size_t count, int method)
{
    size_t size = 0;
    int status;
    void *buffer = b;
    size_t capacity = sizeof *b;
    for (;;) {
        if (count == 1 && subscripts->type == PERILUNE_INT)
            status = perilune_node_child_int(buffer, capacity, parent, subscripts->as.i, &size);
        else if (count == 1 && subscripts->type == PERILUNE_STRING)
            status = perilune_node_child_str(buffer, capacity, parent, subscripts->as.s.p, subscripts->as.s.n, &size);
        else
            status = perilune_node_child(buffer, capacity, parent, subscripts, count, &size);
        if (status != PERILUNE_BUFFER_TOO_SMALL || capacity >= size)
            break;
        buffer = new_userdata(L, size);
        capacity = size;
    }
    if (method != 0 && (status == PERILUNE_TOO_MANY_SUBSCRIPTS || status == PERILUNE_KEY_TOO_LONG))
        return NULL;
    if (status != PERILUNE_OK)
        raise_status(L, NULL, status, parent);
    return buffer;
}

static int push_string_child(lua_State *L, int parent, const handle *of, const char *string, size_t size, int subscript)
{
    if (cached_string(L, of, string))
        return 1;
    lua_pushvalue(L, subscript);
    lua_rawget(L, UPVALUE_METHODS);
    int method = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (push_light_method(L, parent, of, method))
        return 1;
    perilune_value value = perilune_string(string, size);
    block b;
    int top = lua_gettop(L);
    const perilune_node *key = encode(L, &b, of->key, &value, 1, method);
    push_class(L, parent);
    if (key == NULL) {
        static const perilune_node none;
        node *bare = new_node(L, lua_gettop(L), of, &none);
        bare->magic = METHOD_MAGIC;
        bare->method = (uint8_t)method;
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return 1;
    }
    if (key->depth == 1 && of->place != 0 && push_light_key(L, of->place, key)) {
        /* The text of an integer. */
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return 1;
    }
    node *n = new_node(L, lua_gettop(L), of, key);
    n->method = (uint8_t)method;
    n->keeps = 1;
    keep_string(L, of, subscript, n);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return 1;
}

void push_child(lua_State *L, int parent, const handle *of, int subscript)
{
    perilune_value value;
    luaL_checkstack(L, 8, "node");
    to_subscript(L, subscript, &value);
    if (value.type == PERILUNE_STRING) {
        push_string_child(L, parent, of, value.as.s.p, value.as.s.n, subscript);
        return;
    }
    if (value.type == PERILUNE_INT
        && (push_light_integer(L, of, value.as.i) || cached_integer(L, of, value.as.i)))
        return;
    block b;
    int top = lua_gettop(L);
    const perilune_node *key = encode(L, &b, of->key, &value, 1, 0);
    push_class(L, parent);
    node *n = new_node(L, lua_gettop(L), of, key);
    if (value.type == PERILUNE_INT)
        keep_integer(L, of, value.as.i, n);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

void push_named(lua_State *L, database *db, int class, int name, int first)
{
    int last = lua_gettop(L);
    size_t size;
    if (lua_type(L, name) != LUA_TSTRING)
        raise_argument(L, "a name must be a string as \"^person\", not %s", described(L, name));
    const char *text = lua_tolstring(L, name, &size);
    luaL_checkstack(L, 8, "node");
    class = lua_absindex(L, class);
    handle none;
    class_handle(L, db, class, &none);
    if (!cached_string(L, &none, text)) {
        block b;
        size_t written;
        int status = perilune_node_root(&b, sizeof b, text, size, &written);
        if (status != PERILUNE_OK)
            raise_thread(L, status);
        push_node(L, db, class, &b.head);
        keep_string(L, &none, name, lua_touserdata(L, -1));
    }
    descend(L, first, last);
}

/* Goes from the node on the top of the stack down by the subscripts, and tables of them, at first to last. */
void descend(lua_State *L, int first, int last)
{
    for (int i = first; i <= last; i++) {
        handle h;
        to_handle(L, -1, &h);
        if (lua_istable(L, i)) {
            for (int k = 1;; k++) {
                lua_rawgeti(L, i, k);
                if (lua_isnil(L, -1)) {
                    lua_pop(L, 1);
                    break;
                }
                to_handle(L, -2, &h);
                push_child(L, lua_absindex(L, -2), &h, lua_absindex(L, -1));
                lua_replace(L, -3);
                lua_pop(L, 1);
            }
        } else {
            push_child(L, lua_absindex(L, -1), &h, i);
            lua_replace(L, -2);
        }
    }
}

/* n.__name: the member `name` of the class; n.__: the value. */
static int reserved_member(lua_State *L, const handle *h, const char *key, size_t size)
{
    push_class(L, 1);
    lua_pushlstring(L, size > 2 ? key + 2 : "get", size > 2 ? size - 2 : 3);
    lua_gettable(L, -2);
    (void)h;
    if (size > 2)
        return 1;
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int node_index(lua_State *L)
{
    handle h;
    node *n = full_node(L, 1);
    if (n != NULL)
        handle_of(n, &h);
    else
        check_handle(L, 1, &h);
    if (lua_type(L, 2) == LUA_TSTRING) {
        size_t size;
        const char *key = lua_tolstring(L, 2, &size);
        if (size >= 2 && key[0] == '_' && key[1] == '_') {
            if (size > 2 || h.derived)
                return reserved_member(L, &h, key, size);
            perilune_value value;
            int status;
            TRY(status, L, h.db, h.key, perilune_get(h.db->live, h.key, &value));
            push_value(L, &value);
            return 1;
        }
        return push_string_child(L, 1, &h, key, size, 2);
    }
    push_child(L, 1, &h, 2);
    return 1;
}

static int node_tostring(lua_State *L);

static int node_newindex(lua_State *L)
{
    handle h;
    size_t size = 0;
    int64_t integer;
    const place *light = light_parts(L, 1, &integer);
    if (light != NULL)
        h.derived = light->derived;
    else
        check_handle(L, 1, &h);
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &size) : NULL;
    if (size != 2 || memcmp(key, "__", 2) != 0) {
        lua_settop(L, 2);
        check_handle(L, 1, &h);
        push_child(L, 1, &h, 2);
        lua_replace(L, 1);
        lua_settop(L, 1);
        node_tostring(L);
        return raise_argument(L, "a node is no table: to set the value of %s, assign to its field __",
                              lua_tostring(L, -1));
    }
    if (h.derived) {
        lua_settop(L, 3);
        push_class(L, 1);
        lua_getfield(L, -1, "set");
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 3);
        lua_call(L, 2, 0);
        return 0;
    }
    lua_settop(L, 3);
    lua_remove(L, 2);
    node_methods[METHOD_SET - 1].func(L);
    return 0;
}

/* The last subscript of `key`, on the stack. */
static const char *no_method(lua_State *L, const perilune_node *key)
{
    perilune_value name;
    perilune_node_subscript(key, key->depth, &name);
    if (name.type != PERILUNE_STRING)
        return "?";
    push_bytes(L, name.as.s.p, name.as.s.n);
    return lua_tostring(L, -1);
}

/* The method call n:name(...): its node is argument 1, n argument 2. */
static int call_method(lua_State *L, const handle *h)
{
    if (h->method != 0 && !h->derived) {
        lua_remove(L, 1);
        return node_methods[h->method - 1].func(L);
    }
    perilune_value name;
    if (perilune_node_subscript(h->key, h->key->depth, &name) != PERILUNE_OK || name.type != PERILUNE_STRING)
        return raise_argument(L, "a node is called with subscripts, or as a method: node:get()");
    handle self;
    if (!to_handle(L, 2, &self))
        return raise_argument(L, "a subscript must be a string or a number, not %s", described(L, 2));
    push_class(L, 2);
    push_bytes(L, name.as.s.p, name.as.s.n);
    lua_gettable(L, -2);
    if (lua_isnil(L, -1))
        return raise_argument(L, "nodes have no method '%s'", no_method(L, h->key));
    lua_replace(L, 1);
    lua_pop(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int node_call(lua_State *L)
{
    handle h;
    int type = lua_type(L, 2);
    node *n = full_node(L, 1);
    if (n != NULL && n->method != 0 && !n->derived && type == LUA_TUSERDATA) {
        const node *self = n->method == METHOD_GET ? full_node(L, 2) : NULL;
        if (self != NULL) {
            perilune_value value;
            int status;
            TRY(status, L, self->db, &self->key, perilune_get(self->db->live, &self->key, &value));
            lua_settop(L, 3);
            if (status == PERILUNE_OK)
                push_value(L, &value);
            return 1;
        }
        lua_remove(L, 1);
        return node_methods[n->method - 1].func(L);
    }
    n = n == NULL ? bare_method(L, 1) : NULL;
    if (n != NULL && type == LUA_TUSERDATA && to_handle(L, 2, &h)) {
        push_class(L, 2);
        lua_getfield(L, -1, node_methods[n->method - 1].name);
        lua_replace(L, 1);
        lua_pop(L, 1);
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        return lua_gettop(L);
    }
    check_handle(L, 1, &h);
    if (type == LUA_TUSERDATA || type == LUA_TLIGHTUSERDATA || type == TYPE_CDATA)
        return call_method(L, &h);
    int last = lua_gettop(L);
    lua_pushvalue(L, 1);
    for (int i = 2; i <= last; i++) {
        to_handle(L, -1, &h);
        push_child(L, lua_absindex(L, -1), &h, i);
        lua_replace(L, -2);
    }
    return 1;
}

static int node_eq(lua_State *L)
{
    handle a, b;
    lua_pushboolean(L, to_handle(L, 1, &a) && to_handle(L, 2, &b) && a.db == b.db && a.class_id == b.class_id
                           && perilune_node_compare(a.key, b.key) == 0
                           && a.key->flags == b.key->flags);
    return 1;
}

static int node_lt(lua_State *L)
{
    handle a, b;
    check_handle(L, 1, &a);
    check_handle(L, 2, &b);
    lua_pushboolean(L, perilune_node_compare(a.key, b.key) < 0);
    return 1;
}

static int node_le(lua_State *L)
{
    handle a, b;
    check_handle(L, 1, &a);
    check_handle(L, 2, &b);
    lua_pushboolean(L, perilune_node_compare(a.key, b.key) <= 0);
    return 1;
}

/* perilune.compare(a, b): -1, 0 or 1, their order in the tree; for any two nodes on every Lua. */
static int compare(lua_State *L)
{
    handle a, b;
    lua_settop(L, 2);
    check_handle(L, 1, &a);
    check_handle(L, 2, &b);
    lua_pushinteger(L, perilune_node_compare(a.key, b.key));
    return 1;
}

static int node_tostring(lua_State *L)
{
    handle h;
    block b;
    size_t size = 0;
    char *text = (char *)&b;
    check_handle(L, 1, &h);
    int status = perilune_node_text(h.key, text, sizeof b, &size);
    if (status == PERILUNE_BUFFER_TOO_SMALL) {
        text = new_userdata(L, size);
        status = perilune_node_text(h.key, text, size, &size);
    }
    if (status != PERILUNE_OK)
        return raise_thread(L, status);
    lua_pushlstring(L, text, size);
    return 1;
}

static int node_pairs(lua_State *L)
{
    return node_methods[METHOD_PAIRS - 1].func(L);
}

const luaL_Reg node_metamethods[] = {
    {"__index", node_index}, {"__newindex", node_newindex}, {"__call", node_call}, {"__eq", node_eq},
    {"__lt", node_lt},       {"__le", node_le},             {"__tostring", node_tostring}, {"__pairs", node_pairs},
    {NULL, NULL}};

/* Shows the class on the top of the stack to LuaJIT's part. */
static void call_hook(lua_State *L, const state *s)
{
    if (s->class_hook == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->class_hook);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 0);
}

/* A class is a table of functions for the program to change. What must stay, its number and the database that
 * its nodes point into, is in its metatable, which is protected. */
void push_new_class(lua_State *L, database *db, int parent, int database_at)
{
    state *s = db->state;
    if (s->class_count >= 65535)
        raise_argument(L, "too many classes of nodes: make them once, not in a loop");
    parent = parent == 0 ? 0 : lua_absindex(L, parent);
    lua_createtable(L, 0, 64);
    lua_createtable(L, 3, 2);
    lua_pushinteger(L, ++s->class_count);
    lua_rawseti(L, -2, CLASS_ID);
    lua_pushboolean(L, parent != 0);
    lua_rawseti(L, -2, CLASS_DERIVED);
    if (parent != 0)
        push_class_database(L, parent);
    else
        lua_pushvalue(L, database_at);
    lua_rawseti(L, -2, CLASS_DATABASE);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    if (parent != 0) {
        lua_pushvalue(L, parent);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, node_metamethods, UPVALUES);
    lua_pushliteral(L, "perilune.node");
    lua_setfield(L, -2, "__name");
    if (parent == 0) {
        for (int i = 1; i <= UPVALUES; i++)
            lua_pushvalue(L, lua_upvalueindex(i));
        set_functions(L, node_methods, UPVALUES);
        call_hook(L, s);
        return;
    }
    lua_pushvalue(L, parent);
    lua_setfield(L, -2, "__superclass");
    call_hook(L, s);
}

/* The function that an inherited class makes nodes with: upvalue 5 is the class. */
static int derived_node(lua_State *L)
{
    int class = lua_upvalueindex(UPVALUES + 1);
    database *db = push_class_database(L, class);
    lua_pop(L, 1);
    handle h;
    if (lua_type(L, 1) != LUA_TSTRING && to_handle(L, 1, &h)) {
        int last = lua_gettop(L);
        push_node(L, h.db, class, h.key);
        descend(L, 2, last);
        return 1;
    }
    lua_pushvalue(L, class);
    lua_insert(L, 1);
    push_named(L, db, 1, 2, 3);
    return 1;
}

/* Pushes the class that the function at `index` makes nodes of; 0 if it is none of inherit's. */
int push_class_made(lua_State *L, int index)
{
    return lua_tocfunction(L, index) == derived_node && lua_getupvalue(L, index, UPVALUES + 1) != NULL;
}

/* perilune.inherit(node_function): new_function, class, superclass. */
static int inherit(lua_State *L)
{
    handle h;
    if (!lua_isfunction(L, 1))
        return raise_argument(L, "inherit takes the function that makes nodes, as perilune.node, not %s",
                              described(L, 1));
    lua_settop(L, 1);
    lua_pushliteral(L, "inherit");
    lua_call(L, 1, 1);
    if (!to_handle(L, 1, &h))
        return raise_argument(L, "inherit takes a function that makes nodes; this one made %s", described(L, 1));
    push_class(L, 1);
    push_new_class(L, h.db, 2, 0);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushvalue(L, 3);
    lua_pushcclosure(L, derived_node, UPVALUES + 1);
    lua_insert(L, 2);
    lua_insert(L, 3);
    return 3;
}

/* perilune.isnode(x) */
static int isnode(lua_State *L)
{
    handle h;
    lua_settop(L, 1);
    lua_pushboolean(L, to_handle(L, 1, &h));
    return 1;
}

int open_nodes(lua_State *L)
{
    const luaL_Reg functions[] = {{"inherit", inherit}, {"isnode", isnode}, {"compare", compare}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    return 0;
}

/*
 * The C functions behind the objects of yottadb.node: making one, its child, parent and parts, comparison, n.name
 * and n(...).
 */
#include "yottadb_nodes.h"

#include "values.h"
#include "yottadb_address.h"
#include "yottadb_data.h"
#include "yottadb_errors.h"

/* create(class|nil, varname|node, ...): a node. */
static int create(lua_State *L)
{
    address at;
    int last = lua_gettop(L);
    resolve(L, 2, last, &at);
    push_address(L, &at, lua_istable(L, 1) ? 1 : 0);
    return 1;
}

static const address_node *check_node(lua_State *L)
{
    const address_node *node = to_address_node(L, 1);
    if (node == NULL)
        luaL_error(L, "bad argument #1 (node expected, got %s)", luaL_typename(L, 1));
    return node;
}

/* Pushes the child of the node at 1, with the same metatable. */
static int push_appended(lua_State *L, int index)
{
    address at;
    perilune_value sub;
    const address_node *node = check_node(L);
    from_node(node, &at);
    at.db = NULL;
    if (node->key.depth >= MAX_SUBS)
        return luaL_error(L, "Cannot append to cachearray: %d would exceed maximum number of subscripts (%d)",
                          MAX_SUBS + 1, MAX_SUBS);
    int type = lua_type(L, index);
    if (type != LUA_TSTRING && type != LUA_TNUMBER)
        return luaL_error(L, "Cannot append subscript to cachearray: string/number expected at parameter #%d (got %s)",
                          index, luaL_typename(L, index));
    to_sub(L, index, "append", index, &sub);
    extend_address(L, &at, &node->key, &sub, 1);
    int with_class = lua_getmetatable(L, 1);
    push_address(L, &at, with_class ? lua_gettop(L) : 0);
    return 1;
}

/* append(node, subscript) */
static int append(lua_State *L)
{
    return push_appended(L, 2);
}

/* parent(node): the node without its last subscript; itself if it has none. */
static int parent(lua_State *L)
{
    address at;
    const address_node *node = check_node(L);
    size_t size;
    from_node(node, &at);
    if (node->key.depth > 0) {
        uint64_t *block = new_userdata(L, PERILUNE_NODE_SIZE(&node->key));
        int status = perilune_node_ancestor(block, PERILUNE_NODE_SIZE(&node->key), &node->key, node->key.depth - 1u, &size);
        if (status != PERILUNE_OK)
            return raise_perilune(L, NULL, status);
        at.key = (perilune_node *)block;
    }
    int with_class = lua_getmetatable(L, 1);
    push_address(L, &at, with_class ? lua_gettop(L) : 0);
    return 1;
}

static void push_name(lua_State *L, const address_node *node)
{
    perilune_value name;
    if (node->kind == KIND_ISV || node->kind == KIND_BAD)
        lua_pushlstring(L, (const char *)&node->key + PERILUNE_NODE_SIZE(&node->key), node->name_size);
    else if (perilune_node_name(&node->key, &name) == PERILUNE_OK)
        push_text(L, &name);
    else
        lua_pushliteral(L, "");
}

/* Pushes subscript `index`, 0 for the name; nil beyond the last. */
static int push_part(lua_State *L, const address_node *node, int64_t index)
{
    perilune_value sub;
    if (index == 0)
        push_name(L, node);
    else if (index > 0 && index <= node->key.depth && perilune_node_subscript(&node->key, (uint32_t)index, &sub) == PERILUNE_OK)
        push_text(L, &sub);
    else
        lua_pushnil(L);
    return 1;
}

/* part(node, index) */
static int part(lua_State *L)
{
    return push_part(L, check_node(L), (int64_t)luaL_checknumber(L, 2));
}

static int depth(lua_State *L)
{
    lua_pushinteger(L, check_node(L)->key.depth);
    return 1;
}

/* isaddress(x): whether `x` is a node or a key. */
static int isaddress(lua_State *L)
{
    lua_pushboolean(L, to_address_node(L, 1) != NULL);
    return 1;
}

/* setclass(node, class): gives a node that nobody else has a metatable. */
static int setclass(lua_State *L)
{
    check_node(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* __eq: the same variable and subscripts. */
static int equal(lua_State *L)
{
    const address_node *a = to_address_node(L, 1), *b = to_address_node(L, 2);
    int same = a != NULL && b != NULL && a->kind == b->kind && a->key.key_size == b->key.key_size
               && memcmp(PERILUNE_NODE_KEY(&a->key), PERILUNE_NODE_KEY(&b->key), a->key.key_size) == 0;
    if (same && (a->kind == KIND_ISV || a->kind == KIND_BAD)) {
        push_name(L, a);
        push_name(L, b);
        same = lua_rawequal(L, -1, -2);
    }
    lua_pushboolean(L, same);
    return 1;
}

/* __index of nodes: `__` is the value, `__name` a member of the class, else the child. */
static int index_node(lua_State *L)
{
    size_t size = 0;
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &size) : NULL;
    if (key == NULL || size < 2 || key[0] != '_' || key[1] != '_')
        return push_appended(L, 2);
    check_node(L);
    if (!lua_getmetatable(L, 1))
        return 0;
    if (size > 2) {
        lua_pushlstring(L, key + 2, size - 2);
        lua_rawget(L, -2);
        return 1;
    }
    lua_pushliteral(L, "get");
    lua_rawget(L, -2);
    if (lua_tocfunction(L, -1) == value_or_default) {
        lua_settop(L, 1);
        return value_or_default(L);
    }
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/* __newindex of nodes: `__` is the value. */
static int assign_node(lua_State *L)
{
    size_t size = 0;
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &size) : NULL;
    check_node(L);
    if (key == NULL || size != 2 || key[0] != '_' || key[1] != '_') {
        push_appended(L, 2);
        lua_getfield(L, HOOKS_INDEX, "tostring");
        lua_insert(L, -2);
        lua_call(L, 1, 1);
        const char *text = lua_tostring(L, -1);
        return luaL_error(L, "Tried to set node object %s. Did you mean to set %s.__ instead?", text, text);
    }
    if (!lua_getmetatable(L, 1))
        return 0;
    lua_remove(L, 2);
    lua_pushliteral(L, "set");
    lua_rawget(L, -2);
    if (lua_tocfunction(L, -1) == assign)
        return assign(L), 0;
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 0);
    return 0;
}

/* Pushes the member `name` (at the top) of the class at the top - 1 or of the classes it is made from. */
static int find_member(lua_State *L, int class, int name)
{
    lua_pushvalue(L, class);
    for (int i = 0; i < 100 && lua_istable(L, -1); i++) {
        lua_pushvalue(L, name);
        lua_rawget(L, -2);
        if (!lua_isnil(L, -1))
            return 1;
        lua_pop(L, 1);
        lua_pushliteral(L, "__superclass");
        lua_rawget(L, -2);
        lua_remove(L, -2);
    }
    return 0;
}

/* __call of nodes: n:method(...) on the node that `n.method` named, or n(sub, ...). */
static int call_node(lua_State *L)
{
    const address_node *self = check_node(L);
    int last = lua_gettop(L);
    if (last < 2 || to_address_node(L, 2) == NULL) {
        address at;
        resolve(L, 1, last, &at);
        int with_class = lua_getmetatable(L, 1);
        push_address(L, &at, with_class ? lua_gettop(L) : 0);
        return 1;
    }
    push_part(L, self, self->key.depth);
    int name = lua_gettop(L);
    if (!lua_getmetatable(L, 2) || !find_member(L, name + 1, name)) {
        lua_settop(L, name);
        lua_getfield(L, HOOKS_INDEX, "tostring");
        lua_pushvalue(L, 2);
        lua_call(L, 1, 1);
        return luaL_error(L, "could not find node method '%s' on node %s", lua_tostring(L, name), lua_tostring(L, -1));
    }
    lua_replace(L, 1);
    lua_settop(L, last);
    lua_call(L, last - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* numbertext(x): a number as M writes it. */
static int numbertext(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TNUMBER);
    push_number_text(L, 1, "a number");
    return 1;
}

const luaL_Reg address_functions[] = {
    {"create", create},       {"append", append},         {"parent", parent},     {"part", part},
    {"depth", depth},         {"isaddress", isaddress},   {"setclass", setclass}, {"equal", equal},
    {"index_node", index_node}, {"assign_node", assign_node}, {"call_node", call_node}, {"numbertext", numbertext}, {NULL, NULL}};

/*
 * Addresses: which node the arguments of a call mean, and nodes of yottadb.node, which hold their key encoded.
 *
 * Example: ("^a", {1, "x"}), ("^a", 1, "x") and (node, "x") for the node ^a(1) are one address.
 *
 * Invariants
 * - A number becomes, on every Lua, the text that M writes for it; that text is the subscript.
 * - A name that is not good for a variable is encoded under another one, so that a node of it can be made, printed
 *   and compared; only a call with it raises the error.
 * - Strings that the values point to stay on the stack until the key is built.
 */
#include "yottadb_address.h"

#include "values.h"
#include "yottadb_errors.h"

#include <math.h>

static const char node_magic;

int kind_of(const char *name, size_t size, int *code)
{
    size_t first = size > 0 && name[0] == '^';
    *code = CODE_INVVARNAME;
    if (size > 0 && name[0] == '$')
        return KIND_ISV;
    if (size == first)
        return KIND_BAD;
    for (size_t i = first; i < size; i++) {
        char c = name[i];
        int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(i == first && c == '%') && !(i > first && c >= '0' && c <= '9'))
            return KIND_BAD;
    }
    if (size - first > MAX_IDENT) {
        *code = CODE_VARNAME2LONG;
        return KIND_BAD;
    }
    *code = 0;
    return first ? KIND_GLOBAL : KIND_LOCAL;
}

const address_node *to_address_node(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TUSERDATA || lua_rawlen(L, index) < sizeof(address_node))
        return NULL;
    const address_node *node = lua_touserdata(L, index);
    return node->magic == &node_magic ? node : NULL;
}

static void push_integer_text(lua_State *L, int64_t integer)
{
    char text[24], *at = text + sizeof text;
    uint64_t rest = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (integer < 0)
        *--at = '-';
    lua_pushlstring(L, at, (size_t)(text + sizeof text - at));
}

void push_number_text(lua_State *L, int index, const char *what)
{
    char text[40], canonical[128];
    int64_t integer = 0;
    size_t size = 0;
    if (integral(L, index, &integer)) {
        push_integer_text(L, integer);
        return;
    }
    double number = lua_tonumber(L, index);
    if (!isfinite(number))
        luaL_error(L, "%s must be a finite number (string/number expected, got %s)", what,
                   isnan(number) ? "NaN" : "infinity");
    shortest_text(number, text);
    if (perilune_number_canonical(text, strlen(text), canonical, sizeof canonical, &size) != PERILUNE_OK)
        raise_code(L, CODE_NUMOFLOW);
    lua_pushlstring(L, canonical, size);
}

void push_text(lua_State *L, const perilune_value *value)
{
    char text[512];
    size_t size = 0;
    switch (value->type) {
    case PERILUNE_ABSENT:
        lua_pushnil(L);
        return;
    case PERILUNE_INT:
        push_integer_text(L, value->as.i);
        return;
    case PERILUNE_STRING:
    case PERILUNE_DECIMAL:
        push_bytes(L, value->as.s.p, value->as.s.n);
        return;
    default:
        if (perilune_value_text(value, text, sizeof text, &size) != PERILUNE_OK)
            size = 0;
        lua_pushlstring(L, text, size);
    }
}

static size_t length_of(lua_State *L, int index)
{
#if LUA_VERSION_NUM >= 502
    return (size_t)luaL_len(L, index);
#else
    return lua_rawlen(L, index);
#endif
}

/* Reads the subscript at `index`; its text stays on the stack. */
void to_sub(lua_State *L, int index, const char *what, int number, perilune_value *sub)
{
    size_t size;
    int64_t integer;
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        if (integral(L, index, &integer) && integer < INT64_C(1000000000000000) && integer > -INT64_C(1000000000000000)) {
            *sub = perilune_int(integer);
            return;
        }
        push_number_text(L, index, "a subscript");
        index = -1;
        break;
    case LUA_TSTRING:
        break;
    default:
        luaL_error(L, "Cannot %s: string/number expected in parameter #%d (got %s)", what, number,
                   luaL_typename(L, index));
    }
    const char *text = lua_tolstring(L, index, &size);
    if (size > MAX_STR)
        raise_code(L, CODE_INVSTRLEN);
    *sub = perilune_string(text, size);
}

static size_t to_subs(lua_State *L, int first, int last, size_t depth, perilune_value *subs)
{
    size_t count = 0, listed = 0;
    int list = first <= last && lua_istable(L, first);
    if (list)
        listed = length_of(L, first);
    size_t total = depth + listed + (size_t)(last - first + 1 - list);
    if (listed > (size_t)INT32_MAX || total > MAX_SUBS)
        luaL_error(L, "Cannot generate cachearray: maximum %d number of subscripts exceeded (got %d)", MAX_SUBS,
                   listed > (size_t)INT32_MAX ? INT32_MAX : (int)total);
    luaL_checkstack(L, 2 * MAX_SUBS + 8, "subscripts");
    for (size_t i = 1; i <= listed; i++) {
        lua_rawgeti(L, first, (int)i);
        to_sub(L, lua_gettop(L), "generate cachearray", (int)i + 1, &subs[count++]);
    }
    for (int i = first + list; i <= last; i++)
        to_sub(L, i, "generate cachearray", i - first + 2, &subs[count++]);
    return count;
}

/* The address `of` with `count` subscripts more, in its block or in a userdata that stays on the stack. */
void extend_address(lua_State *L, address *at, const perilune_node *parent, const perilune_value *subs, size_t count)
{
    size_t size = 0;
    int status = perilune_node_child(at->block, sizeof at->block, parent, subs, count, &size);
    at->key = (const perilune_node *)at->block;
    if (status == PERILUNE_BUFFER_TOO_SMALL) {
        void *block = new_userdata(L, size);
        status = perilune_node_child(block, size, parent, subs, count, &size);
        at->key = block;
    }
    if (status != PERILUNE_OK)
        raise_perilune(L, at, status);
}

void from_node(const address_node *node, address *at)
{
    at->kind = node->kind;
    at->code = node->code;
    at->key = &node->key;
    at->name = (const char *)&node->key + PERILUNE_NODE_SIZE(&node->key);
    at->name_size = node->name_size;
}

void resolve(lua_State *L, int first, int last, address *at)
{
    uint64_t root[48];
    perilune_value subs[MAX_SUBS];
    const address_node *node = to_address_node(L, first);
    at->db = NULL;
    if (node != NULL) {
        from_node(node, at);
        if (last <= first)
            return;
    } else if (last >= first && lua_type(L, first) == LUA_TSTRING) {
        at->name = lua_tolstring(L, first, &at->name_size);
        at->kind = kind_of(at->name, at->name_size, &at->code);
        int variable = at->kind == KIND_GLOBAL || at->kind == KIND_LOCAL;
        int status = perilune_node_root(root, sizeof root, variable ? at->name : "v", variable ? at->name_size : 1, NULL);
        if (status != PERILUNE_OK)
            raise_perilune(L, at, status);
        at->key = (const perilune_node *)root;
    } else {
        luaL_error(L, "Cannot generate cachearray: string expected at parameter #%d (varname) (got %s)", first,
                   last >= first ? luaL_typename(L, first) : "no value");
    }
    size_t count = to_subs(L, first + 1, last, at->key->depth, subs);
    extend_address(L, at, at->key, subs, count);
}

void push_address(lua_State *L, const address *at, int class)
{
    int named = at->kind == KIND_ISV || at->kind == KIND_BAD;
    size_t size = PERILUNE_NODE_SIZE(at->key), name_size = named ? at->name_size : 0;
    address_node *node = new_userdata(L, offsetof(address_node, key) + size + name_size);
    node->magic = &node_magic;
    node->kind = at->kind;
    node->code = at->code;
    node->name_size = name_size;
    memcpy(&node->key, at->key, size);
    if (named)
        memcpy((char *)&node->key + size, at->name, name_size);
    if (class != 0) {
        lua_pushvalue(L, class);
        lua_setmetatable(L, -2);
    }
}

/*
 * Nodes that fit in a word: Step[n] costs no memory.
 *
 * A child with an integer subscript of a name, as ^step(27), and such a child's method node
 * (Step[27].get, made by Step[27]:get()), is a light userdata that carries the number of the
 * name's place, the integer and the method's number. Such a node is a value: it is copied, compared by
 * Lua itself, never collected and never stands for another node.
 *
 *     bits 63-56  0xb5, which no address of a program has
 *          55-44  place: a name with a class in a database, 1 to 4095
 *          43-38  method, 0: none
 *          37-0   the integer, signed
 *
 * Invariants
 * - Which form a node takes depends on the node and its class alone, so that equal nodes are equal
 *   words; a place gets its number when its name is made, or none ever.
 * - A place is not given to another name, not even when its database is closed.
 * - All light userdata of a Lua state share one metatable; those that are not ours keep their text
 *   and raise what they raised before.
 *
 * LuaJIT's light userdata have 47 bits, so there its FFI does this (perilune/ffi.lua).
 */
#include "light.h"

#include "errors.h"
#include "values.h"

#include <stdlib.h>

#define LIGHT_TAG UINT64_C(0xb5)
#define INTEGER_BITS 38
#define INTEGER_LIMIT (INT64_C(1) << (INTEGER_BITS - 1))

static uint64_t word(uint32_t number, int method, int64_t integer)
{
    return LIGHT_TAG << 56 | (uint64_t)number << 44 | (uint64_t)method << INTEGER_BITS
           | ((uint64_t)integer & ((UINT64_C(1) << INTEGER_BITS) - 1));
}

static int64_t integer_of(uint64_t bits)
{
    return (int64_t)(bits << (64 - INTEGER_BITS)) >> (64 - INTEGER_BITS);
}

/* The place that a light userdata means, or NULL if it is not a node. */
static const place *place_at(const state *s, uint64_t bits)
{
    unsigned number = (unsigned)(bits >> 44) & (PLACES_MAX - 1);
    if (bits >> 56 != LIGHT_TAG || number == 0 || (int)number > s->place_count)
        return NULL;
    return &s->places[number];
}

static const char *method_text(int method)
{
    return node_methods[method - 1].name;
}

/* Reads the light userdata at `index` as a node: 0 if it is none. */
int light_of(lua_State *L, int index, handle *out)
{
    uint64_t bits = (uint64_t)(uintptr_t)lua_touserdata(L, index);
    const place *at = place_at(state_of(L), bits);
    if (at == NULL)
        return 0;
    if (at->db == NULL)
        raise_argument(L, "the node's database was closed");
    out->db = at->db;
    out->class_id = at->class_id;
    out->derived = at->derived;
    out->method = (uint8_t)((bits >> INTEGER_BITS) & 63);
    out->place = 0;
    out->identity = bits;
    out->key = &out->block.head;
    size_t size;
    int status = perilune_node_child_int(&out->block, sizeof out->block, at->root, integer_of(bits), &size);
    if (status == PERILUNE_OK && out->method != 0) {
        uint64_t parent[64];
        const char *text = method_text(out->method);
        memcpy(parent, &out->block, size);
        status = perilune_node_child_str(&out->block, sizeof out->block, (perilune_node *)parent, text, strlen(text),
                                         &size);
    }
    if (status != PERILUNE_OK)
        raise_thread(L, status);
    return 1;
}

const place *light_parts(lua_State *L, int index, int64_t *subscript)
{
    if (lua_type(L, index) != LUA_TLIGHTUSERDATA)
        return NULL;
    uint64_t bits = (uint64_t)(uintptr_t)lua_touserdata(L, index);
    const place *at = place_at(state_of(L), bits);
    if (at == NULL || at->db == NULL || ((bits >> INTEGER_BITS) & 63) != 0)
        return NULL;
    *subscript = integer_of(bits);
    return at;
}

int push_light_integer(lua_State *L, const handle *of, int64_t subscript)
{
    if (of->place == 0 || of->db->state->forms != FORMS_LIGHT || subscript < -INTEGER_LIMIT || subscript >= INTEGER_LIMIT)
        return 0;
    lua_pushlightuserdata(L, (void *)(uintptr_t)word(of->place, 0, subscript));
    return 1;
}

int push_light_method(lua_State *L, int parent, const handle *of, int method)
{
    if (method == 0 || lua_type(L, parent) != LUA_TLIGHTUSERDATA || of->method != 0)
        return 0;
    uint64_t bits = (uint64_t)(uintptr_t)lua_touserdata(L, parent);
    lua_pushlightuserdata(L, (void *)(uintptr_t)(bits | (uint64_t)method << INTEGER_BITS));
    return 1;
}

/* Whether `key`, whose last subscript names `method`, would be light if its name has a place. */
int may_be_light(lua_State *L, const perilune_node *key, int method)
{
    perilune_value subscript;
    if (state_of(L)->forms != FORMS_LIGHT || key->depth > 2 || (key->depth == 2) != (method != 0))
        return 0;
    return perilune_node_subscript(key, 1, &subscript) == PERILUNE_OK && subscript.type == PERILUNE_INT
           && subscript.as.i >= -INTEGER_LIMIT && subscript.as.i < INTEGER_LIMIT;
}

int push_light_key(lua_State *L, uint32_t number, const perilune_node *key)
{
    perilune_value subscript;
    if (state_of(L)->forms != FORMS_LIGHT || number == 0 || key->depth < 1 || key->depth > 2)
        return 0;
    if (perilune_node_subscript(key, 1, &subscript) != PERILUNE_OK || subscript.type != PERILUNE_INT
        || subscript.as.i < -INTEGER_LIMIT || subscript.as.i >= INTEGER_LIMIT)
        return 0;
    int64_t integer = subscript.as.i;
    int method = 0;
    if (key->depth == 2) {
        if (perilune_node_subscript(key, 2, &subscript) != PERILUNE_OK || subscript.type != PERILUNE_STRING)
            return 0;
        push_bytes(L, subscript.as.s.p, subscript.as.s.n);
        lua_rawget(L, UPVALUE_METHODS);
        method = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
        if (method == 0)
            return 0;
    }
    lua_pushlightuserdata(L, (void *)(uintptr_t)word(number, method, integer));
    return 1;
}

/* The number of the place of `root`, given now if it has none yet; 0: its children are not light. */
uint32_t place_of(lua_State *L, database *db, int class, uint16_t class_id, int derived, const perilune_node *root)
{
    state *s = db->state;
    if (!s->forms)
        return 0;
    lua_pushlstring(L, (const char *)PERILUNE_NODE_KEY(root), root->key_size);
    lua_pushfstring(L, "%d %d ", (int)class_id, (int)root->flags);
    lua_insert(L, -2);
    lua_concat(L, 2);
    lua_pushvalue(L, -1);
    lua_rawget(L, UPVALUE_PLACES);
    uint32_t number = (uint32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (number == 0 && s->place_count < PLACES_MAX - 1) {
        perilune_node *copy = malloc(PERILUNE_NODE_SIZE(root));
        if (copy == NULL)
            luaL_error(L, "not enough memory");
        memcpy(copy, root, PERILUNE_NODE_SIZE(root));
        place *at = &s->places[s->place_count + 1];
        at->db = db;
        at->class_id = class_id;
        at->derived = (uint8_t)derived;
        at->root = copy;
        number = (uint32_t)++s->place_count;
        lua_pushvalue(L, class);
        lua_rawseti(L, UPVALUE_PLACES, (int)number);
        lua_pushinteger(L, (lua_Integer)number);
        lua_rawset(L, UPVALUE_PLACES);
        return number;
    }
    lua_pop(L, 1);
    return number;
}

void forget_places(lua_State *L, const database *db)
{
    state *s = db->state;
    for (int i = 1; i <= s->place_count; i++) {
        if (s->places[i].db == db) {
            s->places[i].db = NULL;
            free(s->places[i].root);
            s->places[i].root = NULL;
            lua_pushboolean(L, 0);
            lua_rawseti(L, UPVALUE_PLACES, i);
        }
    }
}

static int light_index(lua_State *L)
{
    uint64_t bits = (uint64_t)(uintptr_t)lua_touserdata(L, 1);
    const state *s = lua_touserdata(L, UPVALUE_STATE);
    const place *at = lua_type(L, 1) == LUA_TLIGHTUSERDATA ? place_at(s, bits) : NULL;
    size_t size;
    if (at == NULL)
        return luaL_error(L, "attempt to index a light userdata value");
    const char *text = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &size) : NULL;
    /* The value of ^name(integer) of the first class needs no node at all. */
    if (text != NULL && size == 2 && memcmp(text, "__", 2) == 0 && at->db != NULL && !at->derived
        && ((bits >> INTEGER_BITS) & 63) == 0) {
        perilune_value value;
        int status;
        CALL(status, L, at->db, perilune_get_child_int(at->db->live, at->root, integer_of(bits), &value));
        if (!ANSWERED(status)) {
            handle h;
            light_of(L, 1, &h);
            return raise_status(L, at->db, status, h.key);
        }
        push_value(L, &value);
        return 1;
    }
    return node_metamethods[0].func(L);
}

static int light_tostring(lua_State *L)
{
    const state *s = lua_touserdata(L, UPVALUE_STATE);
    if (lua_type(L, 1) == LUA_TLIGHTUSERDATA && place_at(s, (uint64_t)(uintptr_t)lua_touserdata(L, 1)) == NULL) {
        lua_pushfstring(L, "userdata: %p", lua_touserdata(L, 1));
        return 1;
    }
    lua_getfield(L, UPVALUE_METHODS, "__tostring");
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* Gives all light userdata of the state the metamethods of nodes. */
int open_light(lua_State *L)
{
    state *s = lua_touserdata(L, UPVALUE_STATE);
    /* Asked at run time: LuaJIT loads modules that were compiled for Lua 5.1. */
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "jit");
    s->forms = lua_istable(L, -1) ? FORMS_FFI : sizeof(void *) == 8 ? FORMS_LIGHT : FORMS_FULL;
    lua_pop(L, 2);
    if (s->forms != FORMS_LIGHT)
        return 0;
    lua_pushlightuserdata(L, NULL);
    if (lua_getmetatable(L, -1)) {
        /* Somebody else uses it: nodes are full userdata then. */
        s->forms = FORMS_FULL;
        lua_pop(L, 2);
        return 0;
    }
    lua_createtable(L, 0, 16);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, node_metamethods, UPVALUES);
    lua_getfield(L, -1, "__tostring");
    lua_setfield(L, UPVALUE_METHODS, "__tostring");
    const luaL_Reg own[] = {{"__index", light_index}, {"__tostring", light_tostring}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, own, UPVALUES);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    return 0;
}

/*
 * The cache of children, so that constant subscripts that come again and again (n.name.first) allocate nothing.
 *
 * n.name builds a node: a userdata with an encoded key. The next n.name of the same n gets it from here. For a
 * string the cache is asked by the serial number of n and the address of the string "name", which Lua has only
 * once; for an integer by the serial number and the integer.
 *
 * Invariants
 * - A hit is exact: a serial number is given once in a Lua state (a light node has its word instead), and the slot
 *   keeps its string alive, so that no other gets the address.
 * - What a slot keeps lies in a Lua table, at STRING_CHILD, STRING_TEXT and INTEGER_CHILD. It has a fixed number
 *   of places, and a node of more than KEEP_MAX bytes is not kept, so that the memory is bounded.
 * - Nodes never change, so that nobody can tell whether a node is given out twice.
 */
#include "cache.h"

enum { KEEP_MAX = 512 };

/* 2 ways: two constants that meet in a set do not push each other out. */
static inline unsigned string_set(uint64_t parent, const char *string)
{
    uint64_t mixed = parent * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= ((uint64_t)(uintptr_t)string >> 3) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (unsigned)(mixed >> 32) % (STRING_SLOTS / 2) * 2;
}

static inline unsigned integer_slot_of(uint64_t parent, int64_t subscript)
{
    uint64_t mixed = parent * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)subscript;
    return (unsigned)((mixed ^ mixed >> 32) % INTEGER_SLOTS);
}

int cached_string(lua_State *L, const handle *of, const char *string)
{
    const state *s = of->db->state;
    unsigned set = string_set(of->identity, string);
    for (unsigned i = set; i < set + 2; i++) {
        if (s->strings[i].string == string && s->strings[i].parent == of->identity) {
            lua_rawgeti(L, UPVALUE_CACHE, STRING_CHILD(i));
            return 1;
        }
    }
    return 0;
}

/* Keeps the child on the top of the stack, whose subscript is the string at `text`. */
void keep_string(lua_State *L, const handle *of, int text, const node *child)
{
    state *s = of->db->state;
    size_t size;
    const char *string = lua_tolstring(L, text, &size);
    /* NB: longer strings are not interned: their address is not theirs alone. */
    if (size > TEXT_MAX || child->key.key_size > KEEP_MAX)
        return;
    text = lua_absindex(L, text);
    unsigned set = string_set(of->identity, string);
    /* The older of the two goes: the newer moves to the second place. */
    if (s->strings[set].child != NULL) {
        lua_rawgeti(L, UPVALUE_CACHE, STRING_CHILD(set));
        lua_rawseti(L, UPVALUE_CACHE, STRING_CHILD(set + 1));
        lua_rawgeti(L, UPVALUE_CACHE, STRING_TEXT(set));
        lua_rawseti(L, UPVALUE_CACHE, STRING_TEXT(set + 1));
        s->strings[set + 1] = s->strings[set];
    }
    lua_pushvalue(L, -1);
    lua_rawseti(L, UPVALUE_CACHE, STRING_CHILD(set));
    lua_pushvalue(L, text);
    lua_rawseti(L, UPVALUE_CACHE, STRING_TEXT(set));
    s->strings[set].parent = of->identity;
    s->strings[set].string = string;
    s->strings[set].child = child;
}

int cached_integer(lua_State *L, const handle *of, int64_t subscript)
{
    unsigned i = integer_slot_of(of->identity, subscript);
    const integer_slot *slot = &of->db->state->integers[i];
    if (slot->subscript != subscript || slot->parent != of->identity || slot->child == NULL)
        return 0;
    lua_rawgeti(L, UPVALUE_CACHE, INTEGER_CHILD(i));
    return 1;
}

void keep_integer(lua_State *L, const handle *of, int64_t subscript, const node *child)
{
    if (child->key.key_size > KEEP_MAX)
        return;
    unsigned i = integer_slot_of(of->identity, subscript);
    integer_slot *slot = &of->db->state->integers[i];
    lua_pushvalue(L, -1);
    lua_rawseti(L, UPVALUE_CACHE, INTEGER_CHILD(i));
    slot->parent = of->identity;
    slot->subscript = subscript;
    slot->child = child;
}

static void empty(lua_State *L, int index)
{
    lua_pushboolean(L, 0);
    lua_rawseti(L, UPVALUE_CACHE, index);
}

void forget_cached(lua_State *L, const database *db)
{
    state *s = db->state;
    for (int i = 0; i < STRING_SLOTS; i++) {
        if (s->strings[i].child != NULL && s->strings[i].child->db == db) {
            memset(&s->strings[i], 0, sizeof s->strings[i]);
            empty(L, STRING_CHILD(i));
            empty(L, STRING_TEXT(i));
        }
    }
    for (int i = 0; i < INTEGER_SLOTS; i++) {
        if (s->integers[i].child != NULL && s->integers[i].child->db == db) {
            memset(&s->integers[i], 0, sizeof s->integers[i]);
            empty(L, INTEGER_CHILD(i));
        }
    }
}

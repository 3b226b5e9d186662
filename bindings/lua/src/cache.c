/*
 * The cache of children, so that repeated constant subscripts (n.name.first) allocate nothing.
 *
 * Invariants
 * - A slot is found by addresses (of the parent and of Lua's interned string), which are only a
 *   guess: what it holds is given out after its content was compared, so an address that was used
 *   again for something else misses and never gives another node.
 * - Slot i's child lies at index i of a Lua table, which keeps it alive; the table has a fixed number
 *   of places, so what it keeps is bounded (a node of more than KEEP_MAX bytes is not kept).
 * - Nodes never change: giving one out twice cannot be noticed.
 */
#include "module.h"

enum { KEEP_MAX = 512 };

/* 2 ways: two constants that meet in a set do not push each other out. */
static unsigned string_set(uintptr_t parent, const char *string)
{
    uint64_t mixed = ((uint64_t)parent >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= ((uint64_t)(uintptr_t)string >> 3) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (unsigned)(mixed >> 32) % (STRING_SLOTS / 2) * 2;
}

static unsigned integer_slot_of(uintptr_t parent, int64_t subscript)
{
    uint64_t mixed = ((uint64_t)parent >> 3) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)subscript;
    return (unsigned)((mixed ^ mixed >> 32) % INTEGER_SLOTS);
}

/* Whether `child` was made from the node `of`. */
static int is_child_of(const node *child, const handle *of)
{
    if (child->class_id != of->class_id)
        return 0;
    if (of->key == NULL)
        return child->key.depth == 0;
    return child->key.parent_size == of->key->key_size && child->key.flags == of->key->flags
           && memcmp(PERILUNE_NODE_KEY(&child->key), PERILUNE_NODE_KEY(of->key), of->key->key_size) == 0;
}

int cached_string(lua_State *L, const handle *of, const char *string, size_t size)
{
    state *s = of->db->state;
    unsigned set = string_set(of->identity, string);
    for (unsigned i = set; i < set + 2; i++) {
        const string_slot *slot = &s->strings[i];
        if (slot->string == string && slot->parent == of->identity && slot->size == size
            && memcmp(slot->text, string, size) == 0 && is_child_of(slot->child, of)) {
            lua_rawgeti(L, UPVALUE_CACHE, (int)i + 1);
            return 1;
        }
    }
    return 0;
}

/* Keeps the child on the top of the stack. */
void keep_string(lua_State *L, const handle *of, const char *string, size_t size, const node *child)
{
    state *s = of->db->state;
    if (size > TEXT_MAX || child->key.key_size > KEEP_MAX)
        return;
    unsigned set = string_set(of->identity, string);
    /* The older of the two goes: the newer moves to the second place. */
    if (s->strings[set].child != NULL) {
        lua_rawgeti(L, UPVALUE_CACHE, (int)set + 1);
        lua_rawseti(L, UPVALUE_CACHE, (int)set + 2);
        s->strings[set + 1] = s->strings[set];
    }
    lua_pushvalue(L, -1);
    lua_rawseti(L, UPVALUE_CACHE, (int)set + 1);
    string_slot *slot = &s->strings[set];
    slot->parent = of->identity;
    slot->string = string;
    slot->child = child;
    slot->size = (uint32_t)size;
    memcpy(slot->text, string, size);
}

int cached_integer(lua_State *L, const handle *of, int64_t subscript)
{
    unsigned i = integer_slot_of(of->identity, subscript);
    const integer_slot *slot = &of->db->state->integers[i];
    if (slot->subscript != subscript || slot->parent != of->identity || slot->child == NULL
        || !is_child_of(slot->child, of))
        return 0;
    lua_rawgeti(L, UPVALUE_CACHE, STRING_SLOTS + (int)i + 1);
    return 1;
}

void keep_integer(lua_State *L, const handle *of, int64_t subscript, const node *child)
{
    if (child->key.key_size > KEEP_MAX)
        return;
    unsigned i = integer_slot_of(of->identity, subscript);
    integer_slot *slot = &of->db->state->integers[i];
    lua_pushvalue(L, -1);
    lua_rawseti(L, UPVALUE_CACHE, STRING_SLOTS + (int)i + 1);
    slot->parent = of->identity;
    slot->subscript = subscript;
    slot->child = child;
}

void forget_cached(lua_State *L, const database *db)
{
    state *s = db->state;
    for (int i = 0; i < STRING_SLOTS; i++) {
        if (s->strings[i].child != NULL && s->strings[i].child->db == db) {
            memset(&s->strings[i], 0, sizeof s->strings[i]);
            lua_pushboolean(L, 0);
            lua_rawseti(L, UPVALUE_CACHE, i + 1);
        }
    }
    for (int i = 0; i < INTEGER_SLOTS; i++) {
        if (s->integers[i].child != NULL && s->integers[i].child->db == db) {
            memset(&s->integers[i], 0, sizeof s->integers[i]);
            lua_pushboolean(L, 0);
            lua_rawseti(L, UPVALUE_CACHE, STRING_SLOTS + i + 1);
        }
    }
}

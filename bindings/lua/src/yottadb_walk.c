/*
 * Steps through the tree: $ORDER and $QUERY.
 *
 * Invariants
 * - Each step is a search of its own and sees the tree as it is then.
 * - Names that M cannot have are left out, as ^my_name or ^a.b.
 */
#include "yottadb_walk.h"

#include "yottadb_address.h"
#include "yottadb_data.h"
#include "yottadb_errors.h"

enum { FORWARD = 0, BACKWARD = 1 };

/* The next name after that of `at`, or nil. */
static int name_step(lua_State *L, address *at, int backward)
{
    perilune_value name;
    int status, code;
    status = perilune_node_name(at->key, &name);
    if (status != PERILUNE_OK)
        return raise_perilune(L, at, status);
    push_text(L, &name);
    for (;;) {
        size_t size;
        const char *text = lua_tolstring(L, -1, &size);
        if (backward)
            ON(status, L, at, perilune_name_previous(session, text, size, &name));
        else
            ON(status, L, at, perilune_name_next(session, text, size, &name));
        if (status != PERILUNE_OK)
            return 0;
        push_text(L, &name);
        lua_remove(L, -2);
        text = lua_tolstring(L, -1, &size);
        if (kind_of(text, size, &code) == at->kind)
            return 1;
    }
}

static int subscript_step(lua_State *L, int backward)
{
    address at;
    perilune_value sub;
    int status;
    resolve(L, 1, lua_gettop(L), &at);
    session_for(L, &at);
    if (at.key->depth == 0) {
        if (name_step(L, &at, backward) == 0)
            lua_pushnil(L);
        return 1;
    }
    if (backward)
        ON(status, L, &at, perilune_previous(session, at.key, &sub));
    else
        ON(status, L, &at, perilune_next(session, at.key, &sub));
    if (status != PERILUNE_OK)
        lua_pushnil(L);
    else
        push_text(L, &sub);
    return 1;
}

static int subscript_next(lua_State *L)
{
    return subscript_step(L, FORWARD);
}

static int subscript_previous(lua_State *L)
{
    return subscript_step(L, BACKWARD);
}

static int node_step(lua_State *L, int backward)
{
    address at;
    uint64_t block[256];
    void *buffer = block;
    size_t capacity = sizeof block, size = 0;
    perilune_value sub;
    int status;
    resolve(L, 1, lua_gettop(L), &at);
    for (;;) {
        perilune_session *session = session_for(L, &at);
        status = backward ? perilune_previous_valued(session, at.key, buffer, capacity, &size, NULL)
                          : perilune_next_valued(session, at.key, buffer, capacity, &size, NULL);
        if (status == PERILUNE_BUFFER_TOO_SMALL) {
            capacity = size;
            buffer = new_userdata(L, capacity);
        } else if (status != PERILUNE_FORKED || !after_fork(L, &at)) {
            break;
        }
    }
    if (!ANSWERED(status))
        return raise_perilune(L, &at, status);
    if (status != PERILUNE_OK) {
        lua_pushnil(L);
        return 1;
    }
    const perilune_node *found = buffer;
    lua_createtable(L, found->depth, 0);
    for (uint32_t i = 1; i <= found->depth; i++) {
        if (perilune_node_subscript(found, i, &sub) != PERILUNE_OK)
            break;
        push_text(L, &sub);
        lua_rawseti(L, -2, (int)i);
    }
    return 1;
}

static int node_next_valued(lua_State *L)
{
    return node_step(L, FORWARD);
}

static int node_previous_valued(lua_State *L)
{
    return node_step(L, BACKWARD);
}

/* local_names(): the names of the local variables that there are. */
static int local_names(lua_State *L)
{
    address at = {.kind = KIND_LOCAL};
    perilune_value name;
    int status, code, count = 0;
    lua_settop(L, 0);
    lua_createtable(L, 0, 0);
    lua_pushliteral(L, "");
    for (;;) {
        size_t size;
        const char *text = lua_tolstring(L, 2, &size);
        ON(status, L, &at, perilune_name_next(session, text, size, &name));
        lua_settop(L, 2);
        if (status != PERILUNE_OK)
            break;
        push_text(L, &name);
        lua_replace(L, 2);
        text = lua_tolstring(L, 2, &size);
        if (kind_of(text, size, &code) != KIND_LOCAL)
            continue;
        lua_pushvalue(L, 2);
        lua_rawseti(L, 1, ++count);
    }
    lua_settop(L, 1);
    return 1;
}

const luaL_Reg walk_functions[] = {{"subscript_next", subscript_next},   {"subscript_previous", subscript_previous},
                                   {"node_next", node_next_valued},      {"node_previous", node_previous_valued},
                                   {"local_names", local_names},          {NULL, NULL}};

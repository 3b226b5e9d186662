/*
 * Tells what an argument is: a node in any of its three forms (full userdata, light userdata, LuaJIT's cdata), or
 * a database.
 *
 * A `handle` is what the rest of the module works with: the key, the database and the class of a node, whatever
 * its form.
 */
#include "handles.h"

#include "errors.h"
#include "light.h"

int to_handle(lua_State *L, int index, handle *out)
{
    int type = lua_type(L, index);
    if (type == LUA_TUSERDATA) {
        node *n = full_node(L, index);
        if (n == NULL && bare_method(L, index) != NULL)
            raise_argument(L, "the node has too many subscripts, or too long ones, for one more");
        if (n == NULL)
            return 0;
        handle_of(n, out);
        return 1;
    }
    if (type == LUA_TLIGHTUSERDATA)
        return light_of(L, index, out);
    if (type == TYPE_CDATA && state_of(L)->convert != LUA_NOREF) {
        /* LuaJIT's nodes without memory: replaced on the stack by one that C can read. */
        index = lua_absindex(L, index);
        lua_rawgeti(L, LUA_REGISTRYINDEX, state_of(L)->convert);
        lua_pushvalue(L, index);
        lua_call(L, 1, 1);
        node *n = full_node(L, -1);
        lua_replace(L, index);
        if (n == NULL)
            return 0;
        handle_of(n, out);
        return 1;
    }
    return 0;
}

void check_handle(lua_State *L, int index, handle *out)
{
    if (!to_handle(L, index, out))
        raise_argument(L, "argument %d must be a node, not %s", index, luaL_typename(L, index));
}

void push_class(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TLIGHTUSERDATA) {
        uint64_t bits = (uint64_t)(uintptr_t)lua_touserdata(L, index);
        lua_rawgeti(L, UPVALUE_PLACES, (int)((bits >> 44) & (PLACES_MAX - 1)));
    } else if (!lua_getmetatable(L, index)) {
        lua_pushnil(L);
    }
}

database *to_database(lua_State *L, int index)
{
    database *db = lua_touserdata(L, index);
    if (db != NULL && lua_rawlen(L, index) >= sizeof(database) && db->magic == DATABASE_MAGIC)
        return db;
    return NULL;
}

database *check_database(lua_State *L, int index)
{
    database *db = to_database(L, index);
    if (db == NULL)
        raise_argument(L, "argument %d must be a database, not %s; call its functions as db:name()", index,
                       luaL_typename(L, index));
    return db;
}

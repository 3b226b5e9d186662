/*
 * Which Lua values a node can be set to, and what they are as values of Perilune: nil removes, perilune.null is
 * null, tables and nodes are errors that say what to do instead.
 */
#include "stored.h"

#include "errors.h"
#include "handles.h"
#include "values.h"

void to_value(lua_State *L, int index, const char *what, perilune_value *value)
{
    *value = perilune_absent();
    switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
        return;
    case LUA_TBOOLEAN:
        *value = perilune_bool(lua_toboolean(L, index));
        return;
    case LUA_TNUMBER:
        to_number(L, index, what, value);
        return;
    case LUA_TSTRING:
        value->type = PERILUNE_STRING;
        value->as.s.p = lua_tolstring(L, index, &value->as.s.n);
        return;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, index) == NULL) {
            value->type = PERILUNE_NULL;
            return;
        }
        break;
    case LUA_TUSERDATA:
        index = lua_absindex(L, index);
        if (is_sentinel(L, index, &empty_list_key)) {
            value->type = PERILUNE_EMPTY_LIST;
            return;
        }
        if (is_sentinel(L, index, &empty_map_key)) {
            value->type = PERILUNE_EMPTY_MAP;
            return;
        }
        break;
    default:
        break;
    }
    handle h;
    raise_argument(L, "%s must be a string, number, boolean, nil or perilune.null, not %s%s", what,
                   to_handle(L, index, &h) ? "a node: give its value, node.__" : described(L, index),
                   lua_istable(L, index) ? ": node:settree(table) stores tables" : "");
}

/*
 * Functions of `table` that write, and table.sort, which must look whether it is to stop.
 *
 * A heap sort: no order of the elements and no comparison, however wrong, makes it take long or leave
 * the table's bounds.
 */
#include "sorting.h"

#include "proxy.h"
#include "stop.h"

static int writable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (is_proxy(L, 1))
        luaL_error(L, "Attempt to modify a readonly table");
    return (int)lua_objlen(L, 1);
}

static int insert(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int end = writable(L) + 1, place = end;
    switch (lua_gettop(L)) {
    case 2:
        break;
    case 3:
        place = luaL_checkint(L, 2);
        if (place > end)
            end = place;
        for (int i = end; i > place; i--) {
            if (i % STEPS_UNCHECKED == 0)
                check_stop(S, L);
            lua_rawgeti(L, 1, i - 1);
            lua_rawseti(L, 1, i);
        }
        break;
    default:
        return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    lua_rawseti(L, 1, place);
    return 0;
}

static int take_out(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int end = writable(L), place = luaL_optint(L, 2, end);
    if (!(1 <= place && place <= end))
        return 0;
    lua_rawgeti(L, 1, place);
    for (; place < end; place++) {
        if (place % STEPS_UNCHECKED == 0)
            check_stop(S, L);
        lua_rawgeti(L, 1, place + 1);
        lua_rawseti(L, 1, place);
    }
    lua_pushnil(L);
    lua_rawseti(L, 1, end);
    return 1;
}

static int set_size(lua_State *L)
{
    return luaL_error(L, "'setn' is obsolete");
}

/* Whether the value at `left` comes before that at `right`, both from the top; index 2 may compare. */
static int before(sandbox *S, lua_State *L, int left, int right, size_t *work)
{
    *work += 16 + (lua_type(L, left) == LUA_TSTRING ? lua_objlen(L, left) : 0);
    if (*work > 16 * STEPS_UNCHECKED) {
        *work = 0;
        check_stop(S, L);
    }
    if (lua_isnil(L, 2))
        return lua_lessthan(L, left, right);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, left - 1);
    lua_pushvalue(L, right - 2);
    lua_call(L, 2, 1);
    int result = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return result;
}

/* Moves the element at `root` down until both its children come before it or are equal. */
static void sift(sandbox *S, lua_State *L, int root, int count, size_t *work)
{
    lua_rawgeti(L, 1, root);
    for (int child; (child = 2 * root) <= count; root = child) {
        lua_rawgeti(L, 1, child);
        if (child < count) {
            lua_rawgeti(L, 1, child + 1);
            if (before(S, L, -2, -1, work)) {
                lua_remove(L, -2);
                child++;
            } else {
                lua_pop(L, 1);
            }
        }
        if (!before(S, L, -2, -1, work)) {
            lua_pop(L, 1);
            break;
        }
        lua_rawseti(L, 1, root);
    }
    lua_rawseti(L, 1, root);
}

static int sort(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    size_t work = 0;
    int count = writable(L);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    check_depth(S, L);
    luaL_checkstack(L, 16, "");
    for (int root = count / 2; root >= 1; root--)
        sift(S, L, root, count, &work);
    for (int last = count; last > 1; last--) {
        lua_rawgeti(L, 1, 1);
        lua_rawgeti(L, 1, last);
        lua_rawseti(L, 1, 1);
        lua_rawseti(L, 1, last);
        sift(S, L, 1, last - 1, &work);
    }
    return 0;
}

const luaL_Reg table_functions[] = {
    {"insert", insert},
    {"remove", take_out},
    {"setn", set_size},
    {"sort", sort},
    {NULL, NULL},
};

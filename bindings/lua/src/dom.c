/*
 * perilune.__dom(node, name, ...): makes a call on the document below `node`, for perilune/dom.lua.
 *
 * It answers nil, a value or the number of a node, or a table of either; which of them is known by the call's name.
 *
 * Invariant: an answer lies in a userdata until all of it is pushed, so that an error of Lua frees it.
 */
#include "dom.h"

#include "errors.h"
#include "handles.h"
#include "stored.h"
#include "values.h"

static const char answer_key;

enum { ARGUMENTS_MAX = 200 };

static int answer_gc(lua_State *L)
{
    perilune_dom_answer **answer = lua_touserdata(L, 1);
    perilune_dom_close(*answer);
    *answer = NULL;
    return 0;
}

/* Pushes a userdata for an answer. */
static perilune_dom_answer **new_answer(lua_State *L)
{
    perilune_dom_answer **answer = new_userdata(L, sizeof(perilune_dom_answer *));
    *answer = NULL;
    lua_pushlightuserdata(L, (void *)&answer_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    return answer;
}

static void push_at(lua_State *L, const perilune_dom_answer *answer, size_t index)
{
    perilune_value value;
    if (perilune_dom_value(answer, index, &value) != PERILUNE_OK)
        lua_pushnil(L);
    else
        push_value(L, &value);
}

static int dom_call(lua_State *L)
{
    handle h;
    perilune_value arguments[ARGUMENTS_MAX];
    int count = lua_gettop(L) - 2, status;
    size_t size;
    check_handle(L, 1, &h);
    if (lua_type(L, 2) != LUA_TSTRING)
        return raise_argument(L, "the name of a call must be a string, not %s", described(L, 2));
    if (count > ARGUMENTS_MAX)
        return raise_argument(L, "a call on a document takes at most %d arguments here", ARGUMENTS_MAX);
    for (int i = 0; i < count; i++)
        to_value(L, i + 3, "an argument", &arguments[i]);
    const char *name = lua_tolstring(L, 2, &size);
    perilune_dom_answer **answer = new_answer(L);
    TRY(status, L, h.db, NULL, perilune_dom_call(h.db->live, h.key, name, size, arguments, (size_t)count, answer));
    int kind = perilune_dom_kind(*answer);
    if (kind == PERILUNE_DOM_VALUE || kind == PERILUNE_DOM_NODE) {
        push_at(L, *answer, 0);
    } else if (kind == PERILUNE_DOM_NOTHING) {
        lua_pushnil(L);
    } else {
        size_t many = perilune_dom_count(*answer);
        lua_createtable(L, (int)(many < 1 << 20 ? many : 1 << 20), 0);
        for (size_t i = 0; i < many; i++) {
            push_at(L, *answer, i);
            lua_rawseti(L, -2, (int)i + 1);
        }
    }
    perilune_dom_close(*answer);
    *answer = NULL;
    return 1;
}

int open_dom(lua_State *L)
{
    const luaL_Reg functions[] = {{"__dom", dom_call}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    lua_pushlightuserdata(L, (void *)&answer_key);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, answer_gc);
    lua_setfield(L, -2, "__gc");
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

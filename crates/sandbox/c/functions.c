/*
 * Libraries whose functions the host answers: `library.name(1, "a")` in a script becomes a question with these
 * values (values.c), and what the host answers becomes the function's one result. So a library needs no C of its
 * own.
 *
 * While a script defines functions (`loading`), only those may be called that the library says.
 */
#include "functions.h"

#include "ask.h"
#include "proxy.h"
#include "values.h"

/* Upvalues: the library's number, the function's, whether it may be called by what defines functions. */
static int call_host(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int library = (int)lua_tointeger(L, lua_upvalueindex(1)), function = (int)lua_tointeger(L, lua_upvalueindex(2));
    if (S->run != NULL && S->run->loading && !lua_toboolean(L, lua_upvalueindex(3)))
        return luaL_error(L, "not while functions are defined");
    int last = lua_gettop(L), wrong = collect_values(S, L, 1, last);
    if (wrong != 0)
        return luaL_error(L, "bad argument #%d (a %s is no value for the host)", wrong, luaL_typename(L, wrong));
    push_answer(S, L, ask(S, L, library, function, (size_t)last));
    forget_answer(S);
    return 1;
}

void open_functions(sandbox *S, const library *library, int number, int globals)
{
    lua_State *L = S->L;
    lua_createtable(L, 0, (int)library->count);
    for (size_t i = 0; i < library->count; i++) {
        lua_pushinteger(L, number);
        lua_pushinteger(L, (lua_Integer)i);
        lua_pushboolean(L, library->functions[i].while_loading);
        lua_pushcclosure(L, call_host, 3);
        lua_setfield(L, -2, library->functions[i].name);
    }
    replace_by_proxy(L);
    lua_setfield(L, globals, library->name);
}

/*
 * What each part of a sandbox finds it by.
 */
#include "sandbox.h"

sandbox *sandbox_of(lua_State *L)
{
    void *S = NULL;
    lua_getallocf(L, &S);
    return S;
}

void push_name(sandbox *S, lua_State *L, int name)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->names[name]);
}

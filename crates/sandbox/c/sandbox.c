/*
 * How each part finds the sandbox: it is the user data of its Lua state's allocator, so no upvalue and no lookup
 * is needed. Also pushes the strings that each run needs.
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

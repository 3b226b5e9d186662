/*
 * Where each function of the module finds the state.
 */
#include "state.h"

state *state_of(lua_State *L)
{
    return lua_touserdata(L, UPVALUE_STATE);
}

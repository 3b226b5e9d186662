/*
 * state_of(): how each C function of the module finds the state that all share: it is the first upvalue.
 */
#include "state.h"

state *state_of(lua_State *L)
{
    return lua_touserdata(L, UPVALUE_STATE);
}

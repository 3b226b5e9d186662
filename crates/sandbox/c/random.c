/*
 * math.random and math.randomseed, with the generator that Redis has: the linear congruence of lrand48, of which
 * 31 bits are used. So a seed gives the same numbers as there, and on each machine.
 */
#include "random.h"

#include <math.h>

void seed_random(sandbox *S, uint32_t seed)
{
    S->random = (uint64_t)seed << 16 | 0x330E;
}

static double next_number(sandbox *S)
{
    S->random = (S->random * UINT64_C(0x5DEECE66D) + 0xB) & ((UINT64_C(1) << 48) - 1);
    return (double)((S->random >> 17) % 0x7FFFFFFF) / 0x7FFFFFFF;
}

static int random_number(lua_State *L)
{
    double r = next_number(sandbox_of(L));
    switch (lua_gettop(L)) {
    case 0:
        lua_pushnumber(L, r);
        break;
    case 1: {
        int last = luaL_checkint(L, 1);
        luaL_argcheck(L, 1 <= last, 1, "interval is empty");
        lua_pushnumber(L, floor(r * last) + 1);
        break;
    }
    case 2: {
        int first = luaL_checkint(L, 1), last = luaL_checkint(L, 2);
        luaL_argcheck(L, first <= last, 2, "interval is empty");
        lua_pushnumber(L, floor(r * ((double)last - first + 1)) + first);
        break;
    }
    default:
        return luaL_error(L, "wrong number of arguments");
    }
    return 1;
}

static int random_seed(lua_State *L)
{
    seed_random(sandbox_of(L), (uint32_t)luaL_checkint(L, 1));
    return 0;
}

const luaL_Reg random_functions[] = {
    {"random", random_number},
    {"randomseed", random_seed},
    {NULL, NULL},
};

/* perilune.__models and perilune.__database, for perilune/calls.lua. */
#ifndef PERILUNE_LUA_MODELS_H
#define PERILUNE_LUA_MODELS_H

#include "state.h"

int open_models(lua_State *L);

#endif

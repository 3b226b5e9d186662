/* Documents of XML: the one call that perilune/dom.lua makes. */
#ifndef PERILUNE_LUA_DOM_H
#define PERILUNE_LUA_DOM_H

#include "state.h"

/* Adds to the module at the top of the stack. */
int open_dom(lua_State *L);

#endif

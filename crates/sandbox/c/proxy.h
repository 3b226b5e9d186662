/* Proxies of tables that scripts see and cannot change. */
#ifndef PERILUNE_SANDBOX_PROXY_H
#define PERILUNE_SANDBOX_PROXY_H

#include "sandbox.h"

/* Replaces the table at the top by a proxy of it. */
void replace_by_proxy(lua_State *L);
int is_proxy(lua_State *L, int index);

#endif

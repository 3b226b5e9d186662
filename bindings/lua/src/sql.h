/* SQL: db:sql and db:rows. */
#ifndef PERILUNE_LUA_SQL_H
#define PERILUNE_LUA_SQL_H

#include "state.h"

extern const luaL_Reg sql_functions[];
int open_sql(lua_State *L);

#endif

/* Databases: opening, closing, the default one. */
#ifndef PERILUNE_LUA_DATABASE_H
#define PERILUNE_LUA_DATABASE_H

#include "state.h"

int durability_of(lua_State *L, int index);
/* The default database, opened if need be; pushes it. */
database *push_default(lua_State *L);
/* Pushes the first class of the database at `index`. */
void push_own_class(lua_State *L, int index);
/* Makes what databases and transactions are; their functions are those of the tables in `more`, up to NULL, too, those of
 * transactions those of the first. */
int open_databases(lua_State *L, const luaL_Reg *const *more);

#endif

/* Errors as strings with numbers. */
#ifndef PERILUNE_LUA_YOTTADB_ERRORS_H
#define PERILUNE_LUA_YOTTADB_ERRORS_H

#include "yottadb.h"

layer *layer_of(lua_State *L);
/* Raises "YDB Error: <code>: <text>". */
int raise_code(lua_State *L, int code);
int raise_perilune(lua_State *L, const address *at, int status);
/* Raises why `db` takes no calls. */
int raise_doomed(lua_State *L, const database *db);
/* The number after "YDB Error: " in the string at `index`, and 1; or 0. */
int code_in(lua_State *L, int index, int *code);
extern const luaL_Reg error_functions[];

#endif

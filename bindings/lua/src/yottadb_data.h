/* Values: reading and writing. */
#ifndef PERILUNE_LUA_YOTTADB_DATA_H
#define PERILUNE_LUA_YOTTADB_DATA_H

#include "errors.h"
#include "yottadb.h"
#include "yottadb_errors.h"

database *current_database(lua_State *L);
/* The session for `at`; raises if it names no variable, or the transaction must end. */
perilune_session *session_for(lua_State *L, address *at);
int after_fork(lua_State *L, address *at);
/* node:get([default]) and node:set(value) of the first class. */
int value_or_default(lua_State *L);
int assign(lua_State *L);
extern const luaL_Reg value_functions[];

/* Runs a call with `session` in the expression, and raises every error. */
#define ON(status, L, at, expression)                                   \
    do {                                                                \
        for (;;) {                                                      \
            perilune_session *session = session_for(L, at);             \
            (status) = (expression);                                    \
            if ((status) != PERILUNE_FORKED || !after_fork(L, at))      \
                break;                                                  \
        }                                                               \
        if (!ANSWERED(status))                                          \
            raise_perilune(L, at, status);                              \
    } while (0)

#endif

/* Errors of the library as errors of Lua. */
#ifndef PERILUNE_LUA_ERRORS_H
#define PERILUNE_LUA_ERRORS_H

#include "state.h"

#define ANSWERED(status) ((status) >= PERILUNE_OK)
int raise_status(lua_State *L, database *db, int status, const perilune_node *at);
int raise_argument(lua_State *L, const char *format, ...);
int raise_thread(lua_State *L, int status);
/* Raises the message on the top of the stack. */
int raise_message(lua_State *L, int status);
/* Raises what the three values on the top of the stack say: message, place and node (or nil). */
int raise_from_there(lua_State *L, int status);
int open_errors(lua_State *L);
/* Raises why `db` takes no calls. */
int raise_unusable(lua_State *L, database *db);
/* After fork(): gives the child a session of its own. 1: try again. */
int reopened(lua_State *L, database *db);

/* Runs a call that returns a status; `db->live` must be read in the expression. */
#define CALL(status, L, db, expression)                                 \
    do {                                                                \
        if ((db)->live == NULL)                                         \
            raise_unusable(L, db);                                      \
        (status) = (expression);                                        \
    } while ((status) == PERILUNE_FORKED && reopened(L, db))

/* Runs a call like CALL, and raises every error. */
#define TRY(status, L, db, at, expression)       \
    do {                                         \
        CALL(status, L, db, expression);         \
        if (!ANSWERED(status))                   \
            raise_status(L, db, status, at);     \
    } while (0)

#endif

/* Replies of commands as Lua values, and Lua values as replies. */
#ifndef PERILUNE_SCRIPTS_REPLIES_H
#define PERILUNE_SCRIPTS_REPLIES_H

#include "redis.h"

/* Pushes the value that a command's reply becomes. */
void push_reply(sandbox *S, lua_State *L, text reply);
/* Appends the reply that the value at `index` becomes to S->out: in RESP2 or RESP3. */
void write_reply(sandbox *S, lua_State *L, int index, int protocol);
/* Appends a reply that is an error. */
void write_error(sandbox *S, lua_State *L, buffer *b, text message);

#endif

/*
 * Errors that end a run: what they say, and where they were raised.
 *
 * note_failure() is the message handler of a run: it looks at the stack while it is there, and notes source and
 * line. A message of raise_plain() is one that the client is to see as it is, without a place; it is told from
 * others by the address of its string, since Lua has equal strings only once.
 */
#include "failure.h"

#include <stdio.h>

int raise_plain(sandbox *S, lua_State *L, text message)
{
    lua_pushlstring(L, message.bytes, message.length);
    S->raised = lua_tostring(L, -1);
    return lua_error(L);
}

text plain_message(const sandbox *S, lua_State *L, int index)
{
    text message = {NULL, 0};
    if (lua_type(L, index) == LUA_TSTRING && lua_tostring(L, index) == S->raised)
        message.bytes = lua_tolstring(L, index, &message.length);
    return message;
}

text any_message(lua_State *L, int index)
{
    text message = {NULL, 0};
    int type = lua_type(L, index);
    if (type == LUA_TSTRING || type == LUA_TNUMBER) {
        message.bytes = lua_tolstring(L, index, &message.length);
        return message;
    }
    message.bytes = type != LUA_TBOOLEAN ? luaL_typename(L, index) : lua_toboolean(L, index) ? "true" : "false";
    message.length = strlen(message.bytes);
    return message;
}

int note_failure(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    lua_Debug ar;
    S->line = 0;
    S->tail = 0;
    S->source[0] = 0;
    for (int level = 1; level <= 2; level++) {
        if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar))
            break;
        S->line = ar.currentline;
        snprintf(S->source, sizeof S->source, "%s", ar.source);
        if (ar.what == NULL || strcmp(ar.what, "C") != 0) {
            lua_settop(L, 1);
            return 1;
        }
    }
    /* `return f()`: the frame of the script is gone. That call ends it, so it is most likely its last line. */
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->run->reference);
    if (lua_getinfo(L, ">S", &ar)) {
        S->line = ar.lastlinedefined > 0 ? ar.lastlinedefined : 1;
        S->tail = 1;
        snprintf(S->source, sizeof S->source, "%s", ar.source);
    }
    lua_settop(L, 1);
    return 1;
}

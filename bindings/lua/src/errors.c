/*
 * Errors as Lua tables: {code, status, message, node, where} with __tostring.
 *
 * Invariants
 * - `code` is the status name without PERILUNE_, as "KEY_TOO_LONG"; wrong arguments are "INVALID".
 * - An error inside a transaction that asks for another run dooms the transaction, so that a pcall in
 *   its body cannot swallow it.
 */
#include "errors.h"

#include <stdarg.h>
#include <stdlib.h>

static const char errors_key;

static int error_tostring(lua_State *L)
{
    static const char *const fields[] = {"where", "message", "node"};
    if (!lua_istable(L, 1)) {
        lua_pushliteral(L, "perilune.error");
        return 1;
    }
    luaL_Buffer b;
    lua_settop(L, 1);
    for (int i = 0; i < 3; i++)
        lua_getfield(L, 1, fields[i]);
    luaL_buffinit(L, &b);
    if (lua_type(L, 2) == LUA_TSTRING)
        luaL_addstring(&b, lua_tostring(L, 2));
    luaL_addstring(&b, "perilune: ");
    luaL_addstring(&b, lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : "error");
    if (lua_type(L, 4) == LUA_TSTRING) {
        luaL_addstring(&b, " (at ");
        luaL_addstring(&b, lua_tostring(L, 4));
        luaL_addstring(&b, ")");
    }
    luaL_pushresult(&b);
    return 1;
}

static int is_part(const char *where, const char *file, const char *name)
{
    return strstr(where, file) != NULL || strncmp(where, name, strlen(name)) == 0;
}

/* The place in the user's program, which is not in a part of this module in Lua, a file or embedded. */
static void push_where(lua_State *L)
{
    int shipping = 0;
    for (int level = 1; level < 12; level++) {
        luaL_where(L, level);
        const char *where = lua_tostring(L, -1);
        int ship = is_part(where, "perilune/ship.lua:", "perilune.ship:") || is_part(where, "/perilune.lua:", "perilune:");
        shipping |= ship;
        /* What sends functions is called by db:transaction, which has no place. */
        int ours = ship || is_part(where, "perilune/ffi.lua:", "perilune.ffi:")
            || is_part(where, "perilune/dom.lua:", "perilune.dom:")
            || is_part(where, "perilune/calls.lua:", "perilune.calls:")
            || is_part(where, "perilune/documents.lua:", "perilune.documents:")
            || is_part(where, "perilune/graph.lua:", "perilune.graph:")
            || is_part(where, "perilune/traversal.lua:", "perilune.traversal:");
        if (!ours && !(shipping && where[0] == 0))
            return;
        lua_pop(L, 1);
    }
    lua_pushliteral(L, "");
}

/* Raises the message on the top of the stack with the place and the node's text below it (or nil). */
static int raise_at(lua_State *L, int status)
{
    const char *name = perilune_status_name(status);
    if (strncmp(name, "PERILUNE_", 9) == 0)
        name += 9;
    lua_createtable(L, 0, 5);
    lua_insert(L, -4);
    lua_setfield(L, -4, "message");
    lua_setfield(L, -3, "where");
    lua_setfield(L, -2, "node");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "code");
    lua_pushinteger(L, status);
    lua_setfield(L, -2, "status");
    lua_pushlightuserdata(L, (void *)&errors_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    return lua_error(L);
}

/* Raises the message on the top of the stack with the node's text below it (or nil). */
static int raise(lua_State *L, int status)
{
    push_where(L);
    lua_insert(L, -2);
    return raise_at(L, status);
}

int raise_from_there(lua_State *L, int status)
{
    luaL_checkstack(L, 10, "error");
    if (lua_isnil(L, -2)) {
        push_where(L);
        lua_replace(L, -3);
    }
    lua_insert(L, -3);
    lua_insert(L, -2); /* node, place, message */
    return raise_at(L, status);
}

int raise_message(lua_State *L, int status)
{
    luaL_checkstack(L, 10, "error");
    lua_pushnil(L);
    lua_insert(L, -2);
    return raise(L, status);
}

static void push_node_text(lua_State *L, const perilune_node *at)
{
    char text[1024];
    size_t size = 0;
    if (at == NULL) {
        lua_pushnil(L);
        return;
    }
    int status = perilune_node_text(at, text, sizeof text, &size);
    if (status == PERILUNE_OK && size <= 200)
        lua_pushlstring(L, text, size);
    else if (status == PERILUNE_OK)
        lua_pushfstring(L, "%s...", (text[200] = 0, text));
    else
        lua_pushliteral(L, "a node with a long name");
}

int raise_status(lua_State *L, database *db, int status, const perilune_node *at)
{
    char message[1024];
    /* NB: the text lies in the session: the next call would replace it. */
    const char *text = perilune_message(db == NULL ? NULL : db->session);
    strncpy(message, text, sizeof message - 1);
    message[sizeof message - 1] = 0;
    if (db != NULL && (status == PERILUNE_CONFLICT || status == PERILUNE_RESTART) && db->session != NULL
        && perilune_depth(db->session) > 0) {
        db->doom = DOOM_AGAIN;
        db->doom_status = status;
        db->live = NULL;
    }
    luaL_checkstack(L, 10, "error");
    push_node_text(L, at);
    lua_pushstring(L, message[0] != 0 ? message : perilune_status_name(status));
    return raise(L, status);
}

int raise_thread(lua_State *L, int status)
{
    return raise_status(L, NULL, status, NULL);
}

int raise_argument(lua_State *L, const char *format, ...)
{
    va_list arguments;
    luaL_checkstack(L, 10, "error");
    lua_pushnil(L);
    va_start(arguments, format);
    lua_pushvfstring(L, format, arguments);
    va_end(arguments);
    return raise(L, PERILUNE_INVALID);
}

int raise_unusable(lua_State *L, database *db)
{
    luaL_checkstack(L, 10, "error");
    lua_pushnil(L);
    if (db->session == NULL) {
        lua_pushliteral(L, "the database was closed: open it again with perilune.open");
        return raise(L, PERILUNE_CLOSED);
    }
    if (db->doom == DOOM_ROLLBACK) {
        lua_pushliteral(L, "this level of the transaction is being rolled back: leave its function");
        return raise(L, PERILUNE_ROLLBACK);
    }
    lua_pushliteral(L, "the transaction must run again: let this error leave its function");
    return raise(L, db->doom_status);
}

int reopened(lua_State *L, database *db)
{
    perilune_session *session = NULL;
    if (db->session == NULL || perilune_depth(db->session) > 0)
        return 0;
    if (db->is_snapshot)
        return 0; /* it was the parent's */
    int status = perilune_session_open(db->db, &session);
    if (!ANSWERED(status)) {
        perilune_db *again = NULL;
        status = perilune_open(db->path, &db->options, &again);
        if (!ANSWERED(status))
            return raise_thread(L, status);
        /* NB: what the parent opened is the parent's to close. */
        db->db = again;
        status = perilune_session_open(again, &session);
        if (!ANSWERED(status))
            return raise_thread(L, status);
    }
    db->session = session;
    db->live = session;
    return 1;
}

/* perilune.is_error(x): whether `x` is an error of this module. */
static int is_error(lua_State *L)
{
    int found = 0;
    if (lua_istable(L, 1) && lua_getmetatable(L, 1)) {
        lua_pushlightuserdata(L, (void *)&errors_key);
        lua_rawget(L, LUA_REGISTRYINDEX);
        found = lua_rawequal(L, -1, -2);
    }
    lua_pushboolean(L, found);
    return 1;
}

/* Adds to the module at the top of the stack. */
int open_errors(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&errors_key);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, error_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushliteral(L, "perilune.error");
    lua_setfield(L, -2, "__name");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, is_error);
    lua_setfield(L, -2, "is_error");
    return 0;
}

/*
 * Functions that programs send, to run here as a transaction: loads shipped.lua with shipped_environment.lua and
 * documents.lua, and gives them what Lua alone has not: a compiler, the place of an error, the numbers of
 * statuses.
 *
 * Invariant: text that is compiled here sees an empty table as its globals until shipped.lua gives it others.
 */
#include "shipped.h"

#include "node_parts.h"
#include "source.h"

#include <string.h>

static const char shipped[] = {
#include "shipped.inc"
};
static const char shipped_environment[] = {
#include "shipped_environment.inc"
};
static const char documents[] = {
#include "documents.inc"
};
static const struct {
    const char *name;
    int number;
} statuses[] = {
#include "statuses.inc" /* of include/perilune.h */
};

/* compile(text, name): a function, or nil and why not. */
static int compile_text(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    if (load_text(L, text, length, luaL_checkstring(L, 2)) == 0) {
        lua_newtable(L);
        lua_setfenv(L, -2);
        return 1;
    }
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* where(): the place in the program's function, as "file:line: ". */
static int where_asked(lua_State *L)
{
    lua_Debug frame;
    for (int level = 1; lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Sl", &frame);
        if (frame.currentline > 0 && strcmp(frame.source, "=perilune") != 0) {
            lua_pushfstring(L, "%s:%d: ", frame.short_src, frame.currentline);
            return 1;
        }
    }
    lua_pushliteral(L, "");
    return 1;
}

/* status_of(code): the number of the kind of an error, as the header has it; nothing if there is none. */
static int status_of(lua_State *L)
{
    const char *code = luaL_checkstring(L, 1);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcmp(statuses[i].name, code) == 0) {
            lua_pushinteger(L, statuses[i].number);
            return 1;
        }
    return 0;
}

static int mark_text(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* Puts a value that is only itself into the table at the top of the stack. */
static void add_mark(lua_State *L, const char *name, const char *text)
{
    lua_newuserdata(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushstring(L, text);
    lua_pushcclosure(L, mark_text, 1);
    lua_setfield(L, -2, "__tostring");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, name);
}

/* Pushes the values that are no plain ones: the module of programs has them, too (bindings/lua/src/values.c). */
static void push_marks(lua_State *L)
{
    lua_createtable(L, 0, 4);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    add_mark(L, "empty_list", "[]");
    add_mark(L, "empty_map", "{}");
    add_mark(L, "DELETE", "perilune.DELETE");
}

void open_shipped(sandbox *S, int globals)
{
    lua_State *L = S->L;
    load_part(L, shipped, sizeof shipped);
    lua_pushcfunction(L, compile_text);
    lua_getglobal(L, "setfenv");
    lua_pushvalue(L, globals);
    lua_newtable(L); /* the state of the run under way */
    load_part(L, shipped_environment, sizeof shipped_environment);
    lua_pushcfunction(L, ask_node);
    lua_pushvalue(L, globals);
    lua_pushvalue(L, -4);
    push_marks(L);
    lua_pushcfunction(L, where_asked);
    load_part(L, documents, sizeof documents);
    load_json(L);
    lua_pushcfunction(L, status_of);
    lua_call(L, 8, 1);
    lua_call(L, 5, 1);
    S->shipped = luaL_ref(L, LUA_REGISTRYINDEX);
}

int sandbox_shipped(const sandbox *S)
{
    return S->shipped;
}

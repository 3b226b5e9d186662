/*
 * perilune.__models(node, name, ...): makes a call on the document, list or key/value store below `node`, for
 * perilune/calls.lua. perilune.__database(node): the database of a node.
 */
#include "models.h"

#include "errors.h"
#include "handles.h"
#include "nodes.h"
#include "stored.h"
#include "values.h"

enum { ARGUMENTS_MAX = 8 };

static int models_call(lua_State *L)
{
    handle h;
    perilune_value arguments[ARGUMENTS_MAX], answer;
    int count = lua_gettop(L) - 2, status;
    size_t size;
    check_handle(L, 1, &h);
    const char *name = luaL_checklstring(L, 2, &size);
    if (count > ARGUMENTS_MAX)
        return raise_argument(L, "a call takes at most %d arguments", ARGUMENTS_MAX);
    for (int i = 0; i < count; i++) {
        if (lua_isnil(L, i + 3))
            arguments[i] = perilune_absent();
        else
            to_value(L, i + 3, "an argument", &arguments[i]);
    }
    TRY(status, L, h.db, NULL,
        perilune_models_call(h.db->live, h.key, name, size, arguments, (size_t)count, &answer));
    push_value(L, &answer);
    return 1;
}

static int database_of(lua_State *L)
{
    handle h;
    check_handle(L, 1, &h);
    push_class(L, 1);
    push_class_database(L, lua_gettop(L));
    return 1;
}

int open_models(lua_State *L)
{
    const luaL_Reg functions[] = {{"__models", models_call}, {"__database", database_of}, {NULL, NULL}};
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
    return 0;
}

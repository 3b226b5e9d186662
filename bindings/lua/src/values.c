/*
 * Lua values to Perilune's and back.
 *
 * Invariants
 * - A number with an integral value within 64 bits is an integer, whatever its Lua type.
 * - A number of the database comes back as a Lua number if one has exactly its value, else as its text.
 * - Text and bytes are not kept: they stay in the Lua string on the stack.
 */
#include "values.h"

#include "errors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char empty_list_key, empty_map_key, list_key, delete_key;

int is_sentinel(lua_State *L, int index, const char *key)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    int same = lua_rawequal(L, -1, index);
    lua_pop(L, 1);
    return same;
}

int is_list(lua_State *L, int index)
{
    int list = 0;
    if (lua_getmetatable(L, index)) {
        lua_pushlightuserdata(L, (void *)&list_key);
        lua_rawget(L, LUA_REGISTRYINDEX);
        list = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    return list;
}

const char *described(lua_State *L, int index)
{
    static const char *const names[] = {"nil",     "a boolean",  "a light userdata", "a number", "a string",
                                        "a table", "a function", "a userdata",       "a thread"};
    int type = lua_type(L, index);
    if (type == TYPE_CDATA)
        return "a cdata";
    return type < 0 || type > LUA_TTHREAD ? "nothing" : names[type];
}

void to_number(lua_State *L, int index, const char *what, perilune_value *value)
{
    value->type = PERILUNE_INT;
    if (integral(L, index, &value->as.i))
        return;
    value->type = PERILUNE_DOUBLE;
    value->as.d = lua_tonumber(L, index);
    if (!isfinite(value->as.d))
        raise_argument(L, "%s must be a finite number, not %s", what, isnan(value->as.d) ? "NaN" : "infinity");
}

void to_subscript(lua_State *L, int index, perilune_value *value)
{
    *value = perilune_absent();
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        value->type = PERILUNE_STRING;
        value->as.s.p = lua_tolstring(L, index, &value->as.s.n);
        return;
    case LUA_TNUMBER:
        to_number(L, index, "a subscript", value);
        return;
    default:
        raise_argument(L, "a subscript must be a string or a number, not %s", described(L, index));
    }
}

double to_timeout(lua_State *L, int index)
{
    if (lua_isnoneornil(L, index))
        return PERILUNE_FOREVER;
    if (lua_type(L, index) != LUA_TNUMBER)
        raise_argument(L, "a timeout must be a number of seconds, not %s", described(L, index));
    double seconds = lua_tonumber(L, index);
    if (!(seconds >= 0))
        raise_argument(L, "a timeout must be 0 or more seconds (nil: no limit)");
    return isinf(seconds) || seconds > 1e9 ? PERILUNE_FOREVER : seconds;
}

/* Writes the shortest text that reads as `number`, as 1.5E+20, with a zero byte at its end. */
void shortest_text(double number, char text[40])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 40, "%.*e", digits - 1, number);
        if (strtod(text, NULL) == number)
            break;
    }
    /* printf writes the locale's point; numbers here have a full stop, and M's upper-case exponent. */
    for (char *c = text; *c != 0; c++) {
        if (*c == 'e')
            *c = 'E';
        else if (*c != '-' && *c != '+' && (*c < '0' || *c > '9'))
            *c = '.';
    }
}

/* Writes `number` in the canonical form of a decimal. */
static int shortest(double number, char *canonical, size_t capacity, size_t *size)
{
    char text[40];
    shortest_text(number, text);
    return perilune_number_canonical(text, strlen(text), canonical, capacity, size) == PERILUNE_OK;
}

/* The double nearest to the number `text`; infinite or NaN when it is none. */
double nearest(const char *text, size_t size)
{
    int64_t mantissa = 0;
    int digits = 0, scale = 0, point = 0, negative = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '-')
            negative = 1;
        else if (text[i] == '.')
            point = 1;
        else if (text[i] >= '0' && text[i] <= '9' && digits < 18) {
            mantissa = mantissa * 10 + (text[i] - '0');
            digits += mantissa != 0;
            scale += point;
        } else {
            digits = 19; /* an exponent, or too long for what follows */
            break;
        }
    }
    if (digits <= 15 && scale <= 22) {
        static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
        double number = (double)mantissa / powers[scale]; /* one rounding: exact operands */
        return negative ? -number : number;
    }
    char copy[128];
    if (size >= sizeof copy)
        return NAN;
    memcpy(copy, text, size);
    copy[size] = 0;
    char *end;
    double number = strtod(copy, &end);
    if (*end == 0)
        return number;
    /* A locale with a decimal comma. */
    char *full_stop = strchr(copy, '.');
    if (full_stop != NULL)
        *full_stop = ',';
    return strtod(copy, NULL);
}

void push_bytes(lua_State *L, const char *bytes, size_t size)
{
#if LUA_VERSION_NUM <= 502
    /* These, and LuaJIT, may run finalizers before they copy. */
    char copy[1024];
    if (size <= sizeof copy) {
        memcpy(copy, bytes, size);
        lua_pushlstring(L, copy, size);
        return;
    }
    char *longer = malloc(size);
    if (longer == NULL)
        luaL_error(L, "not enough memory");
    memcpy(longer, bytes, size);
    lua_pushlstring(L, longer, size); /* NB: if that raises (a finalizer did), the copy is lost */
    free(longer);
#else
    lua_pushlstring(L, bytes, size);
#endif
}

static void push_decimal(lua_State *L, const perilune_value *value)
{
    char canonical[128];
    size_t size = 0;
    double number = nearest(value->as.s.p, value->as.s.n);
    if (isfinite(number) && shortest(number, canonical, sizeof canonical, &size) && size == value->as.s.n
        && memcmp(canonical, value->as.s.p, size) == 0)
        lua_pushnumber(L, number);
    else
        push_bytes(L, value->as.s.p, value->as.s.n);
}

void push_sentinel(lua_State *L, const char *key)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

void push_value(lua_State *L, const perilune_value *value)
{
    switch (value->type) {
    case PERILUNE_INT:
        if (!push_integer(L, value->as.i)) {
            char text[32];
            snprintf(text, sizeof text, "%lld", (long long)value->as.i);
            lua_pushstring(L, text);
        }
        return;
    case PERILUNE_STRING:
        push_bytes(L, value->as.s.p, value->as.s.n);
        return;
    case PERILUNE_DECIMAL:
        push_decimal(L, value);
        return;
    case PERILUNE_DOUBLE:
        lua_pushnumber(L, value->as.d);
        return;
    case PERILUNE_BOOL:
        lua_pushboolean(L, value->as.i != 0);
        return;
    case PERILUNE_NULL:
        lua_pushlightuserdata(L, NULL);
        return;
    case PERILUNE_EMPTY_LIST:
        push_sentinel(L, &empty_list_key);
        return;
    case PERILUNE_EMPTY_MAP:
        push_sentinel(L, &empty_map_key);
        return;
    default:
        lua_pushnil(L);
    }
}

static int sentinel_tostring(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* perilune.list(t): marks `t`, so that an empty one is stored as an empty list. */
static int mark_list(lua_State *L)
{
    if (!lua_istable(L, 1))
        return raise_argument(L, "perilune.list takes a table, not %s", described(L, 1));
    lua_settop(L, 1);
    push_sentinel(L, &list_key);
    lua_setmetatable(L, 1);
    return 1;
}

static void new_sentinel(lua_State *L, const char *key, const char *text, const char *name)
{
    lua_pushlightuserdata(L, (void *)key);
    new_userdata(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, text);
    lua_pushcclosure(L, sentinel_tostring, 1);
    lua_setfield(L, -2, "__tostring");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, name);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

int open_values(lua_State *L)
{
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    new_sentinel(L, &empty_list_key, "[]", "empty_list");
    new_sentinel(L, &empty_map_key, "{}", "empty_map");
    new_sentinel(L, &delete_key, "perilune.DELETE", "DELETE");
    lua_pushlightuserdata(L, (void *)&list_key);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "perilune.list");
    lua_setfield(L, -2, "__name");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, mark_list);
    lua_setfield(L, -2, "list");
    return 0;
}

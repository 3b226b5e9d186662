/*
 * SQL: rows as tables by the names of columns, all at once or one by one.
 *
 * Invariants
 * - A statement has ended when its rows are looked at: what happens meanwhile changes none of them.
 * - Rows lie in a userdata, so that an error of Lua frees them.
 * - No error of Lua passes the library: what a function of the program's does is in a protected call, and what leads there takes
 *   no memory.
 */
#include "sql.h"

#include "errors.h"
#include "handles.h"
#include "stored.h"
#include "values.h"

#include <stdlib.h>

static const char rows_key;

static const char invoke_key, describe_key;

enum { PARAMETERS_MAX = 200, STACK_FOR_CALLS = 8 };

/* A function of the program's that statements call. */
typedef struct own_function {
    database *db;
    int reference; /* of the function, in the registry */
} own_function;

/* A call of one. */
typedef struct own_call {
    const own_function *of;
    const perilune_value *arguments;
    size_t count;
    perilune_sql_call *call;
} own_call;

/* What the userdata of rows holds. */
typedef struct answer {
    perilune_sql_rows *rows;
    size_t next; /* of db:rows */
} answer;

static int answer_gc(lua_State *L)
{
    answer *a = lua_touserdata(L, 1);
    perilune_sql_close(a->rows);
    a->rows = NULL;
    return 0;
}

static void push_kept(lua_State *L, const char *key)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

/* Calls the function of the call at 1, which is a light userdata, and gives its value to the statement. */
static int invoke(lua_State *L)
{
    const own_call *c = lua_touserdata(L, 1);
    perilune_value value;
    luaL_checkstack(L, (int)c->count + 8, "arguments");
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->of->reference);
    for (size_t i = 0; i < c->count; i++) {
        value = c->arguments[i];
        if (value.type == PERILUNE_BLOB)
            value.type = PERILUNE_STRING;
        if (value.type == PERILUNE_NULL)
            lua_pushnil(L);
        else
            push_value(L, &value);
    }
    lua_call(L, (int)c->count, 1);
    to_value(L, lua_gettop(L), "the value of a function of SQL", &value);
    int status = perilune_sql_result(c->call, &value);
    if (!ANSWERED(status))
        return raise_thread(L, status);
    return 0;
}

/* Tells the call at 1 the error at 2. */
static int describe(lua_State *L)
{
    const own_call *c = lua_touserdata(L, 1);
    size_t size;
    if (lua_type(L, 2) == LUA_TTABLE) {
        lua_getfield(L, 2, "message");
        if (lua_type(L, -1) == LUA_TSTRING)
            lua_replace(L, 2);
    }
    if (lua_type(L, 2) != LUA_TSTRING && lua_type(L, 2) != LUA_TNUMBER)
        lua_pushfstring(L, "the error is %s", described(L, 2));
    else
        lua_pushvalue(L, 2);
    const char *text = lua_tolstring(L, -1, &size);
    perilune_sql_raise(c->call, text, size);
    return 0;
}

/* What the library calls. NB: whoever runs the statement has made room for what is pushed here. */
static int call_back(void *context, const perilune_value *arguments, size_t count, perilune_sql_call *call)
{
    const own_function *f = context;
    own_call c = {f, arguments, count, call};
    database *db = f->db;
    lua_State *L = db->sql_state;
    int top = lua_gettop(L);
    uint32_t base = db->sql_base;
    db->sql_base = perilune_depth(db->session);
    db->in_sql++;
    push_kept(L, &invoke_key);
    lua_pushlightuserdata(L, &c);
    int failed = lua_pcall(L, 1, 0, 0) != LUA_OK;
    int doomed = db->doom == DOOM_NONE ? PERILUNE_OK : db->doom_status;
    if (doomed != PERILUNE_OK) {
        /* The statement runs again, or is one of a transaction that does: that is known without words. */
        db->doom = DOOM_NONE;
        db->live = db->session;
    } else if (failed) {
        push_kept(L, &describe_key);
        lua_insert(L, -2);
        lua_pushlightuserdata(L, &c);
        lua_insert(L, -2);
        lua_pcall(L, 2, 0, 0);
    }
    lua_settop(L, top);
    db->in_sql--;
    db->sql_base = base;
    db->sql_state = L;
    if (doomed != PERILUNE_OK)
        return doomed;
    return failed ? PERILUNE_USER : PERILUNE_OK;
}

static void release(void *context)
{
    own_function *f = context;
    if (f->db->sql_state != NULL)
        luaL_unref(f->db->sql_state, LUA_REGISTRYINDEX, f->reference);
    free(f);
}

/* db:sql_function(name, f, options): statements of this database object may call f; nil takes it back. */
static int database_sql_function(lua_State *L)
{
    database *db = check_database(L, 1);
    int status, is_deterministic = 0;
    if (lua_type(L, 2) != LUA_TSTRING)
        raise_argument(L, "the name of a function must be a string, not %s", described(L, 2));
    if (!lua_isnoneornil(L, 3) && !lua_isfunction(L, 3))
        raise_argument(L, "a function of SQL must be a function or nil, not %s", described(L, 3));
    if (lua_istable(L, 4)) {
        lua_getfield(L, 4, "deterministic");
        is_deterministic = lua_toboolean(L, -1);
    } else if (!lua_isnoneornil(L, 4)) {
        raise_argument(L, "options must be a table, not %s", described(L, 4));
    }
    const char *name = lua_tostring(L, 2);
    db->sql_state = L;
    if (lua_isnoneornil(L, 3)) {
        TRY(status, L, db, NULL, perilune_sql_function(db->live, name, -1, 0, NULL, NULL, NULL));
        return 0;
    }
    /* The first luaL_unref of a state makes an entry: now, where there may be an error of memory, and not in `release`. */
    lua_pushboolean(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, luaL_ref(L, LUA_REGISTRYINDEX));
    lua_pushvalue(L, 3);
    int reference = luaL_ref(L, LUA_REGISTRYINDEX);
    own_function *f = malloc(sizeof *f);
    if (f == NULL) {
        luaL_unref(L, LUA_REGISTRYINDEX, reference);
        return luaL_error(L, "not enough memory");
    }
    f->db = db;
    f->reference = reference;
    status = perilune_sql_function(db->live, name, -1, is_deterministic, call_back, f, release);
    if (!ANSWERED(status))
        return db->live == NULL ? raise_unusable(L, db) : raise_status(L, db, status, NULL);
    return 0;
}

/* Runs the statement at 2 with the parameters behind it; pushes the userdata of its rows and the names of columns. */
static answer *run(lua_State *L)
{
    database *db = check_database(L, 1);
    perilune_value parameters[PARAMETERS_MAX], name;
    int count = lua_gettop(L) - 2, status;
    size_t size;
    if (lua_type(L, 2) != LUA_TSTRING)
        raise_argument(L, "a statement must be a string, not %s", described(L, 2));
    if (count > PARAMETERS_MAX)
        raise_argument(L, "a statement takes at most %d parameters here", PARAMETERS_MAX);
    for (int i = 0; i < count; i++)
        to_value(L, i + 3, "a parameter", &parameters[i]);
    const char *text = lua_tolstring(L, 2, &size);
    answer *a = new_userdata(L, sizeof *a);
    a->rows = NULL;
    a->next = 0;
    lua_pushlightuserdata(L, (void *)&rows_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    luaL_checkstack(L, STACK_FOR_CALLS, "functions of SQL");
    db->sql_state = L;
    TRY(status, L, db, NULL, perilune_sql_run(db->live, text, size, parameters, (size_t)count, &a->rows));
    size_t columns = perilune_sql_columns(a->rows);
    lua_createtable(L, (int)columns, 0);
    for (size_t i = 0; i < columns; i++) {
        perilune_sql_column(a->rows, i, &name);
        push_bytes(L, name.as.s.p, name.as.s.n);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return a;
}

/* Pushes a row as a table; the names of the columns are at `names`. NULL is what is not there. */
static void push_row(lua_State *L, const answer *a, size_t row, int names)
{
    perilune_value value;
    size_t columns = perilune_sql_columns(a->rows);
    lua_createtable(L, 0, (int)columns);
    for (size_t i = 0; i < columns; i++) {
        perilune_sql_value(a->rows, row, i, &value);
        if (value.type == PERILUNE_NULL)
            continue;
        lua_rawgeti(L, names, (int)i + 1);
        if (value.type == PERILUNE_BLOB)
            value.type = PERILUNE_STRING;
        push_value(L, &value);
        lua_rawset(L, -3);
    }
}

/* db:sql(text, ...): the rows and the names of columns; of a statement without rows how many it has changed and the number
 * of the row inserted last. */
static int database_sql(lua_State *L)
{
    answer *a = run(L);
    int names = lua_gettop(L);
    if (perilune_sql_columns(a->rows) == 0) {
        lua_pushinteger(L, (lua_Integer)perilune_sql_changes(a->rows));
        if (!push_integer(L, perilune_sql_last_row(a->rows)))
            lua_pushnumber(L, (lua_Number)perilune_sql_last_row(a->rows));
    } else {
        size_t count = perilune_sql_count(a->rows);
        lua_createtable(L, (int)(count < 1 << 20 ? count : 1 << 20), 0);
        for (size_t i = 0; i < count; i++) {
            push_row(L, a, i, names);
            lua_rawseti(L, -2, (int)i + 1);
        }
        lua_pushvalue(L, names);
    }
    perilune_sql_close(a->rows);
    a->rows = NULL;
    return 2;
}

static int next_row(lua_State *L)
{
    answer *a = lua_touserdata(L, lua_upvalueindex(1));
    if (a->next >= perilune_sql_count(a->rows)) {
        perilune_sql_close(a->rows);
        a->rows = NULL;
        return 0;
    }
    push_row(L, a, a->next++, lua_upvalueindex(2));
    return 1;
}

/* db:rows(text, ...): goes through the rows. */
static int database_rows(lua_State *L)
{
    run(L);
    lua_pushcclosure(L, next_row, 2);
    return 1;
}

const luaL_Reg sql_functions[] = {
    {"sql", database_sql}, {"rows", database_rows}, {"sql_function", database_sql_function}, {NULL, NULL}};

int open_sql(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&rows_key);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, answer_gc);
    lua_setfield(L, -2, "__gc");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pushlightuserdata(L, (void *)&invoke_key);
    lua_pushcfunction(L, invoke);
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pushlightuserdata(L, (void *)&describe_key);
    lua_pushcfunction(L, describe);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

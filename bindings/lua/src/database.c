/*
 * Databases: a userdata with a session; opening and closing, db.node, and what concerns the whole: snapshots,
 * checkpoints, figures, the names.
 *
 * Invariants
 * - One session for a database in a Lua state, made when it is opened; after fork() the child makes its own at its
 *   first call.
 * - A database lives as long as one of its classes; nodes do not outlive their class.
 * - db:close() inside a transaction is refused.
 */
#include "database.h"

#include "cache.h"
#include "errors.h"
#include "handles.h"
#include "light.h"
#include "nodes.h"
#include "values.h"

#include <stdlib.h>

static const char database_key, transaction_key;

void push_own_class(lua_State *L, int index)
{
    push_environment(L, index);
    lua_getfield(L, -1, "class");
    lua_remove(L, -2);
}

static int option(lua_State *L, const char *name, int type)
{
    lua_getfield(L, 2, name);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    if (lua_type(L, -1) != type)
        raise_argument(L, "option %s must be a %s, not %s", name, lua_typename(L, type), described(L, -1));
    return 1;
}

int durability_of(lua_State *L, int index)
{
    static const char *const names[] = {"none", "periodic", "fsync"};
    const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : "";
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0)
            return PERILUNE_DURABILITY_NONE + i;
    return raise_argument(L, "durability must be 'none', 'periodic' or 'fsync'");
}

/* A path ends at its first zero byte, so that another file would be opened than named. */
static void check_path(lua_State *L, int index, const char *what)
{
    size_t size = 0;
    const char *path = lua_tolstring(L, index, &size);
    if (strlen(path) != size)
        raise_argument(L, "%s must not contain a zero byte", what);
}

static void read_options(lua_State *L, perilune_options *options, char **shm_dir)
{
    static const char *const known[] = {"create",  "read_only", "durability", "max_size",
                                        "timeout", "file_mode", "shm_dir",    "any_filesystem",
                                        "accept_lost_commits", "wait_limit"};
    if (lua_isnoneornil(L, 2))
        return;
    if (!lua_istable(L, 2))
        raise_argument(L, "options must be a table, not %s", described(L, 2));
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        int found = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), known[i]) == 0;
        if (!found)
            raise_argument(L, "unknown option '%s'; there are create, read_only, durability, max_size, timeout, "
                              "file_mode, shm_dir, any_filesystem, accept_lost_commits, wait_limit",
                           lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2));
    }
    if (option(L, "create", LUA_TBOOLEAN))
        options->create = lua_toboolean(L, -1);
    if (option(L, "read_only", LUA_TBOOLEAN))
        options->read_only = lua_toboolean(L, -1);
    if (option(L, "durability", LUA_TSTRING))
        options->durability = durability_of(L, -1);
    if (option(L, "timeout", LUA_TNUMBER))
        options->timeout = lua_tonumber(L, -1);
    if (option(L, "wait_limit", LUA_TNUMBER))
        options->wait_limit = lua_tonumber(L, -1);
    if (option(L, "any_filesystem", LUA_TBOOLEAN))
        options->any_filesystem = lua_toboolean(L, -1);
    if (option(L, "accept_lost_commits", LUA_TBOOLEAN))
        options->accept_lost_commits = lua_toboolean(L, -1);
    int64_t number = 0;
    if (option(L, "max_size", LUA_TNUMBER)) {
        if (!integral(L, -1, &number) || number < 0)
            raise_argument(L, "option max_size must be a number of bytes");
        options->max_size = (uint64_t)number;
    }
    if (option(L, "file_mode", LUA_TNUMBER)) {
        if (!integral(L, -1, &number) || number < 0 || number > 0777)
            raise_argument(L, "option file_mode must be permissions, as tonumber('640', 8)");
        options->file_mode = (uint32_t)number;
    }
    if (option(L, "shm_dir", LUA_TSTRING)) {
        check_path(L, -1, "option shm_dir");
        *shm_dir = strdup(lua_tostring(L, -1));
        options->shm_dir = *shm_dir;
    }
}

/* db.node(name, ...): upvalue 5 is the database's first class. */
static int database_node(lua_State *L)
{
    int class = lua_upvalueindex(UPVALUES + 1);
    handle h;
    if (to_database(L, 1) != NULL)
        lua_remove(L, 1);
    database *db = push_class_database(L, class);
    lua_pop(L, 1);
    if (db->session == NULL)
        return raise_unusable(L, db);
    if (lua_type(L, 1) != LUA_TSTRING && to_handle(L, 1, &h)) {
        int last = lua_gettop(L);
        push_node(L, h.db, class, h.key);
        descend(L, 2, last);
        return 1;
    }
    lua_pushvalue(L, class);
    lua_insert(L, 1);
    push_named(L, db, 1, 2, 3);
    return 1;
}

/* Pushes a metatable for one database, whose __index is a table: LuaJIT compiles its use, and a call
 * db:get() costs no C function for finding `get`. */
static void push_metatable(lua_State *L, int environment)
{
    lua_createtable(L, 0, 8);
    lua_pushlightuserdata(L, (void *)&database_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -6);
    }
    lua_createtable(L, 0, 1);
    lua_getfield(L, -2, "methods");
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, environment);
    lua_pop(L, 1);
    lua_pushvalue(L, environment);
    lua_setfield(L, -2, "__index");
}

/* Pushes a database, at index 3, that nothing is open of yet; from here on __gc frees what is. */
static database *new_database(lua_State *L)
{
    database *db = new_userdata_with_environment(L, sizeof *db);
    memset(db, 0, sizeof *db);
    db->state = state_of(L);
    db->magic = DATABASE_MAGIC;
    lua_pushlightuserdata(L, (void *)&database_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, 3);
    return db;
}

/* Gives the database at index 3, whose session is open, its functions; returns it. */
static int furnish(lua_State *L, database *db)
{
    db->live = db->session;
    lua_createtable(L, 0, 4);
    push_new_class(L, db, 0, 3);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushvalue(L, -UPVALUES - 1);
    lua_pushcclosure(L, database_node, UPVALUES + 1);
    lua_setfield(L, -3, "node");
    lua_setfield(L, -2, "class");
    lua_createtable(L, 0, 1); /* tx, which a transaction's function gets */
    lua_pushvalue(L, 3);
    lua_setfield(L, -2, "db");
    lua_pushlightuserdata(L, (void *)&transaction_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "tx");
    push_metatable(L, 4);
    lua_setmetatable(L, 3);
    set_environment(L, 3);
    return 1;
}

/* perilune.open([path[, options]]) */
static int open_database(lua_State *L)
{
    perilune_options options = PERILUNE_OPTIONS_INIT;
    char *shm_dir = NULL;
    lua_settop(L, 2);
    if (lua_istable(L, 1) && lua_isnil(L, 2))
        lua_insert(L, 1);
    if (!lua_isnil(L, 1) && lua_type(L, 1) != LUA_TSTRING)
        return raise_argument(L, "a path must be a string, not %s", described(L, 1));
    if (!lua_isnil(L, 1))
        check_path(L, 1, "a path");
    read_options(L, &options, &shm_dir);
    lua_settop(L, 2);
    database *db = new_database(L);
    db->options = options;
    db->shm_dir = shm_dir;
    int status = perilune_open(lua_tostring(L, 1), &options, &db->db);
    if (ANSWERED(status)) {
        db->path = strdup(perilune_path(db->db));
        db->is_remote = perilune_is_remote(db->db);
        status = perilune_session_open(db->db, &db->session);
    }
    if (!ANSWERED(status))
        return raise_thread(L, status);
    return furnish(L, db);
}

/* db:snapshot(): the database as it is now, to be read. */
static int database_snapshot(lua_State *L)
{
    database *of = check_database(L, 1);
    lua_settop(L, 2);
    if (of->live == NULL)
        return raise_unusable(L, of);
    if (of->db == NULL)
        return raise_argument(L, "a snapshot has no snapshots: take another of the database itself");
    database *db = new_database(L);
    db->is_snapshot = 1;
    db->path = strdup(of->path);
    int status = perilune_snapshot_open(of->db, &db->session);
    if (!ANSWERED(status))
        return raise_thread(L, status);
    return furnish(L, db);
}

/* db:checkpoint(): whether anything had changed since the last one. */
static int database_checkpoint(lua_State *L)
{
    database *db = check_database(L, 1);
    int taken = 0;
    int status;
    TRY(status, L, db, NULL, perilune_checkpoint(db->live, &taken));
    lua_pushboolean(L, taken);
    return 1;
}

static void end(database *db)
{
    perilune_session *session = db->session;
    perilune_db *opened = db->db;
    db->session = NULL;
    db->live = NULL;
    db->db = NULL;
    if (session != NULL)
        perilune_session_close(session);
    if (opened != NULL)
        perilune_close(opened);
    free(db->path);
    free(db->shm_dir);
    db->path = NULL;
    db->shm_dir = NULL;
}

static int database_close(lua_State *L)
{
    database *db = check_database(L, 1);
    if (db->session == NULL)
        return 0;
    if (perilune_depth(db->session) > 0)
        return raise_argument(L, "a database cannot be closed inside a transaction: leave its function first");
    if (db->in_sql > 0)
        return raise_argument(L, "a database cannot be closed by a function that its statement calls");
    db->sql_state = L;
    forget_cached(L, db);
    forget_places(L, db);
    end(db);
    return 0;
}

/* NB: at the end of a Lua state nodes may be collected after their database; they are not used then. */
static int database_gc(lua_State *L)
{
    database *db = to_database(L, 1);
    if (db != NULL) {
        db->sql_state = L;
        end(db);
    }
    return 0;
}

static int database_tostring(lua_State *L)
{
    database *db = to_database(L, 1);
    if (db == NULL || db->path == NULL)
        lua_pushliteral(L, "perilune.database (closed)");
    else
        lua_pushfstring(L, "perilune.database (%s)", db->path);
    return 1;
}

static int database_path(lua_State *L)
{
    database *db = check_database(L, 1);
    lua_pushstring(L, db->path);
    return 1;
}

/*
 * db:stat(): what an operator wants to know, as a table. The library's object is flat: names of letters and
 * underscores, numbers without a sign, texts without a quote.
 */
static int database_stat(lua_State *L)
{
    database *db = check_database(L, 1);
    perilune_value json;
    int status;
    TRY(status, L, db, NULL, perilune_stat(db->live, &json));
    push_value(L, &json);
    const char *at = lua_tostring(L, -1), *end;
    lua_newtable(L);
    while ((at = strchr(at, '"')) != NULL && (end = strchr(++at, '"')) != NULL && end[1] == ':') {
        lua_pushlstring(L, at, (size_t)(end - at));
        at = end + 2;
        if (*at == '"') {
            end = strchr(++at, '"');
            lua_pushlstring(L, at, end == NULL ? 0 : (size_t)(end - at));
            at = end == NULL ? "" : end + 1;
        } else {
            char *rest;
            lua_pushinteger(L, (lua_Integer)strtoull(at, &rest, 10));
            at = rest;
        }
        lua_rawset(L, -3);
    }
    return 1;
}

/* db:verify(): true, or nil, the number of faults and their text. */
static int database_verify(lua_State *L)
{
    database *db = check_database(L, 1);
    uint64_t faults = 0;
    perilune_value report;
    int status;
    TRY(status, L, db, NULL, perilune_verify(db->live, &faults, &report));
    if (faults == 0) {
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushnil(L);
    lua_pushnumber(L, (lua_Number)faults);
    push_value(L, &report);
    return 3;
}

/* One step of db:names(): the next name after the one given. */
static int next_name(lua_State *L)
{
    database *db = check_database(L, 1);
    size_t size;
    perilune_value next;
    int status;
    const char *name = lua_tolstring(L, 2, &size);
    if (name == NULL)
        return raise_argument(L, "a name must be a string");
    TRY(status, L, db, NULL, perilune_name_next(db->live, name, size, &next));
    if (status == PERILUNE_NOT_FOUND)
        lua_pushnil(L);
    else
        push_value(L, &next);
    return 1;
}

/* db:names([private]): goes through the names in the database, or the private ones. */
static int database_names(lua_State *L)
{
    check_database(L, 1);
    int private = lua_toboolean(L, 2);
    lua_settop(L, 1);
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushcclosure(L, next_name, UPVALUES);
    lua_insert(L, 1);
    lua_pushstring(L, private ? "" : "^");
    return 3;
}

database *push_default(lua_State *L)
{
    state *s = state_of(L);
    if (s->default_db != LUA_NOREF) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, s->default_db);
        database *db = to_database(L, -1);
        if (db->session != NULL)
            return db;
        lua_pop(L, 1);
        luaL_unref(L, LUA_REGISTRYINDEX, s->default_db);
        s->default_db = LUA_NOREF;
    }
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    lua_pushcclosure(L, open_database, UPVALUES);
    lua_call(L, 0, 1);
    lua_pushvalue(L, -1);
    s->default_db = luaL_ref(L, LUA_REGISTRYINDEX);
    return to_database(L, -1);
}

/* perilune.use([db or path[, options]]): makes a database the default one; returns the default one. */
static int use(lua_State *L)
{
    state *s = state_of(L);
    if (lua_isnoneornil(L, 1)) {
        push_default(L);
        return 1;
    }
    if (lua_type(L, 1) == LUA_TSTRING) {
        int count = lua_gettop(L);
        for (int i = 1; i <= UPVALUES; i++)
            lua_pushvalue(L, lua_upvalueindex(i));
        lua_pushcclosure(L, open_database, UPVALUES);
        lua_insert(L, 1);
        lua_call(L, count, 1);
    }
    check_database(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, s->default_db);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    s->default_db = luaL_ref(L, LUA_REGISTRYINDEX);
    return 1;
}

/* perilune.node(...): db.node of the default database. */
static int default_node(lua_State *L)
{
    push_default(L);
    push_environment(L, -1);
    lua_getfield(L, -1, "node");
    lua_insert(L, 1);
    lua_pop(L, 2);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static const luaL_Reg database_functions[] = {{"close", database_close}, {"path", database_path},   {"stat", database_stat},
                                       {"verify", database_verify}, {"names", database_names},
                                       {"snapshot", database_snapshot}, {"checkpoint", database_checkpoint},
                                       {NULL, NULL}};

static int install_sigbus(lua_State *L)
{
    int status = perilune_install_sigbus();
    return status == PERILUNE_OK ? 0 : raise_thread(L, status);
}

static void add(lua_State *L, const luaL_Reg *functions)
{
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    set_functions(L, functions, UPVALUES);
}

int open_databases(lua_State *L, const luaL_Reg *const *more)
{
    const luaL_Reg functions[] = {{"open", open_database}, {"use", use}, {"node", default_node},
                                  {"install_sigbus", install_sigbus}, {NULL, NULL}};
    const luaL_Reg meta[] = {
        {"__gc", database_gc}, {"__close", database_close}, {"__tostring", database_tostring}, {NULL, NULL}};
    add(L, functions);
    lua_pushlightuserdata(L, (void *)&database_key);
    lua_createtable(L, 0, 6);
    add(L, meta);
    lua_createtable(L, 0, 24);
    add(L, database_functions);
    for (const luaL_Reg *const *functions_of = more; *functions_of != NULL; functions_of++)
        add(L, *functions_of);
    lua_setfield(L, -2, "methods");
    lua_pushliteral(L, "perilune.database");
    lua_setfield(L, -2, "__name");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pushlightuserdata(L, (void *)&transaction_key);
    lua_createtable(L, 0, 2);
    lua_createtable(L, 0, 8);
    add(L, more[0]);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "perilune.transaction");
    lua_setfield(L, -2, "__name");
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

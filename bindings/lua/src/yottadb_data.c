/*
 * Values: get, set, data, delete, incr, and which session a call uses.
 *
 * Invariants
 * - Values come back as text; a Lua number is stored as the number that it is.
 * - Special variables ($name) are answered by functions written in Lua (HOOKS).
 */
#include "yottadb_data.h"

#include "errors.h"
#include "handles.h"
#include "yottadb_address.h"

database *current_database(lua_State *L)
{
    state *s = state_of(L);
    if (s->default_db != LUA_NOREF) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, s->default_db);
        database *db = to_database(L, -1);
        lua_pop(L, 1);
        if (db != NULL && db->session != NULL)
            return db;
    }
    luaL_checkstack(L, 8, "database");
    lua_getfield(L, HOOKS_INDEX, "open");
    lua_call(L, 0, 1);
    database *db = to_database(L, -1);
    lua_pop(L, 1);
    if (db == NULL || db->session == NULL)
        luaL_error(L, "no database is open");
    return db;
}

static perilune_session *locals_of(lua_State *L)
{
    layer *y = layer_of(L);
    if (y->locals == NULL) {
        database *db = current_database(L);
        int status = perilune_session_open(db->db, &y->locals);
        if (status == PERILUNE_FORKED && reopened(L, db))
            status = perilune_session_open(db->db, &y->locals);
        if (!ANSWERED(status)) {
            y->locals = NULL;
            raise_thread(L, status);
        }
    }
    return y->locals;
}

perilune_session *session_for(lua_State *L, address *at)
{
    switch (at->kind) {
    case KIND_LOCAL:
        return locals_of(L);
    case KIND_GLOBAL:
        at->db = current_database(L);
        if (at->db->live == NULL)
            raise_doomed(L, at->db);
        return at->db->live;
    case KIND_ISV:
        raise_code(L, at->key->depth > 0 ? CODE_ISVSUBSCRIPTED : CODE_ISVUNSUPPORTED);
        return NULL;
    default:
        raise_code(L, at->code);
        return NULL;
    }
}

/* After fork() the child has a session of its own; the local variables were the parent's. */
int after_fork(lua_State *L, address *at)
{
    if (at->kind == KIND_LOCAL) {
        layer_of(L)->locals = NULL;
        locals_of(L);
        return 1;
    }
    return reopened(L, at->db);
}

/* Calls a hook with the name of a special variable, and with the value at the top if `with_value`. */
static int special(lua_State *L, const address *at, const char *hook, int with_value)
{
    if (at->key->depth > 0)
        return raise_code(L, CODE_ISVSUBSCRIPTED);
    lua_getfield(L, HOOKS_INDEX, hook);
    lua_pushlstring(L, at->name, at->name_size);
    if (with_value)
        lua_pushvalue(L, -3);
    lua_call(L, 1 + with_value, 1);
    return 1;
}

/* get(varname|node, ...) */
static int get(lua_State *L)
{
    address at;
    perilune_value value;
    int status;
    resolve(L, 1, lua_gettop(L), &at);
    if (at.kind == KIND_ISV)
        return special(L, &at, "get", 0);
    ON(status, L, &at, perilune_get(session, at.key, &value));
    if (status != PERILUNE_OK)
        lua_pushnil(L);
    else
        push_text(L, &value);
    return 1;
}

/* Reads the number at `index` and leaves its text at the top. */
static void to_number(lua_State *L, int index, const char *what, perilune_value *value)
{
    size_t size;
    int64_t integer = 0;
    push_number_text(L, index, what);
    if (integral(L, index, &integer)) {
        *value = perilune_int(integer);
        return;
    }
    const char *text = lua_tolstring(L, -1, &size);
    *value = perilune_decimal(text, size);
}

/* set(varname|node, ..., value): returns the value as text. */
static int set(lua_State *L)
{
    address at;
    perilune_value value = perilune_absent();
    int last = lua_gettop(L), status;
    if (last < 2 || (last == 2 && lua_istable(L, 2)))
        return luaL_error(L, "bad argument #%d to 'yottadb.set' (string expected, got %s)", last < 2 ? 2 : 3,
                          "no value");
    resolve(L, 1, last - 1, &at);
    switch (lua_type(L, last)) {
    case LUA_TNIL:
        lua_pushnil(L);
        break;
    case LUA_TNUMBER:
        to_number(L, last, "a value", &value);
        break;
    case LUA_TSTRING:
        value = perilune_string(NULL, 0);
        value.as.s.p = lua_tolstring(L, last, &value.as.s.n);
        if (value.as.s.n > MAX_STR)
            return raise_code(L, CODE_INVSTRLEN);
        lua_pushvalue(L, last);
        break;
    default:
        return luaL_error(L, "bad argument #%d to 'yottadb.set' (string expected, got %s)", last, luaL_typename(L, last));
    }
    int text = lua_gettop(L);
    if (at.kind == KIND_ISV)
        return special(L, &at, "set", 1);
    ON(status, L, &at, perilune_set(session, at.key, &value));
    lua_settop(L, text);
    return 1;
}

int value_or_default(lua_State *L)
{
    address at;
    perilune_value value;
    int status;
    lua_settop(L, 2);
    resolve(L, 1, 1, &at);
    if (at.kind == KIND_ISV) {
        special(L, &at, "get", 0);
    } else {
        ON(status, L, &at, perilune_get(session, at.key, &value));
        if (status != PERILUNE_OK)
            return 1;
        push_text(L, &value);
    }
    return 1;
}

int assign(lua_State *L)
{
    lua_settop(L, 2);
    return set(L);
}

/* data(varname|node, ...): 0, 1, 10 or 11. */
static int data(lua_State *L)
{
    address at;
    int32_t found = 0;
    int status;
    resolve(L, 1, lua_gettop(L), &at);
    ON(status, L, &at, perilune_data(session, at.key, &found));
    lua_pushinteger(L, found);
    return 1;
}

static int remove_at(lua_State *L, address *at, int tree)
{
    int status;
    if (tree)
        ON(status, L, at, perilune_kill(session, at->key));
    else
        ON(status, L, at, perilune_delete(session, at->key));
    return 0;
}

/* delete(varname|node, ...[, tree]): the value, or with true the whole tree. */
static int delete(lua_State *L)
{
    address at;
    int last = lua_gettop(L), tree = 0;
    if (last > 1 && (lua_isboolean(L, last) || lua_isnil(L, last)))
        tree = lua_toboolean(L, last--);
    resolve(L, 1, last, &at);
    return remove_at(L, &at, tree);
}

/* kill(varname|node, ...): exactly that node and what is below. */
static int kill(lua_State *L)
{
    address at;
    resolve(L, 1, lua_gettop(L), &at);
    return remove_at(L, &at, 1);
}

/* Reads the increment at `index`. */
static void to_increment(lua_State *L, int index, perilune_value *by)
{
    size_t size;
    *by = perilune_int(1);
    switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
    case LUA_TTABLE:
        return;
    case LUA_TNUMBER:
        to_number(L, index, "an increment", by);
        return;
    case LUA_TSTRING:
        break;
    default:
        luaL_error(L, "bad argument #%d to 'yottadb.incr' (string expected, got %s)", index, luaL_typename(L, index));
    }
    const char *text = lua_tolstring(L, index, &size);
    if (size == 0)
        return;
    if (size > MAX_STR)
        raise_code(L, CODE_NUMOFLOW);
    int status = perilune_number_lenient(text, size, by);
    if (!ANSWERED(status))
        raise_perilune(L, NULL, status);
}

/* incr(varname[, {subs}][, by]), incr(varname, sub..., by), incr(node[, by]): the new value. */
static int incr(lua_State *L)
{
    address at;
    perilune_value by, result;
    int status, top = lua_gettop(L), last = top;
    int listed = lua_istable(L, 2);
    if (top > 1 + listed)
        last--;
    resolve(L, 1, last, &at);
    if (at.kind != KIND_ISV)
        session_for(L, &at); /* what may run Lua is done before a number is read */
    to_increment(L, last < top ? top : lua_gettop(L) + 1, &by);
    ON(status, L, &at, perilune_incr_truncating(session, at.key, &by, &result));
    push_text(L, &result);
    return 1;
}

/* Copies the local tree `from` to `to`, names without subscripts, and kills `from` if asked to. */
static int move_local(lua_State *L)
{
    uint64_t blocks[2][48];
    address at = {.kind = KIND_LOCAL};
    int status;
    for (int i = 0; i < 2; i++) {
        size_t size;
        const char *name = luaL_checklstring(L, i + 1, &size);
        status = perilune_node_root(blocks[i], sizeof blocks[i], name, size, NULL);
        if (status != PERILUNE_OK)
            return raise_perilune(L, &at, status);
    }
    at.key = (perilune_node *)blocks[0];
    ON(status, L, &at, perilune_copy(session, at.key, (perilune_node *)blocks[1]));
    if (lua_toboolean(L, 3))
        ON(status, L, &at, perilune_kill(session, at.key));
    return 0;
}

/* judge(name): kind of the name and what is wrong with it, as raised when it is used; for lists of names. */
static int judge(lua_State *L)
{
    size_t size;
    int code;
    const char *name = luaL_checklstring(L, 1, &size);
    int kind = kind_of(name, size, &code);
    lua_pushinteger(L, kind);
    lua_pushinteger(L, code);
    return 2;
}

const luaL_Reg value_functions[] = {{"get", get},   {"set", set},   {"data", data},   {"delete", delete},
                                    {"kill", kill}, {"incr", incr}, {"move_local", move_local}, {"judge", judge},
                                    {"value_or_default", value_or_default}, {"assign", assign},
                                    {NULL, NULL}};

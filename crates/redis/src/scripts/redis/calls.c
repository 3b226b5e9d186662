/*
 * The library `redis`, and `client` of LUA: commands, errors, logs.
 *
 * Errors of commands are raised as their text, without a place, as pcall() gives them in Redis 7.
 */
#include "calls.h"

#include "replies.h"

#include <ask.h>
#include <buffer.h>
#include <failure.h>
#include <proxy.h>
#include <values.h>

#include <stdio.h>

enum { LOGGED_BYTES = 1024 /* of what redis.log() is given */ };

static int push_error(lua_State *L, const char *message)
{
    lua_createtable(L, 0, 2);
    lua_pushstring(L, message);
    lua_setfield(L, -2, "err");
    return 1;
}

static int refuse(lua_State *L, const char *message)
{
    return raise_plain(sandbox_of(L), L, (text){message, strlen(message)});
}

/* Raises while a library is loaded: then there is no such function. */
static void check_loaded(const sandbox *S, lua_State *L, const char *name)
{
    if (S->run != NULL && S->run->loading)
        luaL_error(L, ABSENT_GLOBAL, name);
}

/* Answers an error as redis.call() or redis.pcall() does. */
static int fail(sandbox *S, lua_State *L, int raise, const char *message)
{
    if (raise)
        return raise_plain(S, L, (text){message, strlen(message)});
    push_error(L, message);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "ignore_error_stats_update");
    return 1;
}

/* Runs the command that all values are. */
static int run_command(sandbox *S, lua_State *L, int raise)
{
    int last = lua_gettop(L);
    if (last < 1)
        return fail(S, L, raise, "ERR Please specify at least one argument for this redis lib call");
    if (!collect(S, L, 1, last))
        return fail(S, L, raise, "ERR Lua redis lib command arguments must be strings or integers");
    const redis *own = redis_of(S);
    text reply = ask(S, L, own->number, own->protocol == 3 ? ASK_CALL3 : ASK_CALL, (size_t)last);
    if (raise && reply.length > 3 && reply.bytes[0] == '-')
        return raise_plain(S, L, (text){reply.bytes + 1, reply.length - 3});
    push_reply(S, L, reply);
    forget_answer(S);
    return 1;
}

static int redis_call(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    check_loaded(S, L, "call");
    return run_command(S, L, 1);
}

static int redis_pcall(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    check_loaded(S, L, "pcall");
    return run_command(S, L, 0);
}

/* redis.get(...): upvalue 1 is the command's name. */
static int named_call(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return run_command(sandbox_of(L), L, 1);
}

static int client_call(lua_State *L)
{
    return run_command(sandbox_of(L), L, 1);
}

/* __index of the library: each command is a function. */
static int find_command(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    if (lua_type(L, 2) != LUA_TSTRING || !collect(S, L, 2, 2))
        return 0;
    if (S->run == NULL || ask(S, L, redis_of(S)->number, ASK_COMMAND, 1).length == 0)
        return 0;
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, named_call, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, 1);
    return 1;
}

static int one_string(lua_State *L)
{
    return lua_gettop(L) == 1 && lua_type(L, 1) == LUA_TSTRING;
}

static int redis_error_reply(lua_State *L)
{
    if (!one_string(L))
        return push_error(L, "ERR wrong number or type of arguments");
    /* A single word is a message and not a code. */
    size_t length;
    const char *message = lua_tolstring(L, 1, &length);
    if (length > 0 && message[0] == '-')
        message++;
    if (strchr(message, ' ') == NULL)
        lua_pushfstring(L, "ERR %s", message);
    else
        lua_pushstring(L, message);
    lua_createtable(L, 0, 1);
    lua_insert(L, -2);
    lua_setfield(L, -2, "err");
    return 1;
}

static int redis_status_reply(lua_State *L)
{
    if (!one_string(L))
        return push_error(L, "ERR wrong number or type of arguments");
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "ok");
    return 1;
}

static int redis_sha1hex(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    if (lua_gettop(L) != 1)
        return refuse(L, "ERR wrong number of arguments");
    if (!collect(S, L, 1, 1))
        S->spans[0][0] = S->spans[0][1] = 0;
    text digits = ask(S, L, redis_of(S)->number, ASK_SHA1, 1);
    lua_pushlstring(L, digits.bytes, digits.length);
    return 1;
}

static int redis_log(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int last = lua_gettop(L);
    if (last < 2)
        return refuse(L, "ERR redis.log() requires two arguments or more.");
    if (!lua_isnumber(L, 1))
        return refuse(L, "ERR First argument must be a number (log level).");
    lua_Number level = lua_tonumber(L, 1);
    if (!(level >= 0 && level <= 3))
        return refuse(L, "ERR Invalid debug level.");
    /* As much as a line of the log shows. */
    S->scratch.length = 0;
    for (int i = 2; i <= last && S->scratch.length < LOGGED_BYTES; i++) {
        size_t length, left = LOGGED_BYTES - S->scratch.length;
        if (!lua_isstring(L, i))
            continue;
        if (i > 2)
            buffer_byte(S, L, &S->scratch, ' ');
        const char *word = lua_tolstring(L, i, &length);
        buffer_put(S, L, &S->scratch, word, length < left ? length : left);
    }
    lua_pushlstring(L, S->scratch.bytes == NULL ? "" : S->scratch.bytes, S->scratch.length);
    lua_pushnumber(L, (lua_Number)(int)level);
    lua_insert(L, -2);
    collect(S, L, lua_gettop(L) - 1, lua_gettop(L));
    ask(S, L, redis_of(S)->number, ASK_LOG, 2);
    return 0;
}

static int redis_setresp(lua_State *L)
{
    check_loaded(sandbox_of(L), L, "setresp");
    if (lua_gettop(L) != 1)
        return refuse(L, "ERR redis.setresp() requires one argument.");
    lua_Number wanted = lua_tonumber(L, 1);
    if (wanted != 2 && wanted != 3)
        return refuse(L, "ERR RESP version must be 2 or 3.");
    redis_of(sandbox_of(L))->protocol = (int)wanted;
    return 0;
}

static int redis_set_repl(lua_State *L)
{
    check_loaded(sandbox_of(L), L, "set_repl");
    if (lua_gettop(L) != 1)
        return refuse(L, "ERR redis.set_repl() requires two arguments.");
    lua_Number flags = lua_tonumber(L, 1);
    if (!(flags >= 0 && flags <= 3))
        return refuse(L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    return 0;
}

static int redis_replicate_commands(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

/* There is no debugger: scripts go on. */
static int redis_breakpoint(lua_State *L)
{
    lua_pushboolean(L, 0);
    return 1;
}

static int redis_debug(lua_State *L)
{
    (void)L;
    return 0;
}

static int redis_acl_check_cmd(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int last = lua_gettop(L);
    if (last < 1)
        return refuse(L, "ERR Please specify at least one argument for this redis lib call");
    if (!collect(S, L, 1, last))
        return refuse(L, "ERR Lua redis lib command arguments must be strings or integers");
    text may = ask(S, L, redis_of(S)->number, ASK_ALLOWED, (size_t)last);
    if (may.length == 0)
        return refuse(L, "ERR Invalid command passed to redis.acl_check_cmd()");
    lua_pushboolean(L, may.bytes[0] == '1');
    return 1;
}

/* Copies field `name` of the table at 1 to the top. */
static void take(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, 1);
}

/* redis.register_function(name, function), or of a table with function_name, callback, flags, description. */
static int register_function(lua_State *L)
{
    sandbox *S = sandbox_of(L);
    int count = lua_gettop(L);
    if (S->run == NULL || !S->run->loading)
        return refuse(L, "ERR redis.register_function can only be called on FUNCTION LOAD command");
    if (count < 1 || count > 2)
        return refuse(L, "ERR wrong number of arguments to redis.register_function");
    int flags = 0;
    if (count == 1) {
        if (!lua_istable(L, 1))
            return refuse(L, "ERR calling redis.register_function with a single argument is only applicable to Lua "
                             "table (representing named arguments).");
        for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
            const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
            if (key == NULL)
                return refuse(L, "ERR named argument key given to redis.register_function is not a string");
            if (strcmp(key, "function_name") != 0 && strcmp(key, "callback") != 0 && strcmp(key, "flags") != 0 &&
                strcmp(key, "description") != 0)
                return refuse(L, "ERR unknown argument given to redis.register_function");
        }
        take(L, "flags");
        if (!lua_isnil(L, -1) && !lua_istable(L, -1))
            return refuse(L, "ERR flags argument to redis.register_function must be a table representing function flags");
        flags = lua_istable(L, -1) ? lua_gettop(L) : 0;
        take(L, "function_name");
        if (lua_isnil(L, -1))
            return refuse(L, "ERR redis.register_function must get a function name argument");
        take(L, "callback");
        if (lua_isnil(L, -1))
            return refuse(L, "ERR redis.register_function must get a callback argument");
        take(L, "description");
    } else {
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 2);
        lua_pushnil(L);
    }
    int name = lua_gettop(L) - 2;
    if (lua_type(L, name) != LUA_TSTRING)
        return refuse(L, count == 1 ? "ERR function_name argument given to redis.register_function must be a string"
                                    : "ERR first argument to redis.register_function must be a string");
    if (!lua_isfunction(L, name + 1) || lua_iscfunction(L, name + 1))
        return refuse(L, count == 1 ? "ERR callback argument given to redis.register_function must be a function"
                                    : "ERR second argument to redis.register_function must be a function");
    if (!lua_isnil(L, name + 2) && lua_type(L, name + 2) != LUA_TSTRING)
        return refuse(L, "ERR description argument given to redis.register_function must be a string");
    lua_pushvalue(L, name + 1);
    int reference = luaL_ref(L, LUA_REGISTRYINDEX);
    int first = lua_gettop(L) + 1;
    lua_pushinteger(L, reference);
    lua_pushvalue(L, name);
    if (lua_isnil(L, name + 2))
        lua_pushliteral(L, "");
    else
        lua_pushvalue(L, name + 2);
    for (int i = 1; flags != 0; i++) {
        luaL_checkstack(L, 4, "too many flags");
        lua_rawgeti(L, flags, i);
        if (lua_type(L, -1) != LUA_TSTRING) {
            int end = lua_isnil(L, -1);
            lua_pop(L, 1);
            if (!end)
                return refuse(L, "ERR unknown flag given");
            break;
        }
    }
    collect(S, L, first, lua_gettop(L));
    text refusal = ask(S, L, redis_of(S)->number, ASK_REGISTER, (size_t)(lua_gettop(L) - first + 1));
    if (refusal.length > 0)
        return raise_plain(S, L, refusal);
    return 0;
}

static const luaL_Reg functions[] = {
    {"acl_check_cmd", redis_acl_check_cmd},
    {"breakpoint", redis_breakpoint},
    {"call", redis_call},
    {"debug", redis_debug},
    {"error_reply", redis_error_reply},
    {"log", redis_log},
    {"pcall", redis_pcall},
    {"replicate_commands", redis_replicate_commands},
    {"set_repl", redis_set_repl},
    {"setresp", redis_setresp},
    {"sha1hex", redis_sha1hex},
    {"status_reply", redis_status_reply},
    {NULL, NULL},
};

/* __index of the library that is loaded: upvalue 1 is what scripts have. */
static int find_in_library(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    lua_gettable(L, lua_upvalueindex(1));
    if (lua_isnil(L, -1))
        return luaL_error(L, ABSENT_GLOBAL, lua_isstring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2));
    return 1;
}

/* Pushes what `redis` is while functions are defined; at the top is what it is else. */
static void push_registration(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, register_function);
    lua_setfield(L, -2, "register_function");
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, find_in_library, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

/* Pushes what scripts have as `redis`. */
static void push_calls(lua_State *L)
{
    static const struct {
        const char *name;
        int number;
    } numbers[] = {{"LOG_DEBUG", 0}, {"LOG_VERBOSE", 1}, {"LOG_NOTICE", 2}, {"LOG_WARNING", 3},
                   {"REPL_NONE", 0}, {"REPL_AOF", 1},    {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2},
                   {"REPL_ALL", 3},  {"REDIS_VERSION_NUM", 0x07000F}};
    lua_newtable(L);
    for (const luaL_Reg *f = functions; f->name != NULL; f++) {
        lua_pushcfunction(L, f->func);
        lua_setfield(L, -2, f->name);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, numbers[i].number);
        lua_setfield(L, -2, numbers[i].name);
    }
    lua_pushliteral(L, "7.0.15");
    lua_setfield(L, -2, "REDIS_VERSION");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, find_command);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

static void open_redis(sandbox *S, int number, int globals)
{
    static const char *const words[WORDS] = {
        [WORD_OK] = "ok", [WORD_DONE] = "OK", [WORD_ERR] = "err", [WORD_DOUBLE] = "double",
        [WORD_MAP] = "map", [WORD_SET] = "set", [WORD_BIG_NUMBER] = "big_number", [WORD_VERBATIM] = "verbatim_string"};
    lua_State *L = S->L;
    redis *own = lua_newuserdata(L, sizeof *own);
    luaL_ref(L, LUA_REGISTRYINDEX);
    own->number = number;
    own->protocol = 2;
    for (size_t i = 0; i < WORDS; i++) {
        lua_pushstring(L, words[i]);
        own->words[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    push_calls(L);
    replace_by_proxy(L);
    push_registration(L);
    replace_by_proxy(L);
    own->registration = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, -1);
    own->scripts = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_setfield(L, globals, "redis");
    lua_pushcfunction(L, client_call);
    lua_setfield(L, globals, "client");
    S->own = own;
}

const library redis_library = {"redis", open_redis, NULL, 0};

/* NB: the name has its place in the globals, so that nothing is allocated. */
static void choose(const sandbox *S, int reference)
{
    lua_State *L = S->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->globals);
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    lua_setfield(L, -2, "redis");
    lua_pop(L, 1);
}

static void begin(sandbox *S)
{
    redis_of(S)->protocol = 2;
    if (S->run->loading)
        choose(S, redis_of(S)->registration);
}

static void end(sandbox *S)
{
    if (S->run->loading)
        choose(S, redis_of(S)->scripts);
}

static void write_result(sandbox *S, lua_State *L, int index)
{
    write_reply(S, L, index, S->run->variant);
}

/* Text of an error that no command has answered begins with ERR; whatever it is, its place follows. */
static void write_failure(sandbox *S, lua_State *L)
{
    text message = plain_message(S, L, 1);
    if (lua_istable(L, 1)) {
        push_word(S, L, WORD_ERR);
        lua_rawget(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING)
            message.bytes = lua_tolstring(L, -1, &message.length);
    }
    if (message.bytes == NULL) {
        buffer_put(S, L, &S->scratch, "ERR ", 4);
        if (S->tail && S->source[0] == '@' && lua_type(L, 1) == LUA_TSTRING) {
            char place[96];
            int length = snprintf(place, sizeof place, "%s:%d: ", S->source + 1, S->line);
            buffer_put(S, L, &S->scratch, place, (size_t)length);
        }
        message = any_message(L, 1);
    }
    buffer_put(S, L, &S->scratch, message.bytes, message.length);
    if (S->line > 0) {
        char place[128];
        buffer_put(S, L, &S->scratch, " script: ", 9);
        buffer_put(S, L, &S->scratch, S->run->name.bytes, S->run->name.length);
        int length = snprintf(place, sizeof place, ", on %s:%d.", S->source, S->line);
        buffer_put(S, L, &S->scratch, place, (size_t)length);
    }
    write_error(S, L, &S->out, (text){S->scratch.bytes, S->scratch.length});
}

#define NO_MEMORY "-ERR not enough memory for the script: see script-memory-limit and script-memory-total\r\n"

const format redis_format = {begin, end, write_result, write_failure, {NO_MEMORY, sizeof NO_MEMORY - 1}};

static void write_value(sandbox *S, lua_State *L, int index)
{
    values_format.write_result(S, L, index);
}

static void write_error_value(sandbox *S, lua_State *L)
{
    values_format.write_failure(S, L);
}

const format redis_values_format = {
    begin, end, write_value, write_error_value, {NO_MEMORY_VALUE, sizeof NO_MEMORY_VALUE - 1}};

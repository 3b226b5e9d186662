/*
 * Errors of _perilune.yottadb: strings "YDB Error: <code>: <text>", as yottadb raises them.
 *
 * Invariants
 * - A status of Perilune becomes the code that YottaDB has for it; a status for which YottaDB has none is itself
 *   the code, with its name in the text.
 * - The last error is kept for $ZSTATUS.
 */
#include "yottadb_errors.h"

#include "errors.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    int code;
    const char *text;
} texts[] = {
    {CODE_RESTART, "YDB_TP_RESTART"},
    {CODE_ROLLBACK, "YDB_TP_ROLLBACK"},
    {CODE_LOCK_TIMEOUT, "YDB_LOCK_TIMEOUT"},
    {2147483644, "YDB_NOTOK"},
    {-150372994, "%YDB-E-GVUNDEF, the global variable has no value"},
    {-150373850, "%YDB-E-LVUNDEF, the local variable has no value"},
    {-151027922, "%YDB-E-NODEEND, there is no further node"},
    {CODE_GVSUBOFLOW, "%YDB-E-GVSUBOFLOW, the subscripts take more bytes than a key can have"},
    {CODE_NUMOFLOW, "%YDB-E-NUMOFLOW, numeric overflow: numbers are below 1E47"},
    {CODE_SVNOSET, "%YDB-E-SVNOSET, this special variable cannot be set"},
    {-150373074, "%YDB-E-INVSVN, there is no special variable of this name"},
    {CODE_INVSTRLEN, "%YDB-E-INVSTRLEN, a string is longer than 1048576 bytes"},
    {CODE_REC2BIG, "%YDB-E-REC2BIG, the value is longer than the database takes"},
    {-150373498, "%YDB-E-NULSUBSC, an empty subscript is not allowed here"},
    {CODE_TPLOCK, "%YDB-E-TPLOCK, a lock taken before the transaction cannot be released in it"},
    {CODE_TPTOODEEP, "%YDB-E-TPTOODEEP, transactions nest 126 levels at most"},
    {CODE_TPTIMEOUT, "%YDB-E-TPTIMEOUT, Transaction timeout"},
    {CODE_MAXNRSUBSCRIPTS, "%YDB-E-MAXNRSUBSCRIPTS, maximum number of subscripts exceeded"},
    {CODE_LOCKSUB2LONG, "%YDB-E-LOCKSUB2LONG, a subscript of a lock has 255 bytes at most"},
    {CODE_LOCKINCR2HIGH, "%YDB-E-LOCKINCR2HIGH, a lock can be counted to 511 at most"},
    {CODE_INVVARNAME, "%YDB-E-INVVARNAME, Invalid variable name: a letter or %, then letters and digits"},
    {CODE_NAMECOUNT2HI, "%YDB-E-NAMECOUNT2HI, more than 35 variable names"},
    {CODE_TIME2LONG, "%YDB-E-TIME2LONG, a timeout is from 0 to 2147483.647 seconds"},
    {CODE_VARNAME2LONG, "%YDB-E-VARNAME2LONG, Variable name length exceeds the maximum of 31"},
    {CODE_TPCALLBACKINVRETVAL, "%YDB-E-TPCALLBACKINVRETVAL, a transaction's function returns nothing or a number"},
    {CODE_ISVUNSUPPORTED, "%YDB-E-ISVUNSUPPORTED, special variables can be read and set only"},
    {CODE_ISVSUBSCRIPTED, "%YDB-E-ISVSUBSCRIPTED, special variables have no subscripts"},
    {-151028074, "%YDB-E-GVNUNSUPPORTED, global variables are not allowed here"},
    {-150373858, "%YDB-E-UNIMPLOP, this needs the M language, which Perilune does not have"},
    {-418809578, "%YDB-E-ZGBLDIRACC, the database cannot be opened"},
};

layer *layer_of(lua_State *L)
{
    return lua_touserdata(L, LAYER_INDEX);
}

static const char *text_of(int code)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code)
            return texts[i].text;
    return NULL;
}

static int raise_text(lua_State *L, int code, const char *text)
{
    layer *y = layer_of(L);
    snprintf(y->status, sizeof y->status, "%d,(SimpleAPI),%s", abs(code), text);
    luaL_checkstack(L, 4, "error");
    lua_pushfstring(L, "YDB Error: %d: %s", code, text);
    return lua_error(L);
}

int raise_code(lua_State *L, int code)
{
    const char *text = text_of(code);
    return raise_text(L, code, text != NULL ? text : "unknown error");
}

static int code_of(const address *at, int status)
{
    int private = at != NULL && at->kind == KIND_LOCAL;
    switch (status) {
    case PERILUNE_CONFLICT:
    case PERILUNE_RESTART:
        return CODE_RESTART;
    case PERILUNE_ROLLBACK:
        return CODE_ROLLBACK;
    case PERILUNE_TRANSACTION_TIMEOUT:
        return CODE_TPTIMEOUT;
    case PERILUNE_INVALID_NAME:
        return CODE_INVVARNAME;
    case PERILUNE_TOO_MANY_SUBSCRIPTS:
        return CODE_MAXNRSUBSCRIPTS;
    case PERILUNE_KEY_TOO_LONG:
        return private ? CODE_INVSTRLEN : CODE_GVSUBOFLOW;
    case PERILUNE_VALUE_TOO_LONG:
        return private ? CODE_INVSTRLEN : CODE_REC2BIG;
    case PERILUNE_NUMBER_OVERFLOW:
        return CODE_NUMOFLOW;
    default:
        return 0;
    }
}

int raise_perilune(lua_State *L, const address *at, int status)
{
    char text[400];
    database *db = at == NULL ? NULL : at->db;
    perilune_session *session = db != NULL ? db->session : layer_of(L)->locals;
    if (db != NULL && (status == PERILUNE_CONFLICT || status == PERILUNE_RESTART) && db->session != NULL
        && perilune_depth(db->session) > 0) {
        db->doom = DOOM_AGAIN;
        db->doom_status = status;
        db->live = NULL;
    }
    int code = code_of(at, status);
    if (code != 0)
        return raise_code(L, code);
    snprintf(text, sizeof text, "%s: %s", perilune_status_name(status), perilune_message(session));
    return raise_text(L, status, text);
}

int raise_doomed(lua_State *L, const database *db)
{
    return raise_code(L, db->doom == DOOM_ROLLBACK ? CODE_ROLLBACK : CODE_RESTART);
}

/* message(code): the text of an error with that code, by which get_error_code finds it. */
static int message(lua_State *L)
{
    int code = (int)luaL_checknumber(L, 1);
    const char *text = text_of(code);
    if (text == NULL)
        lua_pushfstring(L, "YDB Error: %d: %%YDB-E-UNKNOWN, error %d", code, code);
    else
        lua_pushfstring(L, "YDB Error: %d: %s", code, text);
    return 1;
}

int code_in(lua_State *L, int index, int *code)
{
    if (lua_type(L, index) != LUA_TSTRING)
        return 0;
    const char *found = strstr(lua_tostring(L, index), "YDB Error: ");
    if (found == NULL)
        return 0;
    char *end;
    long number = strtol(found + 11, &end, 10);
    if (end == found + 11 || number > INT32_MAX || number < INT32_MIN)
        return 0;
    *code = (int)number;
    return 1;
}

/* status([text]): $ZSTATUS, after setting it if a text is given. */
static int status(lua_State *L)
{
    layer *y = layer_of(L);
    if (lua_type(L, 1) == LUA_TSTRING)
        snprintf(y->status, sizeof y->status, "%s", lua_tostring(L, 1));
    lua_pushstring(L, y->status);
    return 1;
}

/* fail(code[, text]): raises that error, for what is written in Lua. */
static int fail(lua_State *L)
{
    int code = (int)luaL_checknumber(L, 1);
    if (lua_type(L, 2) == LUA_TSTRING)
        return raise_text(L, code, lua_tostring(L, 2));
    return raise_code(L, code);
}

const luaL_Reg error_functions[] = {
    {"message", message}, {"status", status}, {"fail", fail}, {NULL, NULL}};

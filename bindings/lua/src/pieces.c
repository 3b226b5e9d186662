/*
 * node:getpiece and node:setpiece: a part of a long string is read and written without the rest.
 *
 * Positions are those of string.sub: 1 is the first byte, -1 the last. Of a position from the end the length must
 * be known: it is asked for first, and once more if the string's length has changed by the time the piece is read.
 */
#include "pieces.h"

#include "errors.h"
#include "handles.h"
#include "values.h"

/* The position at `index`; `otherwise` if there is none. */
static int64_t position(lua_State *L, int index, const char *what, int64_t otherwise)
{
    int64_t at = otherwise;
    if (lua_isnoneornil(L, index))
        return otherwise;
    if (lua_type(L, index) != LUA_TNUMBER || !integral(L, index, &at))
        raise_argument(L, "%s must be an integer, not %s", what,
                       lua_type(L, index) == LUA_TNUMBER ? "a fraction" : described(L, index));
    return at;
}

/* How many bytes lie before the piece first..last of a string of `length` bytes; how many it has. */
static size_t bounds(int64_t first, int64_t last, size_t length, size_t *size)
{
    int64_t whole = (int64_t)length;
    if (first < 0)
        first = first < -whole ? 1 : whole + first + 1;
    if (last < 0)
        last = last < -whole ? 0 : whole + last + 1;
    if (first < 1)
        first = 1;
    *size = last < first ? 0 : (size_t)(last - first) + 1;
    return (size_t)(first - 1);
}

/* node:getpiece([first[, last]]): the bytes, and how many the whole string has. */
int node_getpiece(lua_State *L)
{
    handle h;
    perilune_value piece;
    size_t length = 0, offset, size, before;
    int status;
    int64_t first = position(L, 2, "the first position", 1), last = position(L, 3, "the last position", -1);
    /* To the end is as far as there are bytes. */
    int from_end = first < 0 || last < -1;
    check_handle(L, 1, &h);
    do {
        if (from_end)
            TRY(status, L, h.db, h.key, perilune_get_piece(h.db->live, h.key, 0, 0, &piece, &length));
        before = length;
        offset = bounds(first, last, from_end ? length : SIZE_MAX >> 1, &size);
        TRY(status, L, h.db, h.key, perilune_get_piece(h.db->live, h.key, offset, size, &piece, &length));
    } while (from_end && length != before);
    if (status == PERILUNE_NOT_FOUND)
        return 0;
    push_value(L, &piece);
    lua_pushinteger(L, (lua_Integer)length);
    return 2;
}

/* node:setpiece(first, text): how many bytes the string has then. */
int node_setpiece(lua_State *L)
{
    handle h;
    size_t size, length;
    int status;
    int64_t first = position(L, 2, "the first position", 0);
    check_handle(L, 1, &h);
    if (first < 1)
        return raise_argument(L, "setpiece takes the position of the first byte, from 1, and text");
    if (lua_type(L, 3) != LUA_TSTRING)
        return raise_argument(L, "a piece must be a string, not %s", described(L, 3));
    const char *bytes = lua_tolstring(L, 3, &size);
    TRY(status, L, h.db, h.key, perilune_set_piece(h.db->live, h.key, (size_t)first - 1, bytes, size, &length));
    lua_pushinteger(L, (lua_Integer)length);
    return 1;
}

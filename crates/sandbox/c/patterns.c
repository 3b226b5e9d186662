/*
 * string.find, match, gmatch and gsub: Lua's patterns, matched so that a script can be stopped in them.
 *
 * A pattern of a few bytes can take longer than the universe has, inside one call: each step of the
 * matcher here is counted, and every few thousand the stop flag is looked at. Recursion is bounded.
 */
#include "patterns.h"

#include "stop.h"

#include <ctype.h>

enum { CAPTURES = 32, DEPTH = 200, OPEN = -1, POSITION = -2 };

typedef struct match {
    sandbox *S;
    lua_State *L;
    const char *subject, *subject_end, *pattern_end;
    int depth, level;
    unsigned steps;
    struct {
        const char *at;
        ptrdiff_t length; /* or OPEN, POSITION */
    } captures[CAPTURES];
} match;

static const char *do_match(match *m, const char *s, const char *p);

static void step(match *m)
{
    if (++m->steps % STEPS_UNCHECKED == 0)
        check_stop(m->S, m->L);
}

/* Where the single-character item at `p` ends. */
static const char *item_end(match *m, const char *p)
{
    if (*p++ == '%') {
        if (p == m->pattern_end)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (p[-1] != '[')
        return p;
    if (p < m->pattern_end && *p == '^')
        p++;
    do {
        if (p == m->pattern_end)
            luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p++ == '%' && p < m->pattern_end)
            p++;
    } while (p == m->pattern_end || *p != ']');
    return p + 1;
}

static int in_class(int c, int class)
{
    int result;
    switch (tolower(class)) {
    case 'a': result = isalpha(c); break;
    case 'c': result = iscntrl(c); break;
    case 'd': result = isdigit(c); break;
    case 'g': result = isgraph(c); break;
    case 'l': result = islower(c); break;
    case 'p': result = ispunct(c); break;
    case 's': result = isspace(c); break;
    case 'u': result = isupper(c); break;
    case 'w': result = isalnum(c); break;
    case 'x': result = isxdigit(c); break;
    case 'z': result = c == 0; break;
    default: return class == c;
    }
    return isupper(class) ? !result : result != 0;
}

/* Whether `c` is in the set that begins at `p` and whose bracket closes at `last`. */
static int in_set(int c, const char *p, const char *last)
{
    int wanted = 1;
    if (p[1] == '^') {
        wanted = 0;
        p++;
    }
    while (++p < last) {
        if (*p == '%') {
            p++;
            if (in_class(c, (unsigned char)*p))
                return wanted;
        } else if (p[1] == '-' && p + 2 < last) {
            if ((unsigned char)*p <= c && c <= (unsigned char)p[2])
                return wanted;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return wanted;
        }
    }
    return !wanted;
}

static int matches_item(match *m, const char *s, const char *p, const char *end)
{
    if (s >= m->subject_end)
        return 0;
    int c = (unsigned char)*s;
    m->steps += (unsigned)(end - p) / 16;
    step(m);
    switch (*p) {
    case '.': return 1;
    case '%': return in_class(c, (unsigned char)p[1]);
    case '[': return in_set(c, p, end - 1);
    default: return (unsigned char)*p == c;
    }
}

static const char *match_balance(match *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end)
        luaL_error(m->L, "unbalanced pattern");
    if (s >= m->subject_end || *s != *p)
        return NULL;
    int open = *p, close = p[1], nested = 1;
    while (++s < m->subject_end) {
        step(m);
        if (*s == close) {
            if (--nested == 0)
                return s + 1;
        } else if (*s == open) {
            nested++;
        }
    }
    return NULL;
}

static const char *most(match *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t i = 0;
    while (matches_item(m, s + i, p, end))
        i++;
    for (; i >= 0; i--) {
        const char *found = do_match(m, s + i, end + 1);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static const char *fewest(match *m, const char *s, const char *p, const char *end)
{
    for (;;) {
        const char *found = do_match(m, s, end + 1);
        if (found != NULL)
            return found;
        if (!matches_item(m, s, p, end))
            return NULL;
        s++;
    }
}

static const char *begin_capture(match *m, const char *s, const char *p, ptrdiff_t what)
{
    if (m->level >= CAPTURES)
        luaL_error(m->L, "too many captures");
    m->captures[m->level].at = s;
    m->captures[m->level].length = what;
    m->level++;
    const char *found = do_match(m, s, p);
    if (found == NULL)
        m->level--;
    return found;
}

static const char *end_capture(match *m, const char *s, const char *p)
{
    int level = m->level - 1;
    while (level >= 0 && m->captures[level].length != OPEN)
        level--;
    if (level < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->captures[level].length = s - m->captures[level].at;
    const char *found = do_match(m, s, p);
    if (found == NULL)
        m->captures[level].length = OPEN;
    return found;
}

/* %1 to %9: what the capture holds. */
static const char *match_capture(match *m, const char *s, int digit)
{
    int level = digit - '1';
    if (level < 0 || level >= m->level || m->captures[level].length == OPEN)
        luaL_error(m->L, "invalid capture index");
    size_t length = m->captures[level].length < 0 ? 0 : (size_t)m->captures[level].length;
    m->steps += (unsigned)(length / 64);
    step(m);
    if ((size_t)(m->subject_end - s) >= length && memcmp(m->captures[level].at, s, length) == 0)
        return s + length;
    return NULL;
}

static int frontier(match *m, const char *s, const char *p, const char *end)
{
    int before = s == m->subject ? 0 : (unsigned char)s[-1];
    int after = s == m->subject_end ? 0 : (unsigned char)*s;
    return !in_set(before, p, end - 1) && in_set(after, p, end - 1);
}

/* Matches the rest of the pattern at `p`; where the match ends, or NULL. */
static const char *match_rest(match *m, const char *s, const char *p)
{
    while (p < m->pattern_end) {
        step(m);
        if (*p == '(')
            return p + 1 < m->pattern_end && p[1] == ')' ? begin_capture(m, s, p + 2, POSITION)
                                                         : begin_capture(m, s, p + 1, OPEN);
        if (*p == ')')
            return end_capture(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end)
            return s == m->subject_end ? s : NULL;
        if (*p == '%' && p + 1 < m->pattern_end && p[1] == 'b') {
            s = match_balance(m, s, p + 2);
            if (s == NULL)
                return NULL;
            p += 4;
            continue;
        }
        if (*p == '%' && p + 1 < m->pattern_end && p[1] == 'f') {
            p += 2;
            if (p >= m->pattern_end || *p != '[')
                luaL_error(m->L, "missing '[' after '%%f' in pattern");
            const char *end = item_end(m, p);
            if (!frontier(m, s, p, end))
                return NULL;
            p = end;
            continue;
        }
        if (*p == '%' && p + 1 < m->pattern_end && isdigit((unsigned char)p[1])) {
            s = match_capture(m, s, p[1]);
            if (s == NULL)
                return NULL;
            p += 2;
            continue;
        }
        const char *end = item_end(m, p);
        int suffix = end < m->pattern_end ? *end : 0;
        if (suffix == '*')
            return most(m, s, p, end);
        if (suffix == '+')
            return matches_item(m, s, p, end) ? most(m, s + 1, p, end) : NULL;
        if (suffix == '-')
            return fewest(m, s, p, end);
        if (suffix == '?') {
            const char *found = matches_item(m, s, p, end) ? do_match(m, s + 1, end + 1) : NULL;
            if (found != NULL)
                return found;
            p = end + 1;
            continue;
        }
        if (!matches_item(m, s, p, end))
            return NULL;
        s++;
        p = end;
    }
    return s;
}

static const char *do_match(match *m, const char *s, const char *p)
{
    if (++m->depth > DEPTH)
        luaL_error(m->L, "pattern too complex");
    const char *found = match_rest(m, s, p);
    m->depth--;
    return found;
}

static void push_capture(match *m, int level, const char *s, const char *end)
{
    if (level >= m->level) {
        if (level != 0)
            luaL_error(m->L, "invalid capture index");
        lua_pushlstring(m->L, s, (size_t)(end - s));
        return;
    }
    ptrdiff_t length = m->captures[level].length;
    if (length == OPEN)
        luaL_error(m->L, "unfinished capture");
    if (length == POSITION)
        lua_pushinteger(m->L, m->captures[level].at - m->subject + 1);
    else
        lua_pushlstring(m->L, m->captures[level].at, (size_t)length);
}

static int push_captures(match *m, const char *s, const char *end)
{
    int count = m->level == 0 && s != NULL ? 1 : m->level;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(m, i, s, end);
    return count;
}

static void prepare(match *m, lua_State *L, text subject, text pattern)
{
    m->S = sandbox_of(L);
    m->L = L;
    m->subject = subject.bytes;
    m->subject_end = subject.bytes + subject.length;
    m->pattern_end = pattern.bytes + pattern.length;
    m->depth = 0;
    m->level = 0;
    m->steps = 0;
}

static text argument(lua_State *L, int index)
{
    text t;
    t.bytes = luaL_checklstring(L, index, &t.length);
    return t;
}

/* Where bytes are found in others: in linear time, whatever they are. */
static const char *plain_find(text in, text what)
{
    return what.length == 0 ? in.bytes : memmem(in.bytes, in.length, what.bytes, what.length);
}

static int find_or_match(lua_State *L, int find)
{
    text subject = argument(L, 1), pattern = argument(L, 2);
    lua_Integer start = luaL_optinteger(L, 3, 1);
    if (start < 0)
        start += (lua_Integer)subject.length + 1;
    if (start < 1)
        start = 1;
    if ((size_t)start > subject.length + 1) {
        lua_pushnil(L);
        return 1;
    }
    text rest = {subject.bytes + start - 1, subject.length - (size_t)(start - 1)};
    int special = 0;
    for (size_t i = 0; i < pattern.length; i++)
        special |= pattern.bytes[i] != 0 && strchr("^$*+?.([%-", pattern.bytes[i]) != NULL;
    if (find && (lua_toboolean(L, 4) || !special)) {
        const char *found = plain_find(rest, pattern);
        if (found == NULL) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushinteger(L, found - subject.bytes + 1);
        lua_pushinteger(L, found - subject.bytes + (ptrdiff_t)pattern.length);
        return 2;
    }
    match m;
    prepare(&m, L, subject, pattern);
    int anchored = pattern.length > 0 && pattern.bytes[0] == '^';
    const char *s = rest.bytes;
    do {
        m.level = 0;
        m.depth = 0;
        const char *end = do_match(&m, s, pattern.bytes + anchored);
        if (end == NULL)
            continue;
        if (!find)
            return push_captures(&m, s, end);
        lua_pushinteger(L, s - subject.bytes + 1);
        lua_pushinteger(L, end - subject.bytes);
        return 2 + push_captures(&m, NULL, NULL);
    } while (s++ < m.subject_end && !anchored);
    lua_pushnil(L);
    return 1;
}

static int find(lua_State *L)
{
    return find_or_match(L, 1);
}

static int first_match(lua_State *L)
{
    return find_or_match(L, 0);
}

/* Upvalues: subject, pattern, where to go on. */
static int next_match(lua_State *L)
{
    text subject = argument(L, lua_upvalueindex(1)), pattern = argument(L, lua_upvalueindex(2));
    match m;
    prepare(&m, L, subject, pattern);
    const char *s = subject.bytes + (size_t)lua_tonumber(L, lua_upvalueindex(3));
    for (; s <= m.subject_end; s++) {
        m.level = 0;
        m.depth = 0;
        const char *end = do_match(&m, s, pattern.bytes);
        if (end == NULL)
            continue;
        lua_pushnumber(L, (lua_Number)(end - subject.bytes + (end == s)));
        lua_replace(L, lua_upvalueindex(3));
        return push_captures(&m, s, end);
    }
    return 0;
}

static int all_matches(lua_State *L)
{
    argument(L, 1);
    argument(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_match, 3);
    return 1;
}

/* What a replacement string says, with %0 to %9. */
static void add_string(match *m, luaL_Buffer *out, const char *s, const char *end)
{
    text replacement = argument(m->L, 3);
    for (size_t i = 0; i < replacement.length; i++) {
        char c = replacement.bytes[i];
        if (c != '%') {
            luaL_addchar(out, c);
            continue;
        }
        c = ++i < replacement.length ? replacement.bytes[i] : 0;
        if (c == '0') {
            luaL_addlstring(out, s, (size_t)(end - s));
        } else if (isdigit((unsigned char)c)) {
            push_capture(m, c - '1', s, end);
            lua_tostring(m->L, -1); /* a position becomes its digits */
            luaL_addvalue(out);
        } else {
            luaL_addchar(out, c);
        }
    }
}

static void add_replacement(match *m, luaL_Buffer *out, const char *s, const char *end)
{
    lua_State *L = m->L;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION:
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, s, end), 1);
        break;
    case LUA_TTABLE:
        push_capture(m, 0, s, end);
        lua_gettable(L, 3);
        break;
    default:
        add_string(m, out, s, end);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, s, (size_t)(end - s));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(out);
}

static int replace_all(lua_State *L)
{
    text subject = argument(L, 1), pattern = argument(L, 2);
    int type = lua_type(L, 3);
    if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TFUNCTION && type != LUA_TTABLE)
        return luaL_argerror(L, 3, "string/function/table expected");
    lua_Integer limit = luaL_optinteger(L, 4, (lua_Integer)subject.length + 1), count = 0;
    int anchored = pattern.length > 0 && pattern.bytes[0] == '^';
    match m;
    luaL_Buffer out;
    check_depth(sandbox_of(L), L);
    prepare(&m, L, subject, pattern);
    luaL_buffinit(L, &out);
    const char *s = subject.bytes;
    while (count < limit) {
        m.level = 0;
        m.depth = 0;
        const char *end = do_match(&m, s, pattern.bytes + anchored);
        if (end != NULL) {
            count++;
            add_replacement(&m, &out, s, end);
            step(&m);
        }
        if (end != NULL && end > s)
            s = end;
        else if (s < m.subject_end)
            luaL_addchar(&out, *s++);
        else
            break;
        if (anchored)
            break;
    }
    luaL_addlstring(&out, s, (size_t)(m.subject_end - s));
    luaL_pushresult(&out);
    lua_pushinteger(L, count);
    return 2;
}

const luaL_Reg pattern_functions[] = {
    {"find", find},
    {"gmatch", all_matches},
    {"gsub", replace_all},
    {"match", first_match},
    {NULL, NULL},
};

/*
 * Questions to the host: how a function of a library reaches the program that the sandbox belongs to.
 *
 * A question is the number of a library, the number of one of its functions, and arguments as bytes. collect()
 * puts strings and numbers one behind the other into S->words, and where each begins and ends into S->spans:
 * ("GET", 7) becomes "GET7" with the spans 0-3 and 3-4. The host's answer is bytes, too, which last until the next
 * question.
 *
 * Invariant: as soon as the host has answered, what it keeps for the run, and an answer of more than SCRATCH_KEPT
 * bytes, count as the script's memory.
 */
#include "ask.h"

#include "buffer.h"
#include "memory.h"
#include "number.h"
#include "stop.h"

#include <stdlib.h>

void forget_answer(sandbox *S)
{
    if (S->answered == 0)
        return;
    count_out(S, S->answered);
    S->answered = 0;
    text none;
    allowance nothing = {0, S->kept};
    question asked = {OF_SANDBOX, ASK_NOTHING};
    S->run->ask(S->run->host, asked, (text){NULL, 0}, NULL, 0, &nothing, &none);
}

text ask(sandbox *S, lua_State *L, int library, int function, size_t count)
{
    text answer = {NULL, 0};
    if (S->run == NULL)
        luaL_error(L, "no script runs");
    check_host_depth(S, L);
    forget_answer(S);
    text words = {S->words.bytes, S->words.length};
    allowance allowed = {room_left(S), S->kept};
    question asked = {library, function};
    int outcome = S->run->ask(S->run->host, asked, words, S->spans, count, &allowed, &answer);
    shrink(S, &S->words);
    count_out(S, S->kept);
    S->kept = allowed.kept;
    S->answered = answer.length > SCRATCH_KEPT ? answer.length : 0;
    count_taken(S, S->kept + S->answered);
    if (outcome != ANSWERED)
        S->ending = 1;
    check_stop(S, L);
    return answer;
}

void room_for_spans(sandbox *S, lua_State *L, size_t count)
{
    count_in_or_raise(S, L, (count - S->span_room) * sizeof *S->spans);
    span *spans = realloc(S->spans, count * sizeof *spans);
    if (spans == NULL) {
        count_out(S, (count - S->span_room) * sizeof *S->spans);
        luaL_error(L, "not enough memory");
    }
    S->spans = spans;
    S->span_room = count;
}

/* NB: behind each argument there is room for all that follow, were they numbers. */
int collect(sandbox *S, lua_State *L, int first, int last)
{
    int count = last < first ? 0 : last - first + 1;
    if ((size_t)count > S->span_room)
        room_for_spans(S, L, (size_t)count);
    S->words.length = 0;
    buffer_room(S, L, &S->words, NUMBER_BYTES * (size_t)count);
    char *bytes = S->words.bytes;
    span *spans = S->spans;
    size_t at = 0, room = S->words.room;
    for (int i = 0; i < count; i++) {
        size_t length;
        int type = lua_type(L, first + i);
        spans[i][0] = at;
        if (type == LUA_TSTRING) {
            const char *string = lua_tolstring(L, first + i, &length);
            size_t wanted = length + NUMBER_BYTES * (size_t)(count - i);
            if (room - at < wanted) {
                S->words.length = at;
                buffer_room(S, L, &S->words, wanted);
                bytes = S->words.bytes;
                room = S->words.room;
            }
            memcpy(bytes + at, string, length);
        } else if (type == LUA_TNUMBER) {
            length = write_number(bytes + at, lua_tonumber(L, first + i));
        } else {
            return 0;
        }
        at += length;
        spans[i][1] = at;
    }
    S->words.length = at;
    return 1;
}

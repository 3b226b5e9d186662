/*
 * Subscripts and values in and out.
 *
 * A number with an integral value is an integer, another finite one a number, a string a string (the canonical
 * text of a number is that number as a subscript, which the library sees to), bytes are bytes. In the flavours a
 * value that is a number but no safe integer is stored as the text that JavaScript prints for it, so that reading
 * it answers that text.
 *
 * Invariant: the bytes of all arguments of a call lie in the environment's arena, or in memory of JavaScript that
 * nothing moves during the call.
 */
#ifndef PERILUNE_NODE_VALUES_H
#define PERILUNE_NODE_VALUES_H

#include "state.h"

/*
 * Reads arguments `first` to `end` (not included) as subscripts into the environment's values, from `first` on:
 * argument i is value i. False: noted which argument is wrong. `empty`: whether "" may be one of them.
 */
bool subscripts_in(struct call *call, size_t first, size_t end, bool empty);

/* Reads `given`, which is called `name` (argument `index`), as a value at `values[slot]`. */
bool value_in(struct call *call, napi_value given, size_t index, size_t slot);

/* Reads `given` as one subscript at `values[slot]`. */
bool subscript_in(struct call *call, napi_value given, size_t index, size_t slot);

/* Gives the strings at values `first` to `end` their addresses; after the last was read. */
void settle(struct call *call, size_t first, size_t end);

/* A value, as the mode of the call's node has it; `undefined` for none. */
napi_value value_out(struct here *here, const perilune_value *value, int mode, bool latin1);

/* Room for the text of an integer. */
enum { INTEGER_TEXT = 24 };

/* Writes the text of `number` so that it ends at `end`, behind INTEGER_TEXT bytes of room; its size. */
size_t integer_text(int64_t number, char *end);

/* The text of a value. */
napi_value value_text(struct here *here, const perilune_value *value, bool latin1);

#endif

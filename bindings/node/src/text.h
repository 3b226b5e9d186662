/*
 * Strings of JavaScript in and out.
 *
 * In: into the arena of the environment, as UTF-8 (a lone surrogate becomes U+FFFD) or, where the database's
 * strings are bytes, one byte for each UTF-16 unit. Node copies a string into the room there is; only if it may
 * have been cut is its length asked for, and the string copied again. Out: a string of ASCII is made without
 * decoding.
 */
#ifndef PERILUNE_NODE_TEXT_H
#define PERILUNE_NODE_TEXT_H

#include "state.h"

/*
 * Copies string `given` behind what the arena holds; its bytes are at `*offset`, since the arena may move.
 * False when it is no string, or there is no memory (then a failure was noted).
 */
bool text_in(struct here *here, napi_value given, bool latin1, size_t *offset, size_t *size);

/* Room for `size` bytes behind what the arena holds; false, noted, when there is no memory. */
bool text_room(struct here *here, size_t size);

/* A string of JavaScript. */
napi_value text_out(struct here *here, const char *bytes, size_t size, bool latin1);

/* Whether no byte is over 127. */
bool text_is_ascii(const char *bytes, size_t size);

/* Makes the arena small again after a call that took much. */
void text_rest(struct here *here);

#endif

/* Numbers as texts. */
#ifndef PERILUNE_SANDBOX_NUMBER_H
#define PERILUNE_SANDBOX_NUMBER_H

#include "sandbox.h"

enum { WHOLE_DIGITS = 20, NUMBER_BYTES = 32 };

/* Writes a whole number, without a zero behind it: at most WHOLE_DIGITS bytes; how many. */
size_t write_whole(char *place, long long number);
/* Writes a number, whole ones as such and others by 17 digits: at most NUMBER_BYTES; how many. */
size_t write_number(char *place, lua_Number number);

#endif

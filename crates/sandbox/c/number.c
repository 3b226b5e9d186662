/*
 * Numbers as texts: whole ones by pairs of digits, others with the 17 digits that a double has.
 */
#include "number.h"

#include <math.h>
#include <stdio.h>

/* How many digits a number has. */
static size_t digits_of(unsigned long long number)
{
    static const unsigned long long powers[] = {0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
                                                10000000000, 100000000000, 1000000000000, 10000000000000,
                                                100000000000000, 1000000000000000, 10000000000000000,
                                                100000000000000000, 1000000000000000000, 10000000000000000000u};
    /* Of the bits, rounded down: 1233 / 4096 is the logarithm of 2. */
    size_t least = (size_t)(64 - __builtin_clzll(number | 1)) * 1233 >> 12;
    return least + (number >= powers[least]);
}

size_t write_whole(char *place, long long number)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051"
                                "525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    size_t sign = number < 0;
    unsigned long long rest = sign ? 0 - (unsigned long long)number : (unsigned long long)number;
    size_t length = sign + digits_of(rest), at = length;
    place[0] = '-';
    for (; rest >= 100; rest /= 100)
        memcpy(place + (at -= 2), pairs + 2 * (rest % 100), 2);
    if (rest >= 10)
        memcpy(place + (at - 2), pairs + 2 * rest, 2);
    else
        place[at - 1] = (char)('0' + rest);
    return length;
}

size_t write_number(char *place, lua_Number number)
{
    long long whole = number > -1e15 && number < 1e15 ? (long long)number : 0;
    if ((lua_Number)whole == number && (whole != 0 || !signbit(number)))
        return write_whole(place, whole);
    return (size_t)snprintf(place, NUMBER_BYTES, "%.17g", number);
}

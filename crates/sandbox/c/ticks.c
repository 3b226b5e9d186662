/*
 * Reads the processor's counter of time (TSC on x86-64, CNTVCT on arm64), which takes a few nanoseconds: less than
 * a call of clock_gettime, which usually reads the same counter and converts it.
 */
#include "ticks.h"

uint64_t sandbox_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

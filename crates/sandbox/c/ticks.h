/* The processor's counter of time, for spans too short for clock_gettime. */
#ifndef PERILUNE_SANDBOX_TICKS_H
#define PERILUNE_SANDBOX_TICKS_H

#include <stdint.h>

/* 0 where there is no counter. */
uint64_t sandbox_ticks(void);

#endif

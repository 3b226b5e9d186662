/* A counter of the processor, for times that are shorter than a clock is quick. */
#ifndef PERILUNE_SANDBOX_TICKS_H
#define PERILUNE_SANDBOX_TICKS_H

#include <stdint.h>

/* 0 where there is no counter. */
uint64_t sandbox_ticks(void);

#endif

/* chance.h - random numbers, for pauses that many hosts must not begin at once. */
#ifndef FABRICD_BASE_CHANCE_H
#define FABRICD_BASE_CHANCE_H

#include <stdint.h>

/* From 0 to `below` - 1. */
uint32_t chance_below(uint32_t below);

#endif

/* chance.h - random numbers, for pauses that many hosts must not begin at once. */
#ifndef FABRICD_BASE_CHANCE_H
#define FABRICD_BASE_CHANCE_H

#include <stddef.h>
#include <stdint.h>

/* From 0 to `below` - 1. */
uint32_t chance_below(uint32_t below);

/* Bytes that nobody can guess. */
void chance_bytes(void *bytes, size_t n);

#endif

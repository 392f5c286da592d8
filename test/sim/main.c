/* main.c - sim_walk YEARS [SEED]: as long a walk as one likes. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test/sim/sim.h"
#include "test/sim/walk.h"

int main(int argc, char **argv)
{
    const double years = argc > 1 ? strtod(argv[1], NULL) : 1;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (argc > 3 || years <= 0) {
        fprintf(stderr, "usage: sim_walk YEARS [SEED]\n");
        return 2;
    }
    if (seed == 0)
        seed = (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    const struct walk_counts counts = walk(seed, (int64_t)(years * 365 * SIM_DAY));
    printf("%g years: %u hands, %u restarts, %llu generations\n", years, counts.hands, counts.restarts,
           (unsigned long long)counts.generations);
    return 0;
}

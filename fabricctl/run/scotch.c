/* scotch.c - divide ranks by Scotch, where a build finds it. */
#include <stdlib.h>

#include "fabricctl/run/run.h"

#ifndef HAVE_SCOTCH

run_divide_fn *run_scotch(void)
{
    return NULL;
}

#else

#include <scotch.h>

#define LARGEST_SUM 1000000000.0 /* of the weights, which are 32 bits wide */

struct scotch {
    SCOTCH_Graph graph, bound;
    SCOTCH_Arch arch;
    SCOTCH_Strat strategy;
    SCOTCH_Context context;
};

/*
 * Map the graph to two processors whose weights are the sizes of the sides. Weights of messages are
 * proportional to bytes, and at least 1. One thread: the same input gives the same answer.
 */
static bool scotch_map(struct scotch *s, uint32_t n, const uint32_t *first, const uint32_t *to,
                       const double *bytes, uint32_t left, SCOTCH_Num *weights, SCOTCH_Num *side)
{
    const SCOTCH_Num sizes[] = {(SCOTCH_Num)left, (SCOTCH_Num)(n - left)};
    double sum = 0;
    for (uint32_t e = 0; e < first[n]; e++)
        sum += bytes[e];
    for (uint32_t e = 0; e < first[n]; e++)
        weights[e] = (SCOTCH_Num)(bytes[e] / sum * LARGEST_SUM / 2) + 1;
    SCOTCH_randomReset();
    return SCOTCH_graphBuild(&s->graph, 0, (SCOTCH_Num)n, (const SCOTCH_Num *)first, NULL, NULL, NULL,
                             (SCOTCH_Num)first[n], (const SCOTCH_Num *)to, weights) == 0 &&
           SCOTCH_contextThreadSpawn(&s->context, 1, NULL) == 0 &&
           SCOTCH_contextOptionSetNum(&s->context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) == 0 &&
           SCOTCH_contextBindGraph(&s->context, &s->graph, &s->bound) == 0 &&
           SCOTCH_archCmpltw(&s->arch, 2, sizes) == 0 &&
           SCOTCH_stratGraphMapBuild(&s->strategy, SCOTCH_STRATQUALITY | SCOTCH_STRATBALANCE, 2, 0.01) == 0 &&
           SCOTCH_graphMap(&s->bound, &s->arch, &s->strategy, side) == 0;
}

static bool scotch_divide(uint32_t n, const uint32_t *first, const uint32_t *to, const double *bytes,
                          uint32_t left, uint8_t *side)
{
    struct scotch s = {0};
    SCOTCH_Num *weights = calloc(first[n] + (size_t)1, sizeof *weights), *sides = calloc(n, sizeof *sides);
    bool done = false;
    /* a graph without messages has no weights; a library of 64-bit numbers cannot read our arrays */
    if (weights == NULL || sides == NULL || first[n] == 0 || first[n] > LARGEST_SUM / 2 ||
        sizeof(SCOTCH_Num) != sizeof *first || SCOTCH_numSizeof() != sizeof(SCOTCH_Num))
        goto cleanup;
    SCOTCH_graphInit(&s.graph);
    SCOTCH_graphInit(&s.bound);
    SCOTCH_archInit(&s.arch);
    SCOTCH_stratInit(&s.strategy);
    SCOTCH_contextInit(&s.context);
    done = scotch_map(&s, n, first, to, bytes, left, weights, sides);
    for (uint32_t v = 0; done && v < n; v++)
        side[v] = sides[v] != 0;
    SCOTCH_stratExit(&s.strategy);
    SCOTCH_archExit(&s.arch);
    SCOTCH_graphExit(&s.bound);
    SCOTCH_graphExit(&s.graph);
    SCOTCH_contextExit(&s.context);
cleanup:
    free(weights);
    free(sides);
    return done;
}

run_divide_fn *run_scotch(void)
{
    return scotch_divide;
}

#endif

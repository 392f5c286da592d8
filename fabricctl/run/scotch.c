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
    SCOTCH_Num *first, *to, *weights, *side;
};

/* Copy the graph; weights are proportional to bytes, and at least 1. */
static bool scotch_graph(struct scotch *s, uint32_t n, const uint32_t *first, const uint32_t *to,
                         const double *bytes)
{
    const uint32_t edges = first[n];
    double sum = 0;
    s->first = calloc(n + (size_t)1, sizeof *s->first);
    s->side = calloc(n + (size_t)1, sizeof *s->side);
    s->to = calloc(edges + (size_t)1, sizeof *s->to);
    s->weights = calloc(edges + (size_t)1, sizeof *s->weights);
    if (s->first == NULL || s->side == NULL || s->to == NULL || s->weights == NULL)
        return false;
    for (uint32_t e = 0; e < edges; e++)
        sum += bytes[e];
    for (uint32_t v = 0; v <= n; v++)
        s->first[v] = (SCOTCH_Num)first[v];
    for (uint32_t e = 0; e < edges; e++) {
        s->to[e] = (SCOTCH_Num)to[e];
        s->weights[e] = (SCOTCH_Num)(bytes[e] / sum * LARGEST_SUM / 2) + 1;
    }
    return SCOTCH_graphBuild(&s->graph, 0, (SCOTCH_Num)n, s->first, NULL, NULL, NULL, (SCOTCH_Num)edges,
                             s->to, s->weights) == 0;
}

/* Map to two processors whose weights are the sizes of the sides. One thread: the same input, the same
 * answer. */
static bool scotch_map(struct scotch *s, uint32_t n, uint32_t left)
{
    const SCOTCH_Num sizes[] = {(SCOTCH_Num)left, (SCOTCH_Num)(n - left)};
    SCOTCH_randomReset();
    return SCOTCH_contextThreadSpawn(&s->context, 1, NULL) == 0 &&
           SCOTCH_contextOptionSetNum(&s->context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) == 0 &&
           SCOTCH_contextBindGraph(&s->context, &s->graph, &s->bound) == 0 &&
           SCOTCH_archCmpltw(&s->arch, 2, sizes) == 0 &&
           SCOTCH_stratGraphMapBuild(&s->strategy, SCOTCH_STRATQUALITY | SCOTCH_STRATBALANCE, 2, 0.01) == 0 &&
           SCOTCH_graphMap(&s->bound, &s->arch, &s->strategy, s->side) == 0;
}

static bool scotch_divide(uint32_t n, const uint32_t *first, const uint32_t *to, const double *bytes,
                          uint32_t left, uint8_t *side)
{
    struct scotch s = {0};
    bool done = false;
    /* a graph without messages has no weights; the library may be one of 64-bit numbers */
    if (first[n] == 0 || first[n] > LARGEST_SUM / 2 || SCOTCH_numSizeof() != sizeof(SCOTCH_Num))
        return false;
    SCOTCH_graphInit(&s.graph);
    SCOTCH_graphInit(&s.bound);
    SCOTCH_archInit(&s.arch);
    SCOTCH_stratInit(&s.strategy);
    SCOTCH_contextInit(&s.context);
    done = scotch_graph(&s, n, first, to, bytes) && scotch_map(&s, n, left);
    for (uint32_t v = 0; done && v < n; v++)
        side[v] = s.side[v] != 0;
    SCOTCH_stratExit(&s.strategy);
    SCOTCH_archExit(&s.arch);
    SCOTCH_graphExit(&s.bound);
    SCOTCH_graphExit(&s.graph);
    SCOTCH_contextExit(&s.context);
    free(s.first);
    free(s.to);
    free(s.weights);
    free(s.side);
    return done;
}

run_divide_fn *run_scotch(void)
{
    return scotch_divide;
}

#endif

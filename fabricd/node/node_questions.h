/*
 * node_questions.h - questions about "this node" on their way to the scheduler, which is another one.
 */
#ifndef FABRICD_NODE_NODE_QUESTIONS_H
#define FABRICD_NODE_NODE_QUESTIONS_H

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>

struct node_queries {
    pmix_query_t *queries;
    size_t n;
    bool made; /* ours to free */
};

/*
 * The same questions, those about the devices or coordinates of the node that is asked with this host's name
 * as a qualifier (keys.h). Where there are none, the questions themselves. PMIX_ERR_NOMEM;
 * PMIX_ERR_OUT_OF_RESOURCE: too many keys times qualifiers. *out is to be freed in any case.
 */
pmix_status_t node_name_host(pmix_query_t *queries, size_t n, struct node_queries *out);
void node_queries_free(struct node_queries *named);

#endif

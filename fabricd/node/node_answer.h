/*
 * node_answer.h - what came of a delivery: what the scheduler says, or the relay instead of it.
 */
#ifndef FABRICD_NODE_NODE_ANSWER_H
#define FABRICD_NODE_NODE_ANSWER_H

#include "fabricd/node/node_queue.h"

/* 0: acknowledged; else why not. *held: what the scheduler holds; untouched where it is not the scheduler
 * that answers. *reason: a line, as long as the answer lives. */
int answer_read(struct loop_queue_answer *answer, const char **reason, uint64_t *held);

/* Can trying again soon lead to another answer than this one? */
bool answer_may_pass(int code);

#endif

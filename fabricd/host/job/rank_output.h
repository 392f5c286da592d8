/*
 * rank_output.h - what processes write, line by line: to the one who spawned them where he asked for it, else
 * to our own standard output and error; and to those who pulled it as well.
 */
#ifndef FABRICD_HOST_JOB_RANK_OUTPUT_H
#define FABRICD_HOST_JOB_RANK_OUTPUT_H

#include "fabricd/host/job/jobs.h"

/* Takes the descriptor, also when it fails. */
bool output_open(struct event_base *base, struct host_stream *stream, struct host_proc *proc,
                 pmix_iof_channel_t channel, int fd);

/* The process has ended: all that is there, and no more. */
void output_drain(struct host_stream *stream);

void output_close(struct host_stream *stream);

/* As if the process had written it; NULL: it is nobody's. */
void output_text(const struct host_proc *proc, pmix_iof_channel_t channel, const char *text, size_t size);

/* We are to end: from now on nobody's reading is waited for but for a while. For signal handlers, too. */
void output_will_end(void);

#endif

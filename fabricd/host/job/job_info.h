/* job_info.h - what a job's processes find with PMIx_Get when they start. */
#ifndef FABRICD_HOST_JOB_JOB_INFO_H
#define FABRICD_HOST_JOB_JOB_INFO_H

#include "fabricd/host/job/jobs.h"

/* Tell the library; it hands it to each process that connects. */
pmix_status_t job_info_register(const struct host_job *job, const pmix_app_t *apps, size_t n_apps);

#endif

/* blob_format.h - the frame of a blob, for who writes and who reads it. */
#ifndef FAB_PMIX_LAUNCH_BLOB_FORMAT_H
#define FAB_PMIX_LAUNCH_BLOB_FORMAT_H

#include "pmix/launch/blob.h"

/* Whoever changes what stands in a blob or in an excerpt raises the version. */
static const struct frame_kind blob_frame = {
    .magic = "FABLNCH\n", .version = 2, .max = FAB_BLOB_MAX, .what = "the launch information"};

#endif

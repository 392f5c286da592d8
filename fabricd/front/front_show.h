/* front_show.h - the front in `status` and in the metrics, of either role. */
#ifndef FABRICD_FRONT_FRONT_SHOW_H
#define FABRICD_FRONT_FRONT_SHOW_H

#include <jansson.h>
#include <stdio.h>

json_t *front_json(void);      /* docs/control.md, `front` */
void front_metrics(FILE *out); /* how often it was replaced, who is connected, who refused */

#endif

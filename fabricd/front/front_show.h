/* front_show.h - the front in `status` and in the metrics, of either role. */
#ifndef FABRICD_FRONT_FRONT_SHOW_H
#define FABRICD_FRONT_FRONT_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "fabricd/front/front.h"

json_t *front_json(const struct front *front); /* docs/control.md, `front` */
void front_metrics(FILE *out,
                   const struct front *front); /* how often it was replaced, who is connected, who refused */

#endif

/* checker_show.h - the checker in `status` and in the metrics, of either role. */
#ifndef FABRICD_CHECKER_CHECKER_SHOW_H
#define FABRICD_CHECKER_CHECKER_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "fabricd/checker/checker.h"

json_t *checker_json(const struct checker *checker);            /* docs/control.md, `checker` */
void checker_metrics(FILE *out, const struct checker *checker); /* how often it was replaced */

#endif

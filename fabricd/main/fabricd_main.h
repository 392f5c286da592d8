/*
 * fabricd_main.h - the room where the program begins: which role, in which order its parts start and stop,
 * and what each is handed of the others.
 */
#ifndef FABRICD_MAIN_FABRICD_MAIN_H
#define FABRICD_MAIN_FABRICD_MAIN_H

#include "fabricd/config/config.h"

/* The whole program behind main(). */
int fabricd_main(int argc, char **argv);

/* The role scheduler, after the options; its exit status. */
int scheduler_run(struct config *config);

#endif

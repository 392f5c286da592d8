/* guard_enter.h - restart a program with the guard loaded before its PMIx library. */
#ifndef GUARD_GUARD_ENTER_H
#define GUARD_GUARD_ENTER_H

/*
 * Call this first in main(), before there is a thread. If the guard is part of this program's installation
 * and was not preloaded, the program is executed once more with it. Programs started later have no guard.
 */
void guard_enter(char **argv);

#endif

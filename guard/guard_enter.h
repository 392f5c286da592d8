/* guard_enter.h - a program starts itself again with the guard before its PMIx library. */
#ifndef GUARD_GUARD_ENTER_H
#define GUARD_GUARD_ENTER_H

/*
 * The first call of main(), before there is a thread: where the guard stands in this program's installation
 * and was not preloaded, the program is executed once more, with it. What the program starts later has no
 * guard.
 */
void guard_enter(char **argv);

#endif

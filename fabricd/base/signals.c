#include "fabricd/base/signals.h"

#include <stddef.h>

void signals_ignored(sigset_t *out)
{
    static const int meaningless[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,  SIGXFSZ,
                                      SIGXCPU, SIGIO,   SIGPWR,  SIGPIPE,   SIGSTKFLT};
    sigemptyset(out);
    for (size_t i = 0; i < sizeof(meaningless) / sizeof(meaningless[0]); i++)
        sigaddset(out, meaningless[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaddset(out, number);
}

void signals_ignore(void)
{
    sigset_t ignored;
    signals_ignored(&ignored);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&ignored, number) == 1)
            signal(number, SIG_IGN);
}

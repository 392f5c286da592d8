/*
 * screen.h - the terminal as a page that is drawn again and again, and as it was before at the end.
 */
#ifndef FABRICCTL_SERVICE_SCREEN_H
#define FABRICCTL_SERVICE_SCREEN_H

#include <stdbool.h>

/* Are standard input and output a terminal that such a page can be drawn on? */
bool ctl_screen_possible(void);

/* Take it over: keys come one by one and unseen, and what is too wide is cut off. From here on interrupts, a
 * hang-up and SIGQUIT end the work (ctl_interrupted()), and ctl_screen_wait() answers SIGTSTP, as of Ctrl-Z:
 * the terminal is as it was while the process is stopped. False: it cannot be. */
bool ctl_screen_begin(void);
/* As it was. After a failed begin, and a second time, it does nothing. */
void ctl_screen_end(void);

/* Its height in lines, now. */
unsigned ctl_screen_lines(void);

/* Show as many lines of `page` as there is room for. False: nobody can see it. */
bool ctl_screen_draw(const char *page);

/* Wait until it is time to draw again: so many milliseconds, a key, or another size. False: the operator ends
 * it, by q or an interrupt, or the terminal is gone. */
bool ctl_screen_wait(int milliseconds);

#endif

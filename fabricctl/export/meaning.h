/*
 * meaning.h - what a written text says, whatever its comments, and its blanks and its order where they say
 * nothing: equal meanings are equal texts.
 */
#ifndef FABRICCTL_EXPORT_MEANING_H
#define FABRICCTL_EXPORT_MEANING_H

/* For the table of formats; free with free(). NULL: no memory, or the text is none of the kind. */

/* Lines of words: without comments (#) and empty lines, indented as they are, one blank between words.
 */
char *ctl_meaning_lines(const char *text);
/* Slurm's configuration: as above, lines in any order, lists of hosts and switches spelled out and sorted. */
char *ctl_meaning_slurm(const char *text);
/* The same, but for the lines' order: Slurm makes larger blocks of blocks that follow each other. */
char *ctl_meaning_slurm_block(const char *text);
/* JSON: members in any order. */
char *ctl_meaning_json(const char *text);
/* The same of all that planes hold: which generation it is, and since when, is no part of it. */
char *ctl_meaning_planes(const char *text);

#endif

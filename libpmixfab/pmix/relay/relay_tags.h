/*
 * relay_tags.h - two holes of the library that a process with a connection to a server has (docs/relay.md,
 * "What the stock library does to an attached server").
 */
#ifndef FAB_PMIX_RELAY_RELAY_TAGS_H
#define FAB_PMIX_RELAY_RELAY_TAGS_H

/*
 * Before the first connection, and after each one: this process's questions go on at a number that no client
 * reaches. Nothing is done where relay_check_library() has not said so.
 */
void relay_repair_questions(void);

/*
 * After a connection: what nobody will answer any more is forgotten. In a tool the library answers it with an
 * error when the connection is lost, keeps it, and answers it again, when it is freed, at the next loss.
 */
void relay_repair_unanswered(void);

#endif

/*
 * relay_tags.h - repair two bugs of the library in a process that is connected to a server (docs/relay.md,
 * "What the stock library does to an attached server").
 */
#ifndef FAB_PMIX_RELAY_RELAY_TAGS_H
#define FAB_PMIX_RELAY_RELAY_TAGS_H

/*
 * Before the first connection, and after each one: continue the numbers of this process's requests where no
 * client reaches them. Does nothing unless relay_check_library() allows it.
 */
void relay_repair_questions(void);

/*
 * After a connection: drop requests that will never be answered. In a tool the library answers such a request
 * with an error when the connection is lost, keeps it, and answers it again, when it is freed, at the next
 * loss.
 */
void relay_repair_unanswered(void);

#endif

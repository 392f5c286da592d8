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
 * Drop requests that will never be answered, after a connection. When the connection of a tool is lost, the
 * library answers such a request with an error but keeps it. At the next loss it answers the same request
 * again, although the request is freed by then.
 */
void relay_repair_unanswered(void);

#endif

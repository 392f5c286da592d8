/* control_hands.h - what an operator has done or asks to be done: refresh, verify, check, expect. */
#ifndef FABRICD_CONTROL_HANDS_H
#define FABRICD_CONTROL_HANDS_H

#include "fabricd/control/control_priv.h"

void control_op_refresh(struct connection *connection, json_t *request);
void control_op_check(struct connection *connection, json_t *request);
void control_op_expect(struct connection *connection, json_t *request);
void control_op_verify(struct connection *connection, json_t *request); /* control_verify.c */

/* True where the caller may change things; else that is answered. */
bool control_allowed(struct connection *connection, const char *op);

#endif

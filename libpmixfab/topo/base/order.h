/* order.h - how two numbers stand to each other. */
#ifndef FAB_TOPO_BASE_ORDER_H
#define FAB_TOPO_BASE_ORDER_H

/* Below 0, 0 or above 0, as strcmp() of texts. Of several keys: FAB_ORDER(x->a, y->a) ?: strcmp(x->b, y->b).
 */
#define FAB_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif

/* order.h - compare two numbers. */
#ifndef FAB_TOPO_BASE_ORDER_H
#define FAB_TOPO_BASE_ORDER_H

/*
 * Return a value below, equal to or above 0, as strcmp(). For several keys, write FAB_ORDER(x->a, y->a) ?:
 * strcmp(x->b, y->b).
 */
#define FAB_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif

/* natural.h - the order in which people read names with numbers in them. */
#ifndef FAB_TOPO_BASE_NATURAL_H
#define FAB_TOPO_BASE_NATURAL_H

/*
 * Compare names with numbers in them as people read them: node2 before node10. Result as strcmp(); only equal
 * bytes compare 0.
 */
int fab_natural_cmp(const char *a, const char *b);

#endif

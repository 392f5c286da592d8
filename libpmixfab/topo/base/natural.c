/* natural.c - the order in which people read names with numbers in them. */
#include "topo/base/natural.h"

#include <stdbool.h>
#include <string.h>

static bool natural_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compare two runs of digits by value and move both pointers past them. */
static int compare_runs(const char **a, const char **b)
{
    const char *x = *a, *y = *b;
    while (*x == '0')
        x++;
    while (*y == '0')
        y++;
    const char *x_end = x, *y_end = y;
    while (natural_is_digit(*x_end))
        x_end++;
    while (natural_is_digit(*y_end))
        y_end++;
    *a = x_end;
    *b = y_end;
    if (x_end - x != y_end - y)
        return x_end - x < y_end - y ? -1 : 1;
    return memcmp(x, y, (size_t)(x_end - x));
}

int fab_natural_cmp(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x != '\0' && *y != '\0') {
        if (natural_is_digit(*x) && natural_is_digit(*y)) {
            int order = compare_runs(&x, &y);
            if (order != 0)
                return order;
        } else if (*x != *y) {
            break;
        } else {
            x++;
            y++;
        }
    }
    if (*x != *y)
        return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
    return strcmp(a, b); /* equal except for leading zeros: node1, node01 */
}

/*
 * Groups of metrics of NVIDIA's GPUs, by the names that Level Zero's groups have: CUPTI knows
 * metrics and no groups.
 */
#ifndef XS_METRIC_SETS_H
#define XS_METRIC_SETS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Metrics of a group for queries, or for sampling by time, by CUPTI's names, separated by commas.
 * NULL: there is no such group. What looks like names of metrics ("dram__bytes.sum,…") is such a
 * list itself.
 */
const char *xs_metric_set(const char *group, bool sampling);
/* The name of group number i; NULL: there are no more. */
const char *xs_metric_set_name(size_t i);

#endif

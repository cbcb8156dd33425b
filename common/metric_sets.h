/*
 * Groups of metrics of NVIDIA's GPUs, by the names that Level Zero's groups have: CUPTI knows
 * metrics and no groups.
 */
#ifndef XS_METRIC_SETS_H
#define XS_METRIC_SETS_H

#include <stdbool.h>
#include <stddef.h>

#define XS_METRIC_NAMES 4096u /* bytes of their text */

/*
 * Metrics of a group for queries, or for sampling by time, by CUPTI's names, separated by commas.
 * NULL: there is no such group.
 */
const char *xs_metric_set(const char *group, bool sampling);
/*
 * The same of several groups and names of metrics ("ComputeBasic,dram__bytes.sum"), each once.
 * False: there are no such groups.
 */
bool xs_metric_names(const char *groups, bool sampling, char ret[XS_METRIC_NAMES]);
/* Does it name metrics, and not groups alone? What the user names so is counted whole. */
bool xs_metrics_named(const char *groups);
/* The name of group number i; NULL: there are no more. */
const char *xs_metric_set_name(size_t i);

#endif

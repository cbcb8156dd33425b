/*
 * --metric-query: the hardware counts while each kernel runs (level_zero_query.c), what groups of
 * metrics of a context's device (level_zero_metrics.c).
 */
#ifndef XS_LEVEL_ZERO_METRICS_H
#define XS_LEVEL_ZERO_METRICS_H

#include "device_record.h"
#include "level_zero.h"
#include "metric_text.h"

struct xs_ze_query;

/* What a query reports of one of the groups. */
struct xs_ze_metered {
	zet_metric_group_handle_t group;
	uint32_t stride; /* metrics of the group */
	uint32_t count;	 /* of these, the first ones that are recorded */
};

/* A device of a context, whose groups are active. */
struct xs_ze_meter {
	struct xs_ze_meter *next; /* of all */
	ze_context_handle_t context;
	ze_device_handle_t device;
	struct xs_ze_metered group[XS_GROUPS_MAX];
	uint32_t groups;
	uint32_t columns; /* of its records, interned */
	uint32_t count;	  /* of metrics in a record, those of the first group first */
	/* the program uses the hardware's counters itself: nothing is measured any more */
	_Atomic bool theirs;
	_Atomic uint32_t lock;
	struct xs_ze_query *free;
	/* recorded, and the device has not told what it counted: the oldest comes first */
	struct xs_ze_query *pending, *pending_last;
	_Atomic uint32_t pending_count;
	struct xs_ze_query_pool *pools;
};

/* ---- level_zero_metrics.c ---- */

/* NULL: nothing can be measured there, which was told. */
struct xs_ze_meter *xs_ze_meter_new(ze_driver_handle_t driver, ze_context_handle_t context,
				    ze_device_handle_t device);
/* The context is about to end: so do the groups' activation and their queries. */
void xs_ze_meter_end(struct xs_ze_meter *meter);

/* ---- level_zero_query.c ---- */

/*
 * Before and behind a command: the query that tells what was counted between the two, from the
 * moment on at which all that the command waits for is there. NULL: it is not measured, which was
 * counted.
 */
struct xs_ze_query *xs_ze_query_begin(struct xs_ze_meter *meter, ze_command_list_handle_t list,
				      uint32_t nwait, ze_event_handle_t *wait);
/*
 * `waits`: nothing else will tell when it is complete. Returns the query; NULL: it cannot be read.
 */
struct xs_ze_query *xs_ze_query_end(struct xs_ze_query *query, ze_command_list_handle_t list,
				    bool waits);
/* The command has this record; what was counted is told when it is known. */
void xs_ze_query_told(struct xs_ze_query *query, const struct xs_device_record *work);
/* The same of a command that has been executed, and not again since. */
void xs_ze_query_executed(struct xs_ze_query *query, const struct xs_device_record *work);
/* Nothing on the device uses it any more. */
void xs_ze_query_put(struct xs_ze_query *query);
/* Kept until then, in front of others; and: the same of all of these. */
void xs_ze_query_keep(struct xs_ze_query **queries, struct xs_ze_query *query);
void xs_ze_queries_put(struct xs_ze_query *queries);
/* Tells what is known by now of those that were told. */
void xs_ze_queries_collect(struct xs_ze_meter *meter);
void xs_ze_queries_destroy(struct xs_ze_meter *meter);

#endif

/*
 * Queries of hardware metrics: one goes along with each kernel that is measured. To the driver it
 * is as many queries as there are groups.
 *
 * A query is appended before and behind its kernel. That of an immediate list has an event, which
 * tells when the device has written what it counted. That of a regular list is complete when the
 * execution is, and is read unless the list is executed again before that. A query is used again
 * once it is read.
 */
#include "device_record.h"
#include "level_zero_metrics.h"
#include "level_zero_value.h"
#include "task_record.h"

#define CHUNK 64u

struct xs_ze_query {
	struct xs_ze_query *next;
	struct xs_ze_meter *meter;
	zet_metric_query_handle_t handle[XS_GROUPS_MAX]; /* of each group */
	ze_event_handle_t event;			 /* NULL: it could not be made */
	struct xs_device_record work; /* what it was measured of, while that is pending */
};

struct xs_ze_query_pool {
	struct xs_ze_query_pool *next;
	zet_metric_query_pool_handle_t queries[XS_GROUPS_MAX];
	ze_event_pool_handle_t events;
	struct xs_ze_query query[CHUNK];
};

static struct xs_spare rooms;

#define PARTS 64u

/* Reports of the device, raw and calculated: too much for the caller's stack. */
struct room {
	uint8_t raw[65536];
	struct report {
		zet_typed_value_t values[2048];
		uint32_t counts[PARTS], parts; /* values in each of the report's parts */
	} report[XS_GROUPS_MAX];
};

/* ---- queries that are not in use ---- */

static void push(struct xs_ze_query *query)
{
	struct xs_ze_meter *meter = query->meter;

	xs_lock_robust(&meter->lock);
	query->next = meter->free;
	meter->free = query;
	xs_unlock(&meter->lock);
}

static struct xs_ze_query *pop(struct xs_ze_meter *meter)
{
	struct xs_ze_query *query;

	xs_lock_robust(&meter->lock);
	query = meter->free;
	if (query)
		meter->free = query->next;
	xs_unlock(&meter->lock);
	return query;
}

static void destroy_handles(struct xs_ze_query *query, uint32_t groups)
{
	while (groups--)
		(void)xs_ze.zetMetricQuery.pfnDestroy(query->handle[groups]);
}

static bool make(struct xs_ze_query_pool *pool, struct xs_ze_meter *meter, uint32_t number)
{
	ze_event_desc_t event = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
				  .index = number,
				  .signal = ZE_EVENT_SCOPE_FLAG_HOST };
	struct xs_ze_query *query = &pool->query[number];
	uint32_t made = 0;

	query->meter = meter;
	while (made < meter->groups &&
	       !xs_ze.zetMetricQuery.pfnCreate(pool->queries[made], number, &query->handle[made]))
		made++;
	if (made == meter->groups && !xs_ze.zeEvent.pfnCreate(pool->events, &event, &query->event))
		return true;
	query->event = NULL;
	destroy_handles(query, made);
	return false;
}

static void destroy_pools(struct xs_ze_query_pool *pool, uint32_t groups)
{
	while (groups--)
		(void)xs_ze.zetMetricQueryPool.pfnDestroy(pool->queries[groups]);
}

static bool make_pools(struct xs_ze_query_pool *pool, struct xs_ze_meter *meter)
{
	zet_metric_query_pool_desc_t desc = { .stype = ZET_STRUCTURE_TYPE_METRIC_QUERY_POOL_DESC,
					      .type = ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE,
					      .count = CHUNK };
	ze_event_pool_desc_t events = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
					.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
					.count = CHUNK };
	uint32_t made = 0;

	while (made < meter->groups &&
	       !xs_ze.zetMetricQueryPool.pfnCreate(meter->context, meter->device,
						   meter->group[made].group, &desc,
						   &pool->queries[made]))
		made++;
	if (made == meter->groups &&
	    !xs_ze.zeEventPool.pfnCreate(meter->context, &events, 1, &meter->device, &pool->events))
		return true;
	destroy_pools(pool, made);
	return false;
}

static bool more_queries(struct xs_ze_meter *meter)
{
	/* the driver may need system calls for a pool */
	struct xs_ze_query_pool *pool = xs_is_sealed() ? NULL : xs_arena(sizeof(*pool));

	if (!pool || !make_pools(pool, meter))
		return false;
	xs_lock_robust(&meter->lock);
	pool->next = meter->pools;
	meter->pools = pool;
	xs_unlock(&meter->lock);
	for (uint32_t i = CHUNK; i--;)
		if (make(pool, meter, i))
			push(&pool->query[i]);
	return true;
}

static void reset(const struct xs_ze_query *query)
{
	for (uint32_t i = 0; i < query->meter->groups; i++)
		(void)xs_ze.zetMetricQuery.pfnReset(query->handle[i]);
}

void xs_ze_query_put(struct xs_ze_query *query)
{
	reset(query);
	(void)xs_ze.zeEvent.pfnHostReset(query->event);
	push(query);
}

void xs_ze_query_keep(struct xs_ze_query **queries, struct xs_ze_query *query)
{
	query->next = *queries;
	*queries = query;
}

void xs_ze_queries_put(struct xs_ze_query *queries)
{
	while (queries) {
		struct xs_ze_query *query = queries;

		queries = query->next;
		xs_ze_query_put(query);
	}
}

void xs_ze_queries_destroy(struct xs_ze_meter *meter)
{
	xs_ze_queries_collect(meter);
	atomic_store(&meter->pending_count, 0);
	for (struct xs_ze_query_pool *pool = meter->pools; pool; pool = pool->next) {
		for (uint32_t i = 0; i < CHUNK; i++) {
			if (!pool->query[i].event)
				continue;
			destroy_handles(&pool->query[i], meter->groups);
			(void)xs_ze.zeEvent.pfnDestroy(pool->query[i].event);
		}
		destroy_pools(pool, meter->groups);
		(void)xs_ze.zeEventPool.pfnDestroy(pool->events);
	}
	meter->pools = NULL;
	meter->free = meter->pending = meter->pending_last = NULL;
}

/* ---- around a command ---- */

/* Of the first `groups` ones, which have begun: the last one first. The first one signals. */
static bool end(struct xs_ze_query *query, uint32_t groups, ze_command_list_handle_t list,
		ze_event_handle_t event)
{
	bool ended = true;

	while (groups--)
		ended &= !xs_ze.zetCommandList.pfnAppendMetricQueryEnd(list, query->handle[groups],
								       groups ? NULL : event, 0,
								       NULL);
	return ended;
}

/* False: it is not measured; one that has begun in part is not used again. */
static bool begin(struct xs_ze_query *query, ze_command_list_handle_t list, uint32_t nwait,
		  ze_event_handle_t *wait)
{
	uint32_t groups = query->meter->groups, begun = 0;

	if (!nwait || !xs_ze.zeCommandList.pfnAppendWaitOnEvents(list, nwait, wait))
		while (begun < groups &&
		       !xs_ze.zetCommandList.pfnAppendMetricQueryBegin(list, query->handle[begun]))
			begun++;
	if (begun == groups)
		return true;
	if (begun)
		(void)end(query, begun, list, NULL);
	else
		push(query);
	return false;
}

struct xs_ze_query *xs_ze_query_begin(struct xs_ze_meter *meter, ze_command_list_handle_t list,
				      uint32_t nwait, ze_event_handle_t *wait)
{
	struct xs_ze_query *query = atomic_load(&meter->theirs) ? NULL : pop(meter);

	if (!query && !atomic_load(&meter->theirs) && more_queries(meter))
		query = pop(meter);
	if (query && begin(query, list, nwait, wait))
		return query;
	xs_count_unmeasured(1);
	return NULL;
}

struct xs_ze_query *xs_ze_query_end(struct xs_ze_query *query, ze_command_list_handle_t list,
				    bool waits)
{
	if (end(query, query->meter->groups, list, waits ? query->event : NULL))
		return query;
	/* it has begun, and never ends: it is not used again */
	xs_count_unmeasured(1);
	return NULL;
}

/* ---- what was counted ---- */

/* Part number `part` of a group's report, into the record's values. */
static void put_report(const struct xs_ze_metered *group, const struct report *report,
		       uint32_t part, uint64_t *values, uint8_t *types)
{
	const zet_typed_value_t *from = report->values;
	uint32_t there = part < report->parts ? report->counts[part] : 0;

	for (uint32_t i = 0; i < part && there; i++)
		from += report->counts[i];
	for (uint32_t i = 0; i < group->count; i++) {
		values[i] = 0;
		types[i] = XS_VALUE_NONE;
		if (i < there)
			values[i] = xs_level_zero_value(&from[i], &types[i]);
	}
}

static bool write_part(const struct xs_ze_meter *meter, const struct xs_device_record *work,
		       uint32_t part, const struct room *room)
{
	uint32_t size = XS_METRICS_SIZE(meter->count), at = 0;
	struct xs_metrics_record *record = xs_record_reserve(size, XS_ROLE_OTHER);
	uint8_t *types;

	if (!record)
		return false;
	memset((char *)record + size - 16, 0, 16);
	memcpy(&record->work, work, sizeof(*work));
	record->work.event.kind = XS_METRICS;
	record->work.event.words = (uint8_t)(size / 8);
	record->columns = meter->columns;
	record->count = (uint16_t)meter->count;
	record->part = (uint16_t)part;
	record->reserved = 0;
	types = (uint8_t *)&record->value[meter->count];
	for (uint32_t i = 0; i < meter->groups; at += meter->group[i++].count)
		put_report(&meter->group[i], &room->report[i], part, &record->value[at],
			   &types[at]);
	xs_record_end(size);
	return true;
}

#define ROOM_FOR(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* False: the report cannot be calculated. */
static bool calculate(zet_metric_group_handle_t group, const uint8_t *raw, size_t size,
		      struct report *report)
{
	uint32_t parts = 0, total = 0;
	const zet_metric_group_calculation_type_t type =
		ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES;

	if (!xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp) {
		if (xs_ze.zetMetricGroup.pfnCalculateMetricValues(group, type, size, raw, &total,
								  NULL) ||
		    total > ROOM_FOR(report->values) ||
		    xs_ze.zetMetricGroup.pfnCalculateMetricValues(group, type, size, raw, &total,
								  report->values))
			return false;
		report->counts[0] = total;
		report->parts = 1;
		return total != 0;
	}
	if (xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp(group, type, size, raw,
									&parts, &total, NULL,
									NULL) ||
	    parts > PARTS || total > ROOM_FOR(report->values) ||
	    xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp(
		    group, type, size, raw, &parts, &total, report->counts, report->values) ||
	    parts > PARTS)
		return false;
	/* what a driver tells of more values than there are is not believed */
	for (report->parts = total = 0; report->parts < parts; report->parts++) {
		if (report->counts[report->parts] > ROOM_FOR(report->values) - total)
			break;
		total += report->counts[report->parts];
	}
	return report->parts != 0;
}

/* What the query has counted of group number i. */
static bool read_report(const struct xs_ze_query *query, uint32_t i, struct room *room)
{
	size_t size = 0;

	return !xs_ze.zetMetricQuery.pfnGetData(query->handle[i], &size, NULL) &&
	       size <= sizeof(room->raw) &&
	       !xs_ze.zetMetricQuery.pfnGetData(query->handle[i], &size, room->raw) &&
	       size <= sizeof(room->raw) &&
	       calculate(query->meter->group[i].group, room->raw, size, &room->report[i]);
}

static bool tell_parts(const struct xs_ze_query *query, const struct xs_device_record *work,
		       struct room *room)
{
	const struct xs_ze_meter *meter = query->meter;
	uint32_t parts = 0;

	for (uint32_t i = 0; i < meter->groups; i++) {
		if (!read_report(query, i, room))
			return false;
		if (room->report[i].parts > parts)
			parts = room->report[i].parts;
	}
	for (uint32_t i = 0; i < parts; i++) /* a ring that is full has counted what it lost */
		(void)write_part(meter, work, i, room);
	return true;
}

static bool tell(const struct xs_ze_query *query, const struct xs_device_record *work)
{
	struct room *room =
		atomic_load(&query->meter->theirs) ? NULL : xs_spare_take(&rooms, sizeof(*room));
	bool told = room && tell_parts(query, work, room);

	if (room)
		xs_spare_give(&rooms, room);
	return told;
}

void xs_ze_query_executed(struct xs_ze_query *query, const struct xs_device_record *work)
{
	if (!tell(query, work))
		xs_count_unmeasured(1);
	reset(query);
}

/* With the lock held. */
static void append(struct xs_ze_meter *meter, struct xs_ze_query *query)
{
	query->next = NULL;
	if (meter->pending)
		meter->pending_last->next = query;
	else
		meter->pending = query;
	meter->pending_last = query;
}

void xs_ze_query_told(struct xs_ze_query *query, const struct xs_device_record *work)
{
	struct xs_ze_meter *meter = query->meter;

	/* as long as it is not read: the process may end at any time */
	xs_count_unmeasured(1);
	query->work = *work;
	xs_lock_robust(&meter->lock);
	append(meter, query);
	xs_unlock(&meter->lock);
	atomic_fetch_add(&meter->pending_count, 1);
}

static struct xs_ze_query *take_oldest(struct xs_ze_meter *meter)
{
	struct xs_ze_query *query;

	xs_lock_robust(&meter->lock);
	query = meter->pending;
	if (query)
		meter->pending = query->next;
	xs_unlock(&meter->lock);
	return query;
}

/*
 * No lock is held while the driver is asked. Each is asked once: those that are not complete go
 * to the end of the line.
 */
void xs_ze_queries_collect(struct xs_ze_meter *meter)
{
	uint32_t left = atomic_load(&meter->pending_count);
	struct xs_ze_query *query;
	ze_result_t result;

	while (left-- && xs_recording() && (query = take_oldest(meter))) {
		result = xs_ze.zeEvent.pfnQueryStatus(query->event);
		if (result == ZE_RESULT_NOT_READY) {
			xs_lock_robust(&meter->lock);
			append(meter, query);
			xs_unlock(&meter->lock);
			continue;
		}
		atomic_fetch_sub(&meter->pending_count, 1);
		if (result)
			continue; /* a lost device: it is not used again */
		if (tell(query, &query->work))
			xs_count_unmeasured(UINT64_MAX);
		xs_ze_query_put(query);
	}
}

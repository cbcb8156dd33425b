/*
 * Queries of hardware metrics: one goes along with each kernel that is measured.
 *
 * A query is appended before and behind its kernel. That of an immediate list has an event, which
 * tells when the device has written what it counted. That of a regular list is complete when the
 * execution is, and is read unless the list is executed again before that. A query is used again
 * once it is read.
 */
#include "level_zero_metrics.h"
#include "level_zero_value.h"

#define CHUNK 64u

struct xs_ze_query {
	struct xs_ze_query *next;
	struct xs_ze_meter *meter;
	zet_metric_query_handle_t handle;
	ze_event_handle_t event;
	struct xs_device_record work; /* what it was measured of, while that is pending */
};

struct xs_ze_query_pool {
	struct xs_ze_query_pool *next;
	zet_metric_query_pool_handle_t queries;
	ze_event_pool_handle_t events;
	struct xs_ze_query query[CHUNK];
};

static struct xs_spare rooms;

/* A report of the device, raw and calculated: too much for the caller's stack. */
struct room {
	uint8_t raw[65536];
	zet_typed_value_t values[2048];
	uint32_t counts[64]; /* of values in each of the report's parts */
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

static bool make(struct xs_ze_query_pool *pool, struct xs_ze_meter *meter, uint32_t i)
{
	ze_event_desc_t event = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
				  .index = i,
				  .signal = ZE_EVENT_SCOPE_FLAG_HOST };
	struct xs_ze_query *query = &pool->query[i];

	query->meter = meter;
	if (xs_ze.zetMetricQuery.pfnCreate(pool->queries, i, &query->handle))
		return false;
	if (!xs_ze.zeEvent.pfnCreate(pool->events, &event, &query->event))
		return true;
	(void)xs_ze.zetMetricQuery.pfnDestroy(query->handle);
	query->handle = NULL;
	return false;
}

static bool more_queries(struct xs_ze_meter *meter)
{
	zet_metric_query_pool_desc_t desc = { .stype = ZET_STRUCTURE_TYPE_METRIC_QUERY_POOL_DESC,
					      .type = ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE,
					      .count = CHUNK };
	ze_event_pool_desc_t events = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
					.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
					.count = CHUNK };
	/* the driver may need system calls for a pool */
	struct xs_ze_query_pool *pool = xs_is_sealed() ? NULL : xs_arena(sizeof(*pool));

	if (!pool || xs_ze.zetMetricQueryPool.pfnCreate(meter->context, meter->device, meter->group,
							&desc, &pool->queries))
		return false;
	if (xs_ze.zeEventPool.pfnCreate(meter->context, &events, 1, &meter->device,
					&pool->events)) {
		(void)xs_ze.zetMetricQueryPool.pfnDestroy(pool->queries);
		return false;
	}
	xs_lock_robust(&meter->lock);
	pool->next = meter->pools;
	meter->pools = pool;
	xs_unlock(&meter->lock);
	for (uint32_t i = CHUNK; i--;)
		if (make(pool, meter, i))
			push(&pool->query[i]);
	return true;
}

void xs_ze_query_put(struct xs_ze_query *query)
{
	(void)xs_ze.zetMetricQuery.pfnReset(query->handle);
	(void)xs_ze.zeEvent.pfnHostReset(query->event);
	push(query);
}

void xs_ze_queries_destroy(struct xs_ze_meter *meter)
{
	xs_ze_queries_collect(meter);
	atomic_store(&meter->pending_count, 0);
	for (struct xs_ze_query_pool *pool = meter->pools; pool; pool = pool->next) {
		for (uint32_t i = 0; i < CHUNK; i++) {
			if (!pool->query[i].handle)
				continue;
			(void)xs_ze.zetMetricQuery.pfnDestroy(pool->query[i].handle);
			(void)xs_ze.zeEvent.pfnDestroy(pool->query[i].event);
		}
		(void)xs_ze.zetMetricQueryPool.pfnDestroy(pool->queries);
		(void)xs_ze.zeEventPool.pfnDestroy(pool->events);
	}
	meter->pools = NULL;
	meter->free = meter->pending = meter->pending_last = NULL;
}

/* ---- around a command ---- */

struct xs_ze_query *xs_ze_query_begin(struct xs_ze_meter *meter, ze_command_list_handle_t list,
				      uint32_t nwait, ze_event_handle_t *wait)
{
	struct xs_ze_query *query = atomic_load(&meter->theirs) ? NULL : pop(meter);

	if (!query && !atomic_load(&meter->theirs) && more_queries(meter))
		query = pop(meter);
	if (query && ((nwait && xs_ze.zeCommandList.pfnAppendWaitOnEvents(list, nwait, wait)) ||
		      xs_ze.zetCommandList.pfnAppendMetricQueryBegin(list, query->handle))) {
		push(query);
		query = NULL;
	}
	if (!query)
		xs_count_unmeasured(1);
	return query;
}

struct xs_ze_query *xs_ze_query_end(struct xs_ze_query *query, ze_command_list_handle_t list,
				    bool waits)
{
	if (!xs_ze.zetCommandList.pfnAppendMetricQueryEnd(list, query->handle,
							  waits ? query->event : NULL, 0, NULL))
		return query;
	/* it has begun, and never ends: it is not used again */
	xs_count_unmeasured(1);
	return NULL;
}

/* ---- what was counted ---- */

static bool write_part(const struct xs_ze_meter *meter, const struct xs_device_record *work,
		       uint32_t part, const zet_typed_value_t *values, uint32_t count)
{
	uint32_t n = count < meter->count ? count : meter->count, size = XS_METRICS_SIZE(n);
	struct xs_metrics_record *record = xs_record_reserve(size, XS_ROLE_OTHER);
	uint8_t *types;

	if (!record)
		return false;
	memset((char *)record + size - 16, 0, 16);
	memcpy(&record->work, work, sizeof(*work));
	record->work.event.kind = XS_METRICS;
	record->work.event.words = (uint8_t)(size / 8);
	record->columns = meter->columns;
	record->count = (uint16_t)n;
	record->part = (uint16_t)part;
	record->reserved = 0;
	types = (uint8_t *)&record->value[n];
	for (uint32_t i = 0; i < n; i++)
		record->value[i] = xs_level_zero_value(&values[i], &types[i]);
	xs_record_end(size);
	return true;
}

#define ROOM_FOR(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Returns how many parts the report has; 0: it cannot be calculated. */
static uint32_t calculate(const struct xs_ze_meter *meter, struct room *room, size_t size)
{
	uint32_t parts = 0, total = 0;
	const zet_metric_group_calculation_type_t type =
		ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES;

	if (!xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp) {
		if (xs_ze.zetMetricGroup.pfnCalculateMetricValues(meter->group, type, size,
								  room->raw, &total, NULL) ||
		    total > ROOM_FOR(room->values) ||
		    xs_ze.zetMetricGroup.pfnCalculateMetricValues(meter->group, type, size,
								  room->raw, &total, room->values))
			return 0;
		room->counts[0] = total;
		return total != 0;
	}
	if (xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp(meter->group, type, size,
									room->raw, &parts, &total,
									NULL, NULL) ||
	    parts > ROOM_FOR(room->counts) || total > ROOM_FOR(room->values) ||
	    xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp(meter->group, type, size,
									room->raw, &parts, &total,
									room->counts, room->values))
		return 0;
	return parts <= ROOM_FOR(room->counts) ? parts : 0;
}

static bool tell_parts(const struct xs_ze_query *query, const struct xs_device_record *work,
		       struct room *room)
{
	const zet_typed_value_t *values = room->values;
	size_t size = 0;
	uint32_t parts, left = ROOM_FOR(room->values);

	if (xs_ze.zetMetricQuery.pfnGetData(query->handle, &size, NULL) ||
	    size > sizeof(room->raw) ||
	    xs_ze.zetMetricQuery.pfnGetData(query->handle, &size, room->raw) ||
	    size > sizeof(room->raw))
		return false;
	parts = calculate(query->meter, room, size);
	for (uint32_t i = 0; i < parts && room->counts[i] <= left; i++) {
		/* a ring that is full has counted what it lost */
		(void)write_part(query->meter, work, i, values, room->counts[i]);
		values += room->counts[i];
		left -= room->counts[i];
	}
	return parts;
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
	(void)xs_ze.zetMetricQuery.pfnReset(query->handle);
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

/*
 * --format perfetto: tasks that begin and end at the same time. The file is read as Perfetto's
 * trace processor does it: packets sorted by time, those of one time in the order in which they
 * stand in the file; an end is that of the slice which was begun last.
 */
#include "drained.h"
#include "perfetto_fields.h"
#include "task_record.h"

#define TASKS  2000u
#define DEEP   12u
#define PLACES 4096u

struct event {
	uint64_t time, place;
	bool end;
	uint32_t name; /* of the task */
};

struct message {
	const unsigned char *at, *end;
};

/* The number of the next field, *ret_value if that is one, *ret_bytes if it has such; 0: no more.
 */
static uint64_t varint(struct message *m)
{
	uint64_t value = 0;

	for (unsigned shift = 0; m->at < m->end && shift < 64; shift += 7) {
		value |= (uint64_t)(*m->at & 127) << shift;
		if (*m->at++ < 128)
			break;
	}
	return value;
}

static uint32_t field(struct message *m, uint64_t *ret_value, struct message *ret_bytes)
{
	uint64_t tag, n;

	if (m->at >= m->end)
		return 0;
	tag = varint(m);
	if ((tag & 7) == 0) {
		*ret_value = varint(m);
	} else if ((tag & 7) == 2) {
		n = varint(m);
		*ret_bytes = (struct message){ m->at, m->at + n };
		m->at += n;
	} else {
		m->at += (tag & 7) == 1 ? 8 : 4;
	}
	return (uint32_t)(tag >> 3);
}

/* Of each interned name, by its number: the task that it stands for. */
static uint32_t names[PLACES];

static void read_names(struct message interned)
{
	struct message entry, text = { NULL, NULL };
	uint64_t value = 0, iid = 0;
	uint32_t what;

	while ((what = field(&interned, &value, &entry))) {
		if (what != INTERNED_NAMES)
			continue;
		while ((what = field(&entry, &value, &text)))
			if (what == INTERNED_IID)
				iid = value;
		if (iid < PLACES && text.end - text.at > 4 && !memcmp(text.at, "d::t", 4))
			names[iid] = (uint32_t)strtoul((const char *)text.at + 4, NULL, 10) + 1;
	}
}

/* False: it is no begin or end of a slice. */
static bool read_packet(struct message packet, struct event *event)
{
	static uint64_t now[PLACES]; /* of each sequence */
	struct message bytes, track_event = { NULL, NULL };
	uint64_t value = 0, sequence = 0, time = 0, clock = CLOCK_OWN_ID, type = 0;
	uint32_t what;

	while ((what = field(&packet, &value, &bytes))) {
		if (what == PACKET_TIMESTAMP)
			time = value;
		else if (what == PACKET_TIMESTAMP_CLOCK_ID)
			clock = value;
		else if (what == PACKET_SEQUENCE_ID)
			sequence = value % PLACES;
		else if (what == PACKET_SEQUENCE_FLAGS && value & SEQUENCE_CLEARED)
			now[sequence] = 0;
		else if (what == PACKET_INTERNED_DATA)
			read_names(bytes);
		else if (what == PACKET_TRACK_EVENT)
			track_event = bytes;
	}
	if (!track_event.at)
		return false;
	if (clock == CLOCK_OWN_ID)
		time = now[sequence] += time;
	event->time = time;
	event->name = 0;
	while ((what = field(&track_event, &value, &bytes))) {
		if (what == EVENT_TYPE)
			type = value;
		else if (what == EVENT_NAME_IID)
			event->name = value < PLACES ? names[value] : 0;
	}
	event->end = type == TYPE_END;
	return type == TYPE_BEGIN || type == TYPE_END;
}

static int by_time(const void *a, const void *b)
{
	const struct event *l = a, *r = b;

	return l->time != r->time ? (l->time > r->time) - (l->time < r->time)
				  : (l->place > r->place) - (l->place < r->place);
}

static uint32_t read_trace(struct event *events, uint32_t most)
{
	char path[PATH_MAX];
	size_t length = 0;
	char *text = rundir_trace(&dir, path, sizeof(path), &length);
	struct message file_ = { (void *)text, (void *)(text + length) }, packet;
	uint32_t count = 0;
	uint64_t value;

	memset(names, 0, sizeof(names));
	while (count < most && field(&file_, &value, &packet) == TRACE_PACKET) {
		events[count].place = count;
		count += read_packet(packet, &events[count]);
	}
	qsort(events, count, sizeof(*events), by_time);
	free(text);
	return count;
}

static struct {
	uint64_t begin, end; /* ticks, then ns */
	uint32_t depth;
} truth[TASKS];

static void begin_task(struct xs_ring *ring, uint32_t n, uint64_t when, bool plain)
{
	struct xs_task_record *record;
	char name[16];

	(void)snprintf(name, sizeof(name), "t%u", n);
	truth[n].begin = when;
	if (plain) {
		put_begin(&dir, ring, when, task(name));
		return;
	}
	record = (void *)put_space(&dir, ring, sizeof(*record));
	memset(record, 0, sizeof(*record));
	record->event = (struct xs_event){ .tick = when, .name = task(name), .kind = XS_TASK };
	record->event.words = sizeof(*record) / 8;
	record->event.source = XS_SOURCE_ITT;
	record->id.word[0] = n + 1;
	xs_ring_commit(rundir_producer(ring), sizeof(*record));
}

/* Tasks in each other, most of whose begins and ends have the time of the event before. */
static void put_tasks(struct xs_ring *ring, uint64_t when, int plain_of_8)
{
	uint32_t open[DEEP], depth = 0;

	for (uint32_t n = 0; n < TASKS || depth;) {
		when += random() % 4 ? 0 : (uint64_t)(random() % 100);
		if (n < TASKS && depth < DEEP && random() % 2) {
			truth[n].depth = depth;
			open[depth++] = n;
			begin_task(ring, n++, when, random() % 8 < plain_of_8);
		} else if (depth) {
			put_end(&dir, ring, when, domain);
			truth[open[--depth]].end = when;
		}
	}
}

/* Each slice has its own end, and begins at most as many ns late as there are others around it. */
static void check_slices(const struct event *events, uint32_t count)
{
	const struct event *open[TASKS];
	uint32_t depth = 0, n;
	uint64_t begin, end;

	for (uint32_t i = 0; i < count; i++) {
		if (!events[i].end) {
			if (!CHECK(depth < TASKS, "more are open than there are"))
				return;
			open[depth++] = &events[i];
			continue;
		}
		if (!CHECK(depth, "an end of nothing"))
			return;
		n = open[--depth]->name;
		if (!CHECK(n && n <= TASKS, "a slice that is no task"))
			continue;
		begin = truth[--n].begin;
		end = truth[n].end;
		CHECK(events[i].time == end, "task %u ends at %" PRIu64 ", not at %" PRIu64, n,
		      events[i].time, end);
		CHECK(open[depth]->time >= begin && open[depth]->time - begin <= truth[n].depth,
		      "task %u begins at %" PRIu64 ", not at %" PRIu64, n, open[depth]->time,
		      begin);
	}
	CHECK(!depth, "%u have no end", depth);
}

static void equal_times(int plain_of_8)
{
	static const struct xs_options perfetto = { .chrome_itt = true,
						    .ring_size = 1u << 20,
						    .format = XS_FORMAT_PERFETTO };
	static struct event events[4 * TASKS];
	struct xs_process *process;
	struct xs_ring *ring;
	uint32_t count;

	for (unsigned seed = 1; seed <= 20; seed++) {
		srandom(seed);
		open_all(&perfetto, 1);
		ring = rundir_ring(file, 0);
		put_thread(&dir, ring, 77, "t");
		put_tasks(ring, tick(), plain_of_8);
		process = adopt();
		xs_timeline_update(&dir.run.clock);
		while (xs_process_read(process, false))
			;
		for (uint32_t n = 0; n < TASKS; n++) {
			truth[n].begin = xs_process_ns(process, truth[n].begin);
			truth[n].end = xs_process_ns(process, truth[n].end);
		}
		finish(process);
		count = read_trace(events, sizeof(events) / sizeof(events[0]));
		CHECK(count == 2 * TASKS, "%u begins and ends of %u", count, 2 * TASKS);
		check_slices(events, count);
		rundir_clear(&dir);
		close_all();
	}
}

static void plain_tasks(void)
{
	equal_times(8);
}

static void tasks_with_ids_too(void)
{
	equal_times(4);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("plain tasks of equal times", plain_tasks);
	tap_run("plain tasks and others of equal times", tasks_with_ids_too);
	return tap_done();
}

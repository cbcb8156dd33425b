/*
 * What the rarer records of ITT mean: tasks with ids, metadata, spans that any thread may end,
 * events, counters, tracks.
 */
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "counted.h"
#include "early.h"
#include "extras.h"
#include "itt.h"
#include "own_clock.h"
#include "pauses.h"
#include "sink.h"
#include "tasks.h"
#include "tree.h"

#define KEYED_MAX 65536u

/*
 * A span that is open, or the end of one whose begin is still to be read from another thread's
 * ring.
 */
struct keyed {
	struct key {
		struct xs_tree_node node;
		bool is_end;
		uint8_t span;	/* enum xs_span */
		uint32_t scope; /* domain */
		uint32_t tid;	/* of spans without an id: they belong to their thread */
		struct xs_id id;
		uint64_t start;	 /* as the task's */
		uint64_t number; /* no two have the same */
	} key;
	struct keyed *next;    /* unused ones */
	struct xs_early early; /* of an end */
	uint64_t tick;
	struct xs_open task; /* of an end: start is its time */
};

struct xs_keyed {
	struct xs_tree tree;
	struct xs_earlies ends;
	struct keyed *spare;
	uint64_t number; /* given out so far */
};

static bool is_null(const struct xs_id *id)
{
	return !(id->word[0] | id->word[1] | id->word[2]);
}

static void set_ids(struct xs_process *process, struct xs_open *task,
		    const struct xs_task_record *record)
{
	struct xs_id self;

	if (!is_null(&record->id) && xs_extra_of(process, task))
		task->extra->id = record->id;
	if (!is_null(&record->parent) && process->open_count && xs_extra_self(process, task, &self))
		XS_TELL_SINKS(process, flow, process, "parent", &record->parent, &self);
}

void xs_itt_end(struct xs_track *track, struct xs_open *task, uint64_t end, bool displaced,
		bool unfinished)
{
	const struct xs_slice span = { .task = task,
				       .end = end,
				       .track = track,
				       .kind = XS_SPAN_TASK,
				       .row = task->row,
				       .displaced = displaced ||
						    (task->extra && task->extra->displaced),
				       .unfinished = unfinished };

	XS_TELL_SINKS(track->process, slice, track->process, &span);
	xs_extra_drop(track->process, task);
}

/* ---- spans by key ---- */

static struct keyed *keyed_of(struct xs_tree_node *node)
{
	return (struct keyed *)node; /* its first member */
}

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Those of one key together; of them the begins, then the ends, each by time. */
static int compare(const struct xs_tree_node *x, const struct xs_tree_node *y)
{
	const struct key *a = (const struct key *)x, *b = (const struct key *)y;
	int difference =
		order((uint64_t)a->scope << 32 | a->tid, (uint64_t)b->scope << 32 | b->tid);

	for (int i = 0; i < 3 && !difference; i++)
		difference = order(a->id.word[i], b->id.word[i]);
	if (!difference)
		difference = order((uint64_t)a->span << 1 | a->is_end,
				   (uint64_t)b->span << 1 | b->is_end);
	if (!difference)
		difference = order(a->start, b->start);
	return difference ? difference : order(a->number, b->number);
}

static bool matches(const struct key *a, const struct key *b)
{
	return a->span == b->span && a->scope == b->scope && a->tid == b->tid &&
	       !memcmp(&a->id, &b->id, sizeof(a->id));
}

/*
 * The other half of `half`: for an end the latest begin before it, for a begin the earliest end
 * behind it. Rings are read one after the other, so either may come first.
 */
static struct keyed *partner(const struct xs_keyed *keyed, const struct key *half)
{
	struct keyed *found;
	struct key key;

	if (!keyed->tree.root)
		return NULL;
	key = *half;
	key.is_end = !half->is_end;
	key.number = half->is_end ? UINT64_MAX : 0;
	found = keyed_of(half->is_end ? xs_tree_before(&keyed->tree, &key.node)
				      : xs_tree_behind(&keyed->tree, &key.node));
	return found && found->key.is_end == key.is_end && matches(&found->key, half) ? found
										      : NULL;
}

/* Zeroed; NULL: no memory. */
static struct keyed *new_half(struct xs_process *process)
{
	struct keyed *half;

	if (!process->keyed) {
		process->keyed = calloc(1, sizeof(*process->keyed));
		if (!process->keyed)
			return NULL;
		process->keyed->tree.compare = compare;
	}
	half = process->keyed->spare;
	if (half)
		process->keyed->spare = half->next;
	else
		half = malloc(sizeof(*half));
	if (!half)
		return NULL;
	memset(half, 0, sizeof(*half));
	half->key.number = ++process->keyed->number;
	return half;
}

static void drop_half(struct xs_process *process, struct keyed *half)
{
	xs_extra_drop(process, &half->task);
	half->next = process->keyed->spare;
	process->keyed->spare = half;
}

static void show(struct xs_process *process, struct keyed *begin, uint64_t end, bool unfinished)
{
	const struct xs_slice span = {
		.task = &begin->task, .end = end, .kind = begin->key.span, .unfinished = unfinished
	};

	XS_TELL_SINKS(process, slice, process, &span);
	drop_half(process, begin);
}

static void take_half(struct xs_process *process, struct keyed *half)
{
	xs_tree_take(&process->keyed->tree, &half->key.node);
	if (half->key.is_end)
		xs_early_take(&process->keyed->ends, &half->early);
}

static void drop_end(struct xs_process *process, struct xs_early *early)
{
	struct keyed *end = (struct keyed *)((char *)early - offsetof(struct keyed, early));

	take_half(process, end);
	process->unmatched++;
	drop_half(process, end);
}

void xs_itt_pass(struct xs_process *process)
{
	struct xs_early *early;

	if (!process->keyed)
		return;
	process->keyed->ends.pass++;
	while ((early = xs_early_next(&process->keyed->ends)))
		drop_end(process, early);
}

/* Room for one more half. An end gives way: it may have no begin. */
static bool make_room(struct xs_process *process)
{
	struct xs_keyed *keyed = process->keyed;

	if (keyed->tree.count < KEYED_MAX)
		return true;
	process->omitted[XS_OMIT_SPANS]++;
	if (!keyed->ends.oldest)
		return false;
	drop_end(process, keyed->ends.oldest);
	return true;
}

static void add_half(struct xs_process *process, struct keyed *half)
{
	struct keyed *other = partner(process->keyed, &half->key);

	if (!other && !make_room(process)) {
		drop_half(process, half);
		return;
	}
	if (!other) {
		xs_tree_add(&process->keyed->tree, &half->key.node);
		if (half->key.is_end)
			xs_early_add(&process->keyed->ends, &half->early);
		return;
	}
	take_half(process, other);
	if (half->key.is_end)
		show(process, other, half->task.start, false);
	else
		show(process, half, other->task.start, false);
	drop_half(process, half->key.is_end ? half : other);
}

/*
 * Without ids, by its thread: the newest one is mostly the next that ends, and waits in the track.
 */
static void read_bare(struct xs_track *track, const struct xs_event *event, uint8_t span,
		      uint64_t ns)
{
	struct xs_process *process = track->process;
	struct keyed *half = track->bare;

	if (event->kind == XS_CLOSE && half && half->key.span == span &&
	    half->key.scope == event->name) {
		uint64_t end = xs_own_time_end(track, event, &half->task, ns);

		if (half->task.start <= end) {
			track->bare = NULL;
			show(process, half, end, false);
			return;
		}
	}
	half = new_half(process);
	if (!half)
		return;
	half->key.span = span;
	half->key.tid = track->tid;
	half->task.start = half->key.start = xs_own_time_begin(track, event, &half->task, ns);
	half->tick = event->tick;
	if (event->kind == XS_CLOSE) {
		half->key.is_end = true;
		half->key.scope = event->name;
		add_half(process, half);
		return;
	}
	half->task.name = xs_name_of(process, event->name);
	half->key.scope = half->task.name.scope;
	xs_itt_release(track);
	track->bare = half;
}

void xs_itt_release(struct xs_track *track)
{
	struct keyed *half = track->bare;

	track->bare = NULL;
	if (half)
		add_half(track->process, half);
}

static void read_keyed(struct xs_track *track, const struct xs_task_record *record, uint32_t size,
		       uint64_t ns)
{
	struct xs_process *process = track->process;
	uint8_t span = record->event.flags < XS_SPAN_COUNT ? record->event.flags : 0;
	struct keyed *half;

	if (size < sizeof(*record)) {
		read_bare(track, &record->event, span, ns);
		return;
	}
	half = new_half(process);
	if (!half)
		return;
	half->key.is_end = record->event.kind == XS_CLOSE;
	half->key.span = span;
	half->key.id = record->id;
	half->key.tid = is_null(&record->id) ? track->tid : 0;
	half->task.start = half->key.start =
		xs_own_time_begin(track, &record->event, &half->task, ns);
	half->tick = record->event.tick;
	half->key.scope = record->event.name;
	if (!half->key.is_end) {
		half->task.name = xs_name_of(process, record->event.name);
		half->key.scope = half->task.name.scope;
		set_ids(process, &half->task, record);
	}
	add_half(process, half);
}

static struct xs_open *find_open_span(struct xs_process *process, uint32_t scope,
				      const struct xs_id *id)
{
	for (uint8_t span = 0; process->keyed && span < XS_SPAN_COUNT; span++) {
		const struct key key = {
			.is_end = true, .span = span, .scope = scope, .id = *id, .start = UINT64_MAX
		};
		struct keyed *found = partner(process->keyed, &key);

		if (found)
			return &found->task;
	}
	return NULL;
}

void xs_itt_finish(struct xs_process *process, uint64_t end)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		xs_itt_release(process->tracks[i]);
	while (process->keyed && process->keyed->tree.root) {
		struct keyed *k = keyed_of(process->keyed->tree.root);

		take_half(process, k);
		if (!k->key.is_end) {
			/* it ended while nothing was recorded, if it ended at all */
			uint64_t off = xs_process_paused_after(process, k->tick), last = end;

			if (off != UINT64_MAX && xs_process_ns(process, off) < end)
				last = xs_process_ns(process, off);
			show(process, k, last > k->task.start ? last : k->task.start, true);
		} else {
			process->unmatched++;
			drop_half(process, k);
		}
	}
	while (process->keyed && process->keyed->spare) {
		struct keyed *k = process->keyed->spare;

		process->keyed->spare = k->next;
		free(k);
	}
	free(process->keyed);
	process->keyed = NULL;
	xs_extras_free(process);
}

/* ---- metadata, instants, relations ---- */

/* The thread's innermost open task, of a domain if that is given; or the one with an id. */
static struct xs_open *find_open(struct xs_track *track, uint32_t scope, const struct xs_id *id)
{
	for (uint32_t i = track->depth; i > xs_track_lowest(track); i--) {
		struct xs_open *task = &track->open[i - 1];

		if (is_null(id) ? !scope || task->name.scope == scope
				: task->extra && !memcmp(&task->extra->id, id, sizeof(*id)))
			return task;
	}
	return NULL;
}

/* An instant, or arguments of nothing that is open. */
static void read_instant(struct xs_track *track, const struct xs_args_record *record,
			 uint32_t length)
{
	struct xs_process *process = track->process;
	struct xs_open loose = { .start = xs_process_ns(process, record->event.tick) };
	bool metadata = record->event.kind == XS_ARGS;
	struct xs_mark mark = {
		.tid = track->tid,
		.name = record->event.name,
		.metadata = metadata,
		.scope = metadata ? XS_SCOPE_THREAD : record->event.flags,
		.id = metadata || is_null(&record->id) ? NULL : &record->id,
	};

	struct xs_open *task;
	struct xs_id within;

	if (!process->open_count)
		return;
	task = mark.id ? find_open(track, 0, &(struct xs_id){ 0 }) : NULL;
	if (task && xs_extra_self(process, task, &within))
		mark.within = &within;
	(void)xs_own_time_begin(track, &record->event, &loose, loose.start);
	xs_extra_add_args(process, &loose, record, length);
	mark.ns = loose.start;
	mark.extra = loose.extra;
	XS_TELL_SINKS(process, mark, process, &mark);
	xs_extra_drop(process, &loose);
}

/* room: bytes behind the record. */
static void read_args(struct xs_track *track, const struct xs_args_record *record, uint32_t room)
{
	uint32_t length = record->length < room ? record->length : room;
	struct xs_open *task = NULL;

	if (record->event.kind == XS_ARGS) {
		task = find_open(track, record->event.name, &record->id);
		if (!task && !is_null(&record->id))
			task = find_open_span(track->process, record->event.name, &record->id);
	}
	if (task)
		xs_extra_add_args(track->process, task, record, length);
	else
		read_instant(track, record, length);
}

static void read_relation(struct xs_track *track, const struct xs_task_record *record)
{
	static const struct {
		const char *name;
		bool from_tail;
	} relations[XS_RELATION_COUNT] = {
		[XS_RELATION_UNKNOWN] = { "related", false },
		[XS_RELATION_DEPENDENT_ON] = { "dependent_on", true },
		[XS_RELATION_SIBLING_OF] = { "sibling_of", false },
		[XS_RELATION_PARENT_OF] = { "parent_of", false },
		[XS_RELATION_CONTINUATION_OF] = { "continuation_of", true },
		[XS_RELATION_CHILD_OF] = { "child_of", true },
		[XS_RELATION_CONTINUED_BY] = { "continued_by", false },
		[XS_RELATION_PREDECESSOR_TO] = { "predecessor_to", false },
	};
	struct xs_process *process = track->process;
	uint8_t relation = record->event.flags < XS_RELATION_COUNT ? record->event.flags : 0;
	struct xs_id head = record->id;
	struct xs_open *task;

	if (is_null(&record->parent) || !process->open_count)
		return;
	if (is_null(&head)) {
		task = find_open(track, record->event.name, &head);
		if (!task || !xs_extra_self(process, task, &head))
			return;
	}
	if (relations[relation].from_tail)
		XS_TELL_SINKS(process, flow, process, relations[relation].name, &record->parent,
			      &head);
	else
		XS_TELL_SINKS(process, flow, process, relations[relation].name, &head,
			      &record->parent);
}

/* ---- the rest ---- */

static void read_task(struct xs_track *track, const struct xs_task_record *record, uint64_t ns)
{
	uint64_t last = track->last_ns;
	struct xs_open *task = xs_track_open(track, ns, record->event.name);
	bool displaced = ns < last;

	if (!task)
		return;
	task->start = xs_own_time_begin(track, &record->event, task, ns);
	if (track->counts_due)
		xs_counted_begins(track, &record->event, task);
	if (task->start != ns)
		track->last_ns = last; /* it is not on the thread's own track */
	set_ids(track->process, task, record);
	if (displaced)
		xs_track_displace(track, task);
}

static void read_span(struct xs_track *track, const struct xs_span_record *record, uint64_t ns)
{
	struct xs_process *process = track->process;
	uint64_t end = xs_process_ns(process, record->event.tick + record->duration);
	struct xs_open task = { .start = ns, .name = xs_name_of(process, record->event.name) };
	bool wait = record->event.flags == XS_SPAN_WAIT;
	const struct xs_slice span = {
		.task = &task,
		.end = end,
		.track = wait ? track : NULL,
		.kind = record->event.flags < XS_SPAN_COUNT ? record->event.flags : 0,
		.displaced = wait && ns < track->last_ns,
	};

	if (!xs_track_believes(track, &record->event, record->duration)) {
		process->corrupt++;
		return;
	}
	if (!process->open_count)
		return;
	if (wait && record->cancelled && xs_extra_of(process, &task))
		task.extra->cancelled = true;
	XS_TELL_SINKS(process, slice, process, &span);
	xs_extra_drop(process, &task);
	if (wait && end > track->last_ns)
		track->last_ns = end;
}

/* An event that was begun and never ended was meant as a mark. */
static void event_begin(struct xs_track *track, const struct xs_event *event, uint64_t ns)
{
	struct xs_process *process = track->process;
	struct xs_mark mark = { .tid = track->tid, .name = event->name };

	for (uint32_t at = track->depth; at > xs_track_lowest(track); at--) {
		if (track->open[at - 1].name.id != event->name)
			continue;
		mark.ns = track->open[at - 1].start;
		XS_TELL_SINKS(process, mark, process, &mark);
		/* a task may be called as the event is */
		xs_extra_drop(process, &track->open[at - 1]);
		xs_track_take(track, at - 1);
		break;
	}
	(void)xs_track_open(track, ns, event->name);
}

static void event_end(struct xs_track *track, const struct xs_event *event, uint64_t ns)
{
	struct xs_open task;

	if (xs_track_ends_unseen(track))
		return;
	for (uint32_t at = track->depth; at > xs_track_lowest(track); at--) {
		if (track->open[at - 1].name.id != event->name)
			continue;
		task = track->open[at - 1];
		xs_itt_end(track, &task, ns, at != track->depth, false);
		xs_track_take(track, at - 1);
		track->last_ns = ns;
		return;
	}
	track->process->unmatched++;
}

void xs_itt_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	static const uint8_t sizes[] = {
		[XS_TASK] = sizeof(struct xs_task_record),
		[XS_ARGS] = sizeof(struct xs_args_record),
		[XS_INSTANT] = sizeof(struct xs_args_record),
		[XS_COUNTER] = sizeof(struct xs_counter_record),
		[XS_SPAN] = sizeof(struct xs_span_record),
		[XS_OPEN] = sizeof(struct xs_event),
		[XS_CLOSE] = sizeof(struct xs_event),
		[XS_EVENT_BEGIN] = sizeof(struct xs_event),
		[XS_EVENT_END] = sizeof(struct xs_event),
		[XS_RELATION] = sizeof(struct xs_task_record),
		[XS_TRACK] = sizeof(struct xs_event),
	};
	struct xs_process *process = track->process;
	const void *record = event;
	uint64_t ns;

	if (event->kind >= sizeof(sizes) || !sizes[event->kind] || size < sizes[event->kind])
		return;
	ns = xs_process_ns(process, event->tick);
	switch (event->kind) {
	case XS_TASK:
		read_task(track, record, ns);
		break;
	case XS_ARGS:
	case XS_INSTANT:
		read_args(track, record, size - (uint32_t)sizeof(struct xs_args_record));
		break;
	case XS_COUNTER:
		XS_TELL_SINKS(process, counter, process, record, ns);
		break;
	case XS_SPAN:
		read_span(track, record, ns);
		break;
	case XS_OPEN:
	case XS_CLOSE:
		read_keyed(track, record, size, ns);
		break;
	case XS_EVENT_BEGIN:
		event_begin(track, event, ns);
		break;
	case XS_EVENT_END:
		event_end(track, event, ns);
		break;
	case XS_RELATION:
		read_relation(track, record);
		break;
	default:
		track->row = event->name;
		break;
	}
}

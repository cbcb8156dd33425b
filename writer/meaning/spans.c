/*
 * Spans that any thread may end: frames, regions, overlapped tasks.
 */
#include "spans.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "early.h"
#include "extras.h"
#include "in_time.h"
#include "own_clock.h"
#include "pauses.h"
#include "sink.h"
#include "task_record.h"
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
	struct xs_timed timed;
	uint32_t by;	     /* the thread whose ring it was in */
	struct xs_open task; /* of an end: start is its time */
	/* of an end: what was begun by then may have another one, which is lost */
	uint64_t lost_ns;
	/* no half: arguments for the span with the key's id, whatever its kind; or an arrow */
	bool says;
	uint64_t tick;	      /* of these */
	const char *relation; /* the arrow's name; NULL: there is none */
	struct xs_id from, to;
};

struct xs_keyed {
	struct xs_tree tree;
	struct xs_earlies ends;
	struct xs_tree waiting;	   /* for what was written earlier and is still to be read */
	struct xs_in_time in_time; /* the same ones, and what is said of spans */
	struct keyed *spare;
	uint64_t number; /* given out so far */
};

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
 * behind it, or no more than `slack` before. Rings are read one after the other, so either may come
 * first.
 */
static struct keyed *partner(const struct xs_tree *tree, const struct key *half, uint64_t slack)
{
	struct keyed *found;
	struct key key;

	if (!tree->root)
		return NULL;
	key = *half;
	key.is_end = !half->is_end;
	key.number = half->is_end ? UINT64_MAX : 0;
	if (!half->is_end)
		key.start -= key.start < slack ? key.start : slack;
	found = keyed_of(half->is_end ? xs_tree_before(tree, &key.node)
				      : xs_tree_behind(tree, &key.node));
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
		process->keyed->waiting.compare = compare;
	}
	half = process->keyed->spare;
	if (half)
		process->keyed->spare = half->next;
	else
		half = malloc(sizeof(*half));
	if (!half)
		return NULL;
	memset(half, 0, sizeof(*half));
	half->key.number = half->timed.number = ++process->keyed->number;
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
	const struct xs_slice span = { .task = &begin->task,
				       .end = end > begin->task.start ? end : begin->task.start,
				       .kind = begin->key.span,
				       .unfinished = unfinished };

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
	struct keyed *other =
		partner(&process->keyed->tree, &half->key, half->key.tid ? 0 : XS_HANDED_NS);

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
		show(process, other, half->task.start, other->task.start <= half->lost_ns);
	else
		show(process, half, other->task.start, half->task.start <= other->lost_ns);
	drop_half(process, half->key.is_end ? half : other);
}

/* ---- in the order of time ---- */

static void say(struct xs_process *process, struct keyed *said);

static void settle_one(void *of, struct xs_timed *timed)
{
	struct xs_process *process = of;
	struct keyed *half = (struct keyed *)((char *)timed - offsetof(struct keyed, timed));

	if (half->says) {
		say(process, half);
	} else {
		xs_tree_take(&process->keyed->waiting, &half->key.node);
		add_half(process, half);
	}
}

static void settle(struct xs_process *process, uint64_t until)
{
	xs_in_time_settle(&process->keyed->in_time, until, settle_one, process);
}

/* Nothing that is still to be read, or waits, was written before `tick`. */
static bool is_alone(const struct xs_process *process, uint64_t tick)
{
	return process->track_count == 1 && tick <= process->pass_tick &&
	       !process->keyed->in_time.count;
}

/*
 * Of two threads that hand a span with an id to each other, rings are read one after the other, and
 * ids come again. So what any thread may have begun or ended waits until all is read that was
 * written before.
 */
static void add_in_time(struct xs_process *process, struct keyed *half)
{
	struct xs_keyed *keyed = process->keyed;
	if (is_alone(process, half->timed.tick) ||
	    !xs_in_time_add(&keyed->in_time, &half->timed, settle_one, process))
		add_half(process, half);
	else
		xs_tree_add(&keyed->waiting, &half->key.node);
}

void xs_spans_pass(struct xs_process *process)
{
	struct xs_early *early;

	if (!process->keyed)
		return;
	settle(process, process->pass_tick);
	process->keyed->ends.pass++;
	while ((early = xs_early_next(&process->keyed->ends)))
		drop_end(process, early);
}

/* ---- reading ---- */

/*
 * Without ids, by its thread: the newest one is mostly the next that ends, and waits in the track.
 */
static void read_bare(struct xs_track *track, const struct xs_event *event, uint8_t span,
		      uint64_t ns)
{
	struct xs_process *process = track->process;
	struct keyed *half = track->bare;

	xs_track_note_lost(track, event->kind == XS_CLOSE ? ns : ns - 1);
	if (event->kind == XS_CLOSE && half && half->key.span == span &&
	    half->key.scope == event->name) {
		uint64_t end = xs_own_time_end(track, event, &half->task, ns);

		if (half->task.start <= end) {
			track->bare = NULL;
			show(process, half, end, half->task.start <= track->lost_ns);
			return;
		}
	}
	half = new_half(process);
	if (!half)
		return;
	half->key.span = span;
	half->key.tid = track->tid;
	half->task.start = half->key.start = xs_own_time_begin(track, event, &half->task, ns);
	half->timed.tick = event->tick;
	if (event->kind == XS_CLOSE) {
		half->key.is_end = true;
		half->key.scope = event->name;
		half->lost_ns = track->lost_ns;
		add_half(process, half);
		return;
	}
	half->task.name = xs_name_of(process, event->name);
	half->key.scope = half->task.name.scope;
	xs_spans_release(track);
	track->bare = half;
}

void xs_spans_release(struct xs_track *track)
{
	struct keyed *half = track->bare;

	track->bare = NULL;
	if (half)
		add_half(track->process, half);
}

void xs_spans_read(struct xs_track *track, const struct xs_task_record *record, uint32_t size,
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
	half->by = track->tid;
	half->key.is_end = record->event.kind == XS_CLOSE;
	half->key.span = span;
	half->key.id = record->id;
	half->key.tid = xs_id_is_null(&record->id) ? track->tid : 0;
	half->task.start = half->key.start =
		xs_own_time_begin(track, &record->event, &half->task, ns);
	half->timed.tick = record->event.tick;
	half->key.scope = record->event.name;
	if (!half->key.is_end) {
		half->task.name = xs_name_of(process, record->event.name);
		half->key.scope = half->task.name.scope;
		xs_spans_parent(track, &half->task, record);
		xs_extra_set_id(process, &half->task, &record->id);
	}
	if (half->key.tid) {
		xs_track_note_lost(track, half->key.is_end ? ns : ns - 1);
		half->lost_ns = track->lost_ns;
		add_half(process, half);
	} else {
		add_in_time(process, half);
	}
}

/*
 * What a thread says of a span that it then hands on may seem to come after the other thread's end,
 * and even after the next begin. `begin`: the latest one. NULL: it has handed on none just now.
 */
static struct keyed *handed_on(const struct xs_keyed *keyed, struct keyed *begin, uint32_t by,
			       uint64_t ns)
{
	const struct keyed *end;
	struct key earlier;

	while (begin) {
		end = partner(&keyed->waiting, &begin->key, 0);
		if (end && end->key.start + XS_HANDED_NS < ns)
			return NULL;
		if (begin->by == by)
			return begin;
		earlier = begin->key;
		earlier.is_end = true; /* its partner: the begin before that time */
		if (!earlier.start--)
			return NULL;
		begin = partner(&keyed->waiting, &earlier, 0);
	}
	return NULL;
}

/* The one of this key that is open at `tick`, which is `ns`, for thread `by`; NULL: none. */
static struct keyed *open_at(const struct xs_keyed *keyed, struct key key, uint32_t by,
			     uint64_t tick, uint64_t ns)
{
	struct keyed *begin, *end, *latest;

	key.start = ns;
	begin = partner(&keyed->waiting, &key, 0);
	latest = handed_on(keyed, begin, by, ns);
	if (latest)
		return latest;
	end = begin ? partner(&keyed->waiting, &begin->key, 0) : NULL;
	if (begin && (!end || end->timed.tick > tick))
		return begin;
	key.start = UINT64_MAX;
	latest = partner(&keyed->tree, &key, 0);
	if (!latest && !begin) /* by a clock of the application's it may begin at any time */
		latest = partner(&keyed->waiting, &key, 0);
	end = latest ? partner(&keyed->waiting, &latest->key, 0) : NULL;
	if (latest && latest->timed.tick <= tick &&
	    (!end || end->timed.tick > tick ||
	     (end->by != by && ns - end->key.start <= XS_HANDED_NS)))
		return latest;
	/* it was handed to this thread, and seems to begin only now */
	key.start = ns + XS_HANDED_NS;
	begin = partner(&keyed->waiting, &key, 0);
	return begin && begin->by != by && begin->timed.tick > tick ? begin : NULL;
}

/* The latest begin with the key before `ns`, whose end may be there already. */
static struct keyed *begun(const struct xs_keyed *keyed, const struct key *key)
{
	struct keyed *found = partner(&keyed->waiting, key, 0);

	return found ? found : partner(&keyed->tree, key, 0);
}

/*
 * The span that an id means. It may be that of spans of two kinds. NULL: none is open. An arrow
 * may lead from one that has just ended, too.
 */
static struct keyed *meant(struct xs_process *process, const struct keyed *said,
			   const struct xs_id *id)
{
	uint64_t ns = said->key.start, age = UINT64_MAX;
	struct keyed *found = NULL;

	for (uint8_t span = 0; span < XS_SPAN_COUNT; span++) {
		struct key key = {
			.is_end = true, .span = span, .scope = said->key.scope, .id = *id
		};
		struct keyed *open = open_at(process->keyed, key, said->by, said->tick, ns);

		key.start = ns;
		if (!open && said->relation)
			open = begun(process->keyed, &key);
		/* one that seems to begin only now: rather none */
		if (open && (!found || ns - open->key.start < age)) {
			found = open;
			age = ns - open->key.start;
		}
	}
	return found;
}

/* Of one that is open the id that no other has. */
static void make_sure(struct xs_process *process, const struct keyed *said, struct xs_id *id)
{
	struct keyed *found = xs_id_is_self(id) ? NULL : meant(process, said, id);

	if (found)
		(void)xs_extra_self(process, &found->task, id);
}

/* Arguments go to the span, or are an instant of their own. */
static void say(struct xs_process *process, struct keyed *said)
{
	struct keyed *found = said->relation ? NULL : meant(process, said, &said->key.id);

	if (said->relation) {
		make_sure(process, said, &said->from);
		make_sure(process, said, &said->to);
		XS_TELL_SINKS(process, flow, process, said->relation, &said->from, &said->to);
	} else if (found) {
		xs_extra_move_args(process, &found->task, &said->task);
	} else if (process->open_count) {
		const struct xs_mark mark = { .tid = said->by,
					      .name = said->key.scope,
					      .metadata = true,
					      .scope = XS_SCOPE_THREAD,
					      .ns = said->task.start,
					      .extra = said->task.extra };

		XS_TELL_SINKS(process, mark, process, &mark);
	}
	drop_half(process, said);
}

static struct keyed *new_said(struct xs_track *track, const struct xs_event *event, uint32_t scope)
{
	struct keyed *said = new_half(track->process);

	if (!said)
		return NULL;
	said->says = true;
	said->by = track->tid;
	said->tick = event->tick;
	said->key.scope = scope;
	said->key.start = xs_process_ns(track->process, event->tick);
	return said;
}

/*
 * What is said waits as begins and ends do, but not as long: what seems to have come just before,
 * and came behind, is still to be seen then.
 */
static void say_in_time(struct xs_process *process, struct keyed *said)
{
	uint64_t slack = xs_timeline_ticks(&process->run->clock, XS_HANDED_NS);

	said->timed.tick = said->tick - (said->tick < slack ? said->tick : slack);
	if (is_alone(process, said->tick) ||
	    !xs_in_time_add(&process->keyed->in_time, &said->timed, settle_one, process))
		say(process, said);
}

void xs_spans_say(struct xs_track *track, const struct xs_args_record *record, uint32_t length)
{
	struct keyed *said = new_said(track, &record->event, record->event.name);

	if (!said)
		return;
	said->key.id = record->id;
	said->task.start = xs_own_time_begin(track, &record->event, &said->task, said->key.start);
	xs_extra_add_args(track->process, &said->task, record, length);
	say_in_time(track->process, said);
}

static void relate(struct xs_track *track, const struct xs_event *event, uint32_t scope,
		   const char *name, const struct xs_id *from, const struct xs_id *to)
{
	struct keyed *said = new_said(track, event, scope);

	if (!said)
		return;
	said->relation = name;
	said->from = *from;
	said->to = *to;
	for (int i = 0; i < 2; i++) {
		struct xs_id *id = i ? &said->to : &said->from;
		struct xs_open *task = xs_id_is_self(id) ? NULL : xs_track_open_task(track, 0, id);

		if (task)
			(void)xs_extra_self(track->process, task, id);
	}
	say_in_time(track->process, said);
}

void xs_spans_relate(struct xs_track *track, const struct xs_task_record *record, const char *name,
		     const struct xs_id *from, const struct xs_id *to)
{
	relate(track, &record->event, record->event.name, name, from, to);
}

void xs_spans_parent(struct xs_track *track, struct xs_open *task,
		     const struct xs_task_record *record)
{
	struct xs_process *process = track->process;
	struct xs_id self;

	if (!xs_id_is_null(&record->parent) && process->open_count &&
	    xs_extra_self(process, task, &self))
		relate(track, &record->event, task->name.scope, "parent", &record->parent, &self);
}

void xs_spans_finish(struct xs_process *process, uint64_t end)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		xs_spans_release(process->tracks[i]);
	if (process->keyed)
		settle(process, UINT64_MAX);
	while (process->keyed && process->keyed->tree.root) {
		struct keyed *k = keyed_of(process->keyed->tree.root);

		take_half(process, k);
		if (!k->key.is_end) {
			/* it ended while nothing was recorded, if it ended at all */
			uint64_t off = xs_process_paused_after(process, k->timed.tick), last = end;

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
	if (process->keyed)
		xs_in_time_free(&process->keyed->in_time);
	free(process->keyed);
	process->keyed = NULL;
	xs_extras_free(process);
}

#include "perfetto_packets.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "names.h"
#include "tasks.h"

#define SEQUENCES  (1u << 20)
#define RECOVERED  (2u + SEQUENCES)
#define TEXTS	   65536u
#define TEXT_BYTES (16u << 20)

/* The number of an argument's key; its text is told with the event. */
static uint32_t key_number(void *user, const char *text, size_t length)
{
	struct xs_perfetto *p = user;
	uint32_t number = p->key_count < XS_PF_KEYS_MAX
				  ? xf_map_add(&p->texts[XS_PF_KEY], text, length)
				  : XF_NONE;

	if (number != XF_NONE)
		p->keys[p->key_count++] = number;
	return number;
}

struct xs_perfetto *xs_perfetto_create(const struct xs_process *process)
{
	struct xs_perfetto *p = calloc(1, sizeof(*p));
	uint64_t words[4] = { 0 };

	if (!p)
		return NULL;
	for (int kind = 0; kind < XS_PF_KINDS; kind++)
		xf_map_init(&p->texts[kind], TEXTS, TEXT_BYTES);
	xf_map_init(&p->index, SEQUENCES, UINT32_MAX);
	p->annotator.out = &p->fields;
	p->annotator.key = key_number;
	p->annotator.user = p;
	memcpy(words, process->run->run_id, strnlen(process->run->run_id, sizeof(words) - 8));
	words[3] = (uint64_t)process->serial << 32 | (uint32_t)process->pid;
	p->seed = (uint64_t)xs_hash(words, 4) << 32 | xs_hash(words + 1, 3);
	/* --recover: sequences of its own, as it does not know what those in the file have told */
	p->base = process->run->base;
	p->first = process->run->recovering ? RECOVERED : 2;
	return p;
}

static void forget_sequences(struct xs_perfetto *p)
{
	for (uint32_t i = 0; i < p->index.count && i < p->sequence_room; i++)
		for (int kind = 0; kind < XS_PF_KINDS; kind++)
			free(p->sequences[i].told[kind]);
	free(p->sequences);
	p->sequences = NULL;
	p->sequence_room = 0;
	xf_map_free(&p->index);
}

void xs_perfetto_begin_anew(struct xs_perfetto *p)
{
	p->first += p->index.count;
	forget_sequences(p);
	xf_map_init(&p->index, SEQUENCES, UINT32_MAX);
}

void xs_perfetto_free(struct xs_perfetto *p)
{
	if (!p)
		return;
	forget_sequences(p);
	for (int kind = 0; kind < XS_PF_KINDS; kind++)
		xf_map_free(&p->texts[kind]);
	free(p->packet.data);
	free(p->fields.data);
	free(p);
}

/* ---- tasks ---- */

static uint32_t number_of_name(struct xs_process *process, struct xs_perfetto *p, uint32_t id,
			       struct xf_text *ret_text)
{
	uint32_t at = id % XS_PF_NAMES;
	size_t length;
	const char *text;
	char *end;

	if (p->names[at].id == id && p->names[at].number) {
		*ret_text = (struct xf_text){ 0 };
		return p->names[at].number - 1;
	}
	/* by way of JSON, which makes valid UTF-8 of it */
	text = xs_text_of(process->run, id, &length);
	p->escaped[0] = '"';
	end = xs_json_escape(p->escaped + 1, text,
			     length < XS_PF_NAME_MAX ? length : XS_PF_NAME_MAX);
	*end++ = '"';
	p->names[at].id = id;
	p->names[at].number =
		xs_pf_number(p, XS_PF_NAME,
			     (struct xf_text){ p->escaped, (size_t)(end - p->escaped) }, ret_text) +
		1;
	return p->names[at].number - 1;
}

static uint64_t behind(uint64_t around, uint64_t start, uint64_t end)
{
	uint64_t shown = start > around ? start : around + 1;

	return shown < end ? shown : end;
}

uint64_t xs_perfetto_start(const struct xs_track *track, uint32_t around, uint64_t start,
			   uint64_t end)
{
	uint32_t lowest = xs_track_lowest(track);
	uint64_t shown = start;

	/* each begins a ns behind the one around it, at least */
	for (uint32_t at = around; at > lowest; at--) {
		const struct xs_open *task = &track->open[at - 1];

		if (task->start + (around - lowest) <= shown)
			break;
		if (!task->row && task->start <= start && task->start + (around - at + 1) > shown)
			shown = task->start + (around - at + 1);
	}
	return shown < end ? shown : end > start ? end : start;
}

/* starts[i]: when tasks[i] is to be shown to begin. */
static void find_starts(const struct xs_track *track, const struct xs_task *tasks, uint32_t count,
			uint64_t starts[static XS_TASKS_AT_A_TIME])
{
	uint32_t around[XS_TASKS_AT_A_TIME], depth = 0; /* those that hold the next one */

	/* backwards, so that each comes behind the one around it */
	for (uint32_t i = count; i--;) {
		const struct xs_task *task = &tasks[i];

		while (depth && tasks[around[depth - 1]].depth >= task->depth)
			depth--;
		starts[i] =
			depth ? behind(starts[around[depth - 1]], task->start, task->end)
			      : xs_perfetto_start(track, task->depth - 1, task->start, task->end);
		around[depth++] = i;
	}
}

static void put_task(struct xs_track *track, const struct xs_task *task, uint64_t start)
{
	struct xs_chrome_track *own = xs_chrome_track(track);
	struct xs_chrome *chrome = xs_chrome_of(track->process);
	struct xs_perfetto *p = chrome->perfetto;
	char *o = xs_output_put(&chrome->out);
	struct xs_pf_place place = { o, o + XS_OUTPUT_SLACK };
	struct xs_pf_said said = { .category = XF_NONE, .type = TYPE_BEGIN };
	/* the deepest ones share one, in which those around them are told with whole times */
	uint32_t level = task->depth < XS_PERFETTO_LEVELS ? task->depth : XS_PERFETTO_LEVELS,
		 *known = &own->sequences[level - 1];
	struct xs_pf_sequence *sequence;

	said.name = number_of_name(track->process, p, task->name, &said.long_name);
	if (!*known)
		*known = xs_pf_sequence_of(p, &place, (uint32_t)track->process->pid, track->tid,
					   level);
	if (!*known) {
		track->process->omitted[XS_OMIT_TRACKS]++;
		return;
	}
	sequence = &p->sequences[*known - 1];
	if (said.name != XF_NONE && said.name / 64 < sequence->words[XS_PF_NAME] &&
	    sequence->told[XS_PF_NAME][said.name / 64] >> said.name % 64 & 1) {
		place.at = xs_pf_put_short(place.at, sequence, start, TYPE_BEGIN, said.name);
	} else {
		p->key_count = 0;
		p->fields.length = 0;
		xs_pf_put_event(p, &place, sequence, start, &said);
	}
	xs_pf_put_end(&place, sequence, task->end > start ? task->end : start);
	xs_output_put_end(&chrome->out, place.at);
}

void xs_perfetto_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	uint64_t starts[XS_TASKS_AT_A_TIME];

	find_starts(track, tasks, count, starts);
	for (uint32_t i = 0; i < count; i++)
		put_task(track, &tasks[i], starts[i]);
}

/* ---- from JSON ---- */

static void take_metadata(struct xs_perfetto *p, struct xs_pf_place *place,
			  const struct xf_event *event, uint64_t pid, int64_t tid)
{
	struct xf_text name = xf_find(event->args, "name"), labels = xf_find(event->args, "labels");
	int64_t number = 0;

	(void)xf_integer(xf_find(event->args, "sort_index"), &number);
	if (xf_is(event->name, "\"process_name\""))
		xs_pf_put_process(p, place, pid, PROCESS_NAME, name, 0);
	else if (xf_is(event->name, "\"process_labels\""))
		xs_pf_put_process(p, place, pid, PROCESS_LABELS, labels, 0);
	else if (xf_is(event->name, "\"process_sort_index\""))
		xs_pf_put_process(p, place, pid, PROCESS_SORT_INDEX, name, (uint64_t)number);
	else if (xf_is(event->name, "\"thread_name\""))
		xs_pf_put_thread(p, place, pid, tid, THREAD_NAME, name, 0);
	else if (xf_is(event->name, "\"thread_sort_index\""))
		xs_pf_put_thread(p, place, pid, tid, THREAD_SORT_INDEX, name, (uint64_t)number);
}

static void take_counter(struct xs_perfetto *p, struct xs_pf_place *place,
			 const struct xf_event *event, uint64_t pid, uint64_t time)
{
	struct xf_text value = xf_find(event->args, "value"), text;
	uint32_t name = xs_pf_number(p, XS_PF_NAME, event->name, &text), number;
	struct xs_pf_sequence *sequence;
	size_t n;

	if (name == XF_NONE && !text.n) /* a name like any other here */
		name = xf_map_add(&p->texts[XS_PF_NAME], "", 0);
	if (name == XF_NONE || !value.n)
		return;
	number = xs_pf_sequence_of(p, place, pid, XS_PF_NO_TID - 1 - (int64_t)name, 0);
	if (!number)
		return;
	sequence = &p->sequences[number - 1];
	if (!sequence->counter) {
		const char *shown = xf_map_key(&p->texts[XS_PF_NAME], name, &n);

		xs_pf_put_counter_track(p, place, pid, XS_PF_NO_TID - 1 - (int64_t)name, shown, n);
	}
	sequence->counter = true;
	xs_pf_put_counter(p, place, sequence, time, value);
}

/* Arrows have numbers; those between spans have texts. */
static uint64_t flow_of(const struct xs_perfetto *p, struct xf_text id)
{
	uint64_t hash = p->seed;
	int64_t number;

	if (xf_integer(id, &number) && number >= 0)
		return (hash & 0xffffffff00000000ull) | (uint32_t)number;
	for (size_t i = 0; i < id.n; i++)
		hash = (hash ^ (unsigned char)id.p[i]) * 0x100000001b3ull;
	return hash | 1ull << 63;
}

static void take_event(struct xs_perfetto *p, struct xs_pf_place *place,
		       const struct xf_event *event)
{
	struct xs_pf_said said = { .phase = event->ph.p[1], .enclosing = event->bp.n > 0 };
	int64_t pid = 0, tid = XS_PF_NO_TID, time = 0, duration = 0;
	struct xs_pf_sequence *sequence;
	struct xf_text none;
	uint32_t number;

	if (!xf_integer(event->pid, &pid))
		return;
	(void)xf_integer(event->tid, &tid);
	if (said.phase == 'M') {
		take_metadata(p, place, event, (uint64_t)pid, tid);
		return;
	}
	if (!xf_nanoseconds(event->ts, &time) || time < 0)
		return;
	if (said.phase == 'C') {
		take_counter(p, place, event, (uint64_t)pid, (uint64_t)time);
		return;
	}
	if (event->scope.n && !xf_is(event->scope, "\"t\""))
		tid = XS_PF_NO_TID;
	number = xs_pf_sequence_of(p, place, (uint64_t)pid, tid, 0);
	if (!number)
		return;
	sequence = &p->sequences[number - 1];
	p->key_count = 0;
	p->fields.length = 0;
	xf_annotate_all(&p->annotator, event->args);
	said.category = xs_pf_number(p, XS_PF_CATEGORY, event->cat, &none);
	said.name = xs_pf_number(p, XS_PF_NAME, event->name, &said.long_name);
	if (said.phase == 'X')
		said.type = TYPE_BEGIN;
	else if (said.phase == 'i')
		said.type = TYPE_INSTANT;
	else
		said.flow = flow_of(p, event->id);
	xs_pf_put_event(p, place, sequence, (uint64_t)time, &said);
	if (said.phase == 'X') {
		(void)xf_nanoseconds(event->dur, &duration);
		xs_pf_put_end(place, sequence, (uint64_t)(time + (duration > 0 ? duration : 0)));
	}
}

char *xs_perfetto_put(struct xs_perfetto *p, char *text, char *end)
{
	struct xs_pf_place place = { p->made, p->made + sizeof(p->made) };
	const char *at = text, *why;
	struct xf_event event;

	memset(end, 0, XF_SLACK);
	while (at < end && *at == '{' && xf_scan_event(at, end, &event, &at, &why) == XF_OK) {
		take_event(p, &place, &event);
		at += strspn(at, ",\n");
	}
	return mempcpy(text, p->made, (size_t)(place.at - p->made));
}

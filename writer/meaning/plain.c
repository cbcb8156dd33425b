#include "plain.h"

#include "tasks.h"

#define WORDS(kind)   ((kind) | (uint32_t)(sizeof(struct xs_event) / 8) << 8)
#define KIND_AND_SIZE 0xffffu /* of the upper half of a record's second word */

/* What has come to its end so far. */
struct reading {
	const uint64_t *at, *stop; /* `stop`: of what may be read */
	struct xs_task *task;	   /* where the next one goes */
	struct xs_open *top;	   /* behind the innermost open task */
	uint64_t last;		   /* ns */
};

static inline uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool is(uint64_t second, uint32_t kind)
{
	return ((uint32_t)(second >> 32) & KIND_AND_SIZE) == WORDS(kind);
}

/* The innermost task ends, which must be of that domain. False: this is not so simple. */
static inline bool take(struct reading *r, const struct xs_open *first, uint32_t scope, uint64_t ns)
{
	const struct xs_open *open = r->top - 1;

	if (r->top == first || open->name.scope != scope || open->extra || open->row)
		return false;
	*r->task++ = (struct xs_task){ open->start, ns, open->name.id, (uint32_t)(r->top - first) };
	r->top--;
	return true;
}

/*
 * The task begins at `ns`, and may end with the next record, as most do: then nobody else needs to
 * know that it was open.
 */
static inline bool take_leaf(struct reading *r, const struct xs_open *first,
			     const struct xs_stretch *clock, const struct xs_name *name,
			     uint64_t ns)
{
	uint64_t second, after, end;

	if (r->stop - r->at < 4)
		return false;
	second = load(&r->at[3]);
	if (!is(second, XS_END) || (uint32_t)second != name->scope)
		return false;
	after = load(&r->at[2]) - clock->from;
	end = xs_stretch_ns(clock, after);
	if (after >= clock->length || end < ns)
		return false;
	*r->task++ = (struct xs_task){ ns, end, name->id, (uint32_t)(r->top - first) + 1 };
	r->last = end;
	r->at += 4;
	return true;
}

/* clock: no tick behind it is read. */
static void read_some(struct xs_track *track, struct reading *r, struct xs_stretch clock)
{
	const struct xs_name *hot = track->process->names->hot;
	struct xs_open *first = track->open, *full = first + track->room;
	struct reading now = *r;

	while (now.at < now.stop) {
		uint64_t second = load(&now.at[1]), after = load(&now.at[0]) - clock.from;
		uint64_t ns = xs_stretch_ns(&clock, after);
		const struct xs_name *name = &hot[(uint32_t)second % XS_NAMES_HOT];

		if (after >= clock.length || ns < now.last)
			break;
		if (is(second, XS_BEGIN)) {
			if (name->id != (uint32_t)second || now.top == full)
				break;
			if (take_leaf(&now, first, &clock, name, ns))
				continue;
			now.top->start = ns;
			now.top->extra = NULL;
			now.top->row = 0;
			now.top->lost = 0;
			now.top->name = *name;
			now.top++;
		} else if (!is(second, XS_END) || !take(&now, first, (uint32_t)second, ns)) {
			break;
		}
		now.last = ns;
		now.at += 2;
	}
	*r = now;
}

uint32_t xs_tasks_read(struct xs_track *track, const unsigned char *data, uint64_t length,
		       const struct xs_stretch *stretch)
{
	struct xs_process *process = track->process;
	struct xs_task tasks[XS_TASKS_AT_A_TIME];
	const uint64_t *from = (const void *)data;
	struct reading r = { .at = from, .task = tasks, .last = track->last_ns };
	struct xs_stretch clock = *stretch;

	if (track->row || !track->room || track->too_deep || track->counts_due ||
	    track->look_at < clock.from)
		return 0;
	r.stop = from + (length < XS_TASKS_BYTES ? length : XS_TASKS_BYTES) / 16 * 2;
	r.top = track->open + track->depth;
	if (track->look_at - clock.from < clock.length)
		clock.length = track->look_at - clock.from;
	read_some(track, &r, clock);
	track->depth = (uint32_t)(r.top - track->open);
	track->last_ns = r.last;
	track->records += (uint64_t)(r.at - from) / 2;
	process->kinds[XS_BEGIN] += (uint64_t)(r.at - from) / 2;
	if (process->plain_tasks && r.task != tasks)
		process->plain_tasks(track, tasks, (uint32_t)(r.task - tasks));
	return (uint32_t)((r.at - from) * 8);
}

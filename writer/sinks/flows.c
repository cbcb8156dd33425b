/*
 * Arrows between slices that the application names by ids: each waits until both slices are
 * written.
 *
 * Ids are remembered in two generations. When the younger is full, the older is forgotten, but not
 * within a pass over the rings: what a pass has read of relations is told at its end, or at that of
 * the next one, and slices at once.
 */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "chrome.h"
#include "task_record.h"

#define GENERATION  32768u
#define CHUNK	    4096u
#define CHUNKS	    64u /* of a generation that grows within a pass */
#define BUCKETS	    65536u
#define WAITING_MAX 65536u

struct place {
	struct place *next;
	struct xs_id id;
	struct xs_place place;
};

struct generation {
	struct place *bucket[BUCKETS];
	struct place *chunk[CHUNKS]; /* CHUNK places each */
	uint32_t used;
	uint64_t pass; /* of its latest place */
};

struct arrow {
	struct arrow *next;
	const char *name;
	struct xs_id from, to;
};

struct marker {
	struct marker *next;
	struct xs_id id, within;
	uint64_t ns;
};

struct xs_flows {
	struct generation generation[2];
	uint32_t young;
	uint64_t pass;			 /* process->passes */
	struct arrow *waiting[BUCKETS];	 /* by the id that is not known yet */
	struct marker *markers[BUCKETS]; /* by the slice that they lie in, until it is written */
	uint32_t waiting_count, marker_count;
};

static uint32_t bucket_of(const struct xs_id *id)
{
	return xs_hash(id->word, 3) % BUCKETS;
}

static bool same(const struct xs_id *a, const struct xs_id *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static struct xs_flows *flows_of(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	if (!chrome->span_flows)
		chrome->span_flows = calloc(1, sizeof(*chrome->span_flows));
	return chrome->span_flows;
}

static struct place *find_in(const struct generation *generation, const struct xs_id *id,
			     uint32_t bucket)
{
	for (struct place *p = generation->bucket[bucket]; p; p = p->next)
		if (same(&p->id, id))
			return p;
	return NULL;
}

static const struct place *find(const struct xs_flows *flows, const struct xs_id *id)
{
	uint32_t bucket = bucket_of(id);
	const struct place *found = find_in(&flows->generation[flows->young], id, bucket);

	return found ? found : find_in(&flows->generation[!flows->young], id, bucket);
}

/* A program that relates little has few chunks again. */
static void forget(struct generation *generation, uint32_t kept)
{
	for (uint32_t i = kept; i < CHUNKS; i++) {
		free(generation->chunk[i]);
		generation->chunk[i] = NULL;
	}
	memset(generation->bucket, 0, sizeof(generation->bucket));
	generation->used = 0;
}

/* The generation that has room, or may grow: NULL where there is no memory. */
static struct generation *make_room(struct xs_flows *flows)
{
	struct generation *young = &flows->generation[flows->young],
			  *old = &flows->generation[!flows->young];
	bool is_needed = old->used && old->pass + 1 >= flows->pass;
	struct place **chunk;

	if (young->used >= (is_needed ? CHUNK * CHUNKS : GENERATION)) {
		flows->young = !flows->young;
		forget(old, GENERATION / CHUNK);
		young = old;
	}
	chunk = &young->chunk[young->used / CHUNK];
	if (!*chunk)
		*chunk = malloc(CHUNK * sizeof(**chunk));
	return *chunk ? young : NULL;
}

static void remember(struct xs_flows *flows, const struct xs_id *id, struct xs_place place)
{
	uint32_t bucket = bucket_of(id);
	struct place *found = find_in(&flows->generation[flows->young], id, bucket);
	struct generation *young;

	flows->generation[flows->young].pass = flows->pass;
	if (found) { /* an id that comes again means its newest slice */
		found->place = place;
		return;
	}
	young = make_room(flows);
	if (!young)
		return;
	found = &young->chunk[young->used / CHUNK][young->used % CHUNK];
	young->used++;
	young->pass = flows->pass;
	*found = (struct place){ .next = young->bucket[bucket], .id = *id, .place = place };
	young->bucket[bucket] = found;
}

static char *put_arrow(char *o, const struct xs_process *process, const char *phase,
		       const char *name, uint64_t id, struct xs_place place)
{
	o = xs_put(xs_put(xs_put(o, "{\"ph\":\""), phase), "\",\"tid\":");
	o = xs_put_count(xs_json_uint(o, place.tid), ",\"pid\":", (uint32_t)process->pid);
	o = xs_json_time(xs_put(o, ",\"ts\":"), place.start, &xs_chrome_of(process)->time);
	o = xs_put(xs_put_count(o, ",\"id\":", id), ",\"cat\":\"relation\",\"name\":\"");
	return xs_put(xs_put(o, name), "\"},\n");
}

static void write_arrow(struct xs_process *process, const char *name, struct xs_place from,
			struct xs_place to)
{
	struct xs_kept_numbers *kept = xs_chrome_numbers(process);
	uint64_t id = xs_arrow_id(process, 0, xs_chrome_of(process)->flows++);
	char *o = xs_output_put(&xs_chrome_of(process)->out);

	if (kept)
		kept->flows = xs_chrome_of(process)->flows;
	/* an arrow cannot go back in time: then it is drawn the other way */
	if (from.start > to.start) {
		struct xs_place swap = from;

		from = to;
		to = swap;
	}
	o = put_arrow(o, process, "s", name, id, from);
	xs_chrome_finish(xs_chrome_of(process),
			 put_arrow(o, process, "f\",\"bp\":\"e", name, id, to));
}

/* Draws the arrow, or lets it wait for the id that is missing. Owns `arrow`. */
static void draw(struct xs_process *process, struct arrow *arrow)
{
	struct xs_flows *flows = xs_chrome_of(process)->span_flows;
	const struct place *from = find(flows, &arrow->from), *to = find(flows, &arrow->to);
	uint32_t bucket;

	if (from && to) {
		write_arrow(process, arrow->name, from->place, to->place);
		free(arrow);
		return;
	}
	if (flows->waiting_count >= WAITING_MAX) {
		process->omitted[XS_OMIT_ARROWS]++;
		free(arrow);
		return;
	}
	bucket = bucket_of(from ? &arrow->to : &arrow->from);
	arrow->next = flows->waiting[bucket];
	flows->waiting[bucket] = arrow;
	flows->waiting_count++;
}

/* The id is known: what waits for it is drawn. */
static void place_id(struct xs_process *process, const struct xs_id *id, struct xs_place place)
{
	struct xs_flows *flows = xs_chrome_of(process)->span_flows;
	struct arrow *again = NULL, **link;

	remember(flows, id, place);
	for (link = &flows->waiting[bucket_of(id)]; *link;) {
		struct arrow *arrow = *link;

		if (!same(&arrow->from, id) && !same(&arrow->to, id)) {
			link = &arrow->next;
			continue;
		}
		*link = arrow->next;
		flows->waiting_count--;
		arrow->next = again;
		again = arrow;
	}
	while (again) {
		struct arrow *arrow = again;

		again = arrow->next;
		draw(process, arrow);
	}
}

void xs_flows_place(struct xs_process *process, const struct xs_id *id, struct xs_place place,
		    uint64_t end)
{
	struct xs_flows *flows = flows_of(process);
	struct marker **link;

	if (!flows || !place.tid)
		return;
	flows->pass = process->passes;
	place_id(process, id, place);
	for (link = &flows->markers[bucket_of(id)]; *link;) {
		struct marker *marker = *link;
		struct xs_place at = { .tid = place.tid, .start = marker->ns };

		if (!same(&marker->within, id)) {
			link = &marker->next;
			continue;
		}
		*link = marker->next;
		flows->marker_count--;
		/* by clocks of the application's it may lie elsewhere, and the slice end before */
		if (at.start > end)
			at.start = end;
		if (at.start < place.start)
			at.start = place.start;
		place_id(process, &marker->id, at);
		free(marker);
	}
}

void xs_flows_mark(struct xs_process *process, const struct xs_id *id, const struct xs_id *within,
		   uint64_t ns)
{
	struct xs_flows *flows = flows_of(process);
	struct marker *marker, **bucket;

	/* few have arrows: those beyond the bound are forgotten as other ids are */
	marker = flows && flows->marker_count < WAITING_MAX ? malloc(sizeof(*marker)) : NULL;
	if (!marker)
		return;
	bucket = &flows->markers[bucket_of(within)];
	*marker = (struct marker){ .next = *bucket, .id = *id, .within = *within, .ns = ns };
	*bucket = marker;
	flows->marker_count++;
}

void xs_flows_add(struct xs_process *process, const char *name, const struct xs_id *from,
		  const struct xs_id *to)
{
	struct arrow *arrow;

	if (!flows_of(process))
		return;
	arrow = malloc(sizeof(*arrow));
	if (!arrow)
		return;
	*arrow = (struct arrow){ .name = name, .from = *from, .to = *to };
	draw(process, arrow);
}

void xs_flows_end(struct xs_process *process)
{
	const struct xs_flows *flows = xs_chrome_of(process)->span_flows;

	process->open_relations += flows ? flows->waiting_count : 0;
}

void xs_flows_fini(struct xs_process *process)
{
	struct xs_flows *flows = xs_chrome_of(process)->span_flows;

	if (!flows)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		while (flows->waiting[i]) {
			struct arrow *arrow = flows->waiting[i];

			flows->waiting[i] = arrow->next;
			free(arrow);
		}
		while (flows->markers[i]) {
			struct marker *marker = flows->markers[i];

			flows->markers[i] = marker->next;
			free(marker);
		}
	}
	forget(&flows->generation[0], 0);
	forget(&flows->generation[1], 0);
	free(flows);
	xs_chrome_of(process)->span_flows = NULL;
}

/*
 * Pictures of a run: what --top shows, as the sink (live.c), the rings and the process that reads
 * them say. A picture has a bounded size, whatever the run has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "live.h"
#include "names.h"
#include "sinks.h"
#include "text.h"
#include "threads.h"
#include "title.h"
#include "track.h"

/* One plain line, as much as there is room for. */
static void put_text(char *out, size_t room, const char *text, size_t length)
{
	char plain[256];
	char *end = xs_plain(plain, text, length < sizeof(plain) ? length : sizeof(plain) - 1);
	size_t n = xs_title_cut(plain, (size_t)(end - plain), room - 1);

	memcpy(out, plain, n);
	out[n] = '\0';
}

/* ---- names ---- */

static void put_name(struct xs_run *run, const struct xs_live_entry *entry, struct xs_live_name *to)
{
	size_t length;
	const char *name;

	if (entry->id == UINT32_MAX) {
		(void)strcpy(to->name, "(others)");
		return;
	}
	name = xs_text_of(run, entry->id, &length);
	if (entry->kind == XS_LIVE_KERNEL)
		name = xs_demangle(name, &length);
	put_text(to->name, sizeof(to->name), name, length);
}

static void put_entry(struct xs_run *run, const struct xs_live_entry *entry,
		      struct xs_live_name *to)
{
	to->kind = entry->kind;
	to->all = entry->all;
	to->bytes = entry->also;
	to->recent = xs_live_recent(&entry->recent, run->live->second, &to->recent_bytes);
	put_name(run, entry, to);
}

struct chosen {
	uint64_t recent, all;
	uint32_t at;
};

static int busiest(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;

	if (x->recent != y->recent)
		return x->recent > y->recent ? -1 : 1;
	if (x->all != y->all)
		return x->all > y->all ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static uint32_t put_names(struct xs_run *run, uint8_t kind, struct xs_live_name *to)
{
	const struct xs_live *live = run->live;
	struct chosen *chosen = malloc(XS_LIVE_ENTRIES * sizeof(*chosen));
	uint32_t count = 0;
	uint64_t unused;

	for (uint32_t i = 0; chosen && i < XS_LIVE_ENTRIES; i++) {
		const struct xs_live_entry *entry = &live->entries[i];

		if (!entry->id || entry->kind != kind)
			continue;
		chosen[count++] = (struct chosen){
			.recent = xs_live_recent(&entry->recent, live->second, &unused).ns,
			.all = entry->all.ns,
			.at = i,
		};
	}
	if (count)
		qsort(chosen, count, sizeof(*chosen), busiest);
	if (count > XS_LIVE_NAMES)
		count = XS_LIVE_NAMES;
	for (uint32_t i = 0; i < count; i++)
		put_entry(run, &live->entries[chosen[i].at], &to[i]);
	free(chosen);
	return count;
}

/* ---- devices ---- */

static void put_device(struct xs_run *run, const struct xs_live_unit *unit,
		       struct xs_live_device *to)
{
	struct xs_text name = xs_text_find(run, unit->name);

	to->pid = unit->pid;
	to->device = unit->device;
	to->all = unit->all;
	to->busy = unit->busy;
	to->recent = xs_live_recent(&unit->recent, run->live->second, &to->recent_busy);
	put_text(to->name, sizeof(to->name), name.text, name.length);
}

/* ---- processes ---- */

#define CALLS_SEEN 16u /* different ones that its threads are in */

static void put_in_call(const struct xs_process *process, struct xs_live_process *to)
{
	struct {
		uint32_t call, threads;
		uint64_t since;
	} seen[CALLS_SEEN];
	uint32_t count = 0, most = 0;
	uint64_t now = xs_tick(process->run->use_tsc);
	size_t length;
	const char *name;

	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_ring *ring = process->tracks[i]->ring;
		uint32_t call = atomic_load_explicit(&ring->call, memory_order_relaxed), at = 0;
		uint64_t since = atomic_load_explicit(&ring->call_tick, memory_order_relaxed);

		if (!call ||
		    atomic_load_explicit(&ring->state, memory_order_relaxed) != XS_RING_LIVE)
			continue;
		while (at < count && seen[at].call != call)
			at++;
		if (at == CALLS_SEEN)
			continue;
		if (at == count) {
			seen[count].call = call;
			seen[count].threads = 0;
			seen[count++].since = since;
		}
		seen[at].threads++;
		if (since < seen[at].since)
			seen[at].since = since;
		if (seen[at].threads > seen[most].threads)
			most = at;
	}
	if (!count)
		return;
	name = xs_text_of(process->run,
			  xs_function_id((uint8_t)(seen[most].call >> 24),
					 (seen[most].call & 0xffffff) - 1),
			  &length);
	put_text(to->in_call, sizeof(to->in_call), name, length);
	to->in_call_threads = seen[most].threads;
	if (now > seen[most].since)
		to->in_call_ns =
			xs_process_ns(process, now) - xs_process_ns(process, seen[most].since);
}

/* What rings hold, and what is read of them; what a ring says may be nonsense. */
static void put_rings(const struct xs_process *process, struct xs_live_process *to)
{
	to->events = xs_process_events(process);
	to->lost = process->lost + atomic_load(&process->file->lost_no_ring) -
		   atomic_load(&process->file->told.lost_no_ring);
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_track *track = process->tracks[i];
		const struct xs_ring *ring = track->ring;
		uint64_t held = xs_ring_filled(ring) - xs_track_tail(track);
		uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed) +
				atomic_load_explicit(&ring->lost_nested, memory_order_relaxed);
		uint32_t fill = held >= track->ring_size
					? 1000
					: (uint32_t)(held * 1000 / track->ring_size);

		to->lost += lost > track->lost_base ? lost - track->lost_base : 0;
		to->lost += xs_ring_given_up(ring);
		to->threads += atomic_load_explicit(&ring->state, memory_order_relaxed) ==
			       XS_RING_LIVE;
		if (fill > to->fill)
			to->fill = fill;
	}
}

static void put_process(struct xs_process *process, struct xs_live_process *to)
{
	struct xs_live_calls *calls = process->sink[XS_SINK_LIVE];
	uint64_t second = process->run->live->second, unused;
	const char *title = xs_title_of(process);
	int32_t rank = xs_process_rank(process);

	to->pid = process->pid;
	to->rank = rank >= 0 ? rank : process->run->rank;
	put_text(to->name, sizeof(to->name), title, strlen(title));
	put_rings(process, to);
	put_in_call(process, to);
	if (!calls)
		return;
	to->calls = calls->all;
	to->waited = calls->waited;
	to->recent_calls = xs_live_recent(&calls->recent, second, &to->recent_waited);
	xs_live_add(&calls->events, second, to->events - calls->seen, 0, 0);
	calls->seen = to->events;
	to->recent_events = xs_live_recent(&calls->events, second, &unused).count;
}

static int most_events(const void *a, const void *b)
{
	const struct xs_live_process *x = a, *y = b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static uint32_t put_processes(struct xs_process *processes, struct xs_live_process *to,
			      uint32_t *ret_more)
{
	uint32_t count = 0;

	*ret_more = 0;
	for (struct xs_process *p = processes; p; p = p->next) {
		if (xs_process_samples(p))
			continue;
		if (count < XS_LIVE_PROCESSES)
			put_process(p, &to[count++]);
		else
			++*ret_more;
	}
	if (count)
		qsort(to, count, sizeof(*to), most_events);
	return count;
}

/* ---- the whole ---- */

static uint64_t resident(void)
{
	unsigned long long size, pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%llu %llu", &size, &pages) != 2)
		pages = 0;
	if (file)
		(void)fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t ns_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

uint64_t xs_live_cpu(void)
{
	struct rusage usage = { .ru_maxrss = 0 };

	(void)getrusage(RUSAGE_SELF, &usage);
	return ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
}

static void put_head(const struct xs_run *run, struct xs_live_head *head, uint64_t behind)
{
	struct xs_live *live = run->live;
	uint64_t part, unused;

	head->magic = XS_LIVE_MAGIC;
	head->version = XS_SHM_VERSION;
	head->mono = xs_clock_ns(CLOCK_MONOTONIC);
	head->real = xs_clock_ns(CLOCK_REALTIME);
	head->begun = head->mono > run->control->mono0 ? head->mono - run->control->mono0 : 0;
	head->watched = head->mono - live->begun;
	part = (XS_LIVE_SECONDS - 1) * 1000000000ull + head->mono % 1000000000;
	head->recent = part < head->watched ? part : head->watched;
	head->cpu = xs_live_cpu();
	xs_live_add(&live->cpus, live->second, 0, head->cpu - live->cpu, 0);
	live->cpu = head->cpu;
	head->recent_cpu = xs_live_recent(&live->cpus, live->second, &unused).ns;
	head->rss = resident();
	head->behind = behind;
	head->paused = atomic_load_explicit(&run->control->paused, memory_order_relaxed);
	head->blind = run->flight || run->options->on_full == XS_FULL_OVERWRITE;
}

#define LARGEST                                                                             \
	(sizeof(struct xs_live_head) + XS_LIVE_PROCESSES * sizeof(struct xs_live_process) + \
	 XS_LIVE_DEVICES * sizeof(struct xs_live_device) +                                  \
	 (size_t)XS_LIVE_KINDS * XS_LIVE_NAMES * sizeof(struct xs_live_name))

struct xs_live_head *xs_live_picture(struct xs_run *run, struct xs_process *processes,
				     uint64_t behind)
{
	struct xs_live_head *head = calloc(1, LARGEST);
	struct xs_live_process *process = (struct xs_live_process *)(head + 1);
	struct xs_live_device *device;
	struct xs_live_name *name;

	if (!head)
		return NULL;
	put_head(run, head, behind);
	head->process_count = put_processes(processes, process, &head->more_processes);
	device = (struct xs_live_device *)(process + head->process_count);
	for (uint32_t i = 0; i < run->live->units; i++) {
		xs_live_settle(run->live, &run->live->unit[i]);
		put_device(run, &run->live->unit[i], &device[head->device_count]);
		/* of a process that has ended it is shown as long as that is news */
		head->device_count += !run->live->unit[i].over ||
				      device[head->device_count].recent.count;
	}
	name = (struct xs_live_name *)(device + head->device_count);
	for (uint8_t kind = 0; kind < XS_LIVE_KINDS; kind++)
		head->name_count += put_names(run, kind, name + head->name_count);
	head->size = (uint64_t)((char *)(name + head->name_count) - (char *)head);
	return head;
}

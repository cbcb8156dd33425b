/*
 * The Chrome JSON of device work: each device (or tile) is a process, each queue a track of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "chrome.h"
#include "device_record.h"
#include "hash.h"

#define DEVICE_PID 0x80000000u
/* of a device: further threads and queues share one, in as many lanes as overlap */
#define OWN_TRACKS 32u
/* names that a program gives one thing; whoever writes into its files could change them for ever */
#define RENAMED_MAX 16u

static uint64_t device_pid(const struct xs_process *process, uint32_t place)
{
	/* pids have at most 22 bits: no two processes of a host share a device's pid */
	return DEVICE_PID + ((uint64_t)((uint32_t)process->pid & 0x1ffffff) << 6) + place;
}

/* " (what the program calls it)" */
static char *put_given(char *o, const struct xs_process *process, uint32_t id)
{
	size_t length = 0;
	const char *name = id ? xs_text_of(process->run, id, &length) : NULL;

	return name ? xs_put(xs_json_escape(xs_put(o, " ("), name, length < 256 ? length : 256),
			     ")")
		    : o;
}

static void name_device(struct xs_process *process, const struct xs_work *work, uint32_t place)
{
	const struct xs_device_record *record = work->record;
	struct xs_chrome *chrome = xs_chrome_of(process);
	uint64_t pid = device_pid(process, place);
	size_t length;
	const char *name = xs_text_of(process->run, record->device_name, &length);
	struct xs_text bus = xs_device_told(process->run, record->device_name).bus;
	char *o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "process_name", pid, pid);

	o = xs_chrome_put_rank(xs_put(o, "\"name\":\""), process);
	o = xs_put(xs_put_escaped(xs_put(o, "DEVICE<"), process->run->host), ">[");
	o = xs_put(xs_json_escape(o, name, length < 1024 ? length : 1024), "]");
	if (bus.length)
		o = xs_json_escape(xs_put(o, " "), bus.text, bus.length < 64 ? bus.length : 64);
	if (xs_backend_of(record->event.source)->numbered)
		o = xs_put_count(o, " #", record->device);
	if (record->tile)
		o = xs_put_count(o, ".", record->tile - 1u);
	o = xs_put(put_given(o, process, work->named.device), "\"}},\n");
	chrome->places[place].given = work->named.device;
	chrome->places[place].renamed++;
	chrome->places[place].named = true;
	o = xs_chrome_put_metadata(o, "process_sort_index", pid, pid);
	o = xs_put(xs_put_count(o,
				"\"sort_index\":", 1000000u + (record->device << 4) + record->tile),
		   "}},\n");
	xs_chrome_finish(chrome, o);
}

/*
 * Of two names of a device the later one counts. What a killed drain process wrote of it may not be
 * in the file.
 */
static void name_device_again(struct xs_process *process, const struct xs_work *work,
			      uint32_t place)
{
	const struct device_place *known = &xs_chrome_of(process)->places[place];

	if (!known->named)
		name_device(process, work, place);
	else if (work->named.device && known->given != work->named.device &&
		 known->renamed < RENAMED_MAX)
		name_device(process, work, place);
}

/* Do two APIs reach one device? That is known by where it sits. */
static bool same_device(const struct xs_process *process, const struct device_place *one,
			const struct device_place *other)
{
	struct xs_text here, there;

	if (one->source == other->source || one->tile != other->tile)
		return false;
	here = xs_device_told(process->run, one->name).bus;
	there = xs_device_told(process->run, other->name).bus;
	return here.length && here.length == there.length &&
	       !memcmp(here.text, there.text, here.length);
}

static void keep_place(const struct xs_process *process, uint32_t number)
{
	const struct device_place *place = &xs_chrome_of(process)->places[number];
	struct xs_kept_numbers *kept = xs_chrome_numbers(process);

	if (!kept || number >= XS_KEPT_PLACES)
		return;
	kept->place[number].name = place->name;
	kept->place[number].source = place->source;
	kept->place[number].device = place->device;
	kept->place[number].tile = place->tile;
	kept->place[number].shown = (uint8_t)place->shown;
	kept->places = number + 1;
}

void xs_chrome_take_up(struct xs_chrome *chrome, const struct xs_kept_numbers *kept)
{
	uint32_t count = kept->places < XS_KEPT_PLACES ? kept->places : XS_KEPT_PLACES;

	chrome->flows = kept->flows;
	chrome->next_own = kept->own;
	chrome->place_count = count;
	for (uint32_t i = 0; i < count; i++)
		chrome->places[i] = (struct device_place){
			.source = kept->place[i].source,
			.device = kept->place[i].device,
			.tile = kept->place[i].tile,
			.name = kept->place[i].name,
			.shown = kept->place[i].shown < count ? kept->place[i].shown : i,
		};
	for (uint32_t i = 0; i < XS_DEVICES; i++)
		chrome->next_tid[i] = kept->track;
}

/*
 * The number of a device or tile among those of the process; what is too much shares the last one.
 */
static uint32_t device_place(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_chrome *chrome = xs_chrome_of(process);
	uint32_t count = chrome->place_count, i;
	struct device_place *fresh;

	for (i = 0; i < count; i++)
		if (chrome->places[i].source == record->event.source &&
		    chrome->places[i].device == record->device &&
		    chrome->places[i].tile == record->tile) {
			name_device_again(process, work, chrome->places[i].shown);
			return chrome->places[i].shown;
		}
	if (count == XS_DEVICES)
		return chrome->places[count - 1].shown;
	fresh = &chrome->places[chrome->place_count++];
	*fresh = (struct device_place){ .source = record->event.source,
					.device = record->device,
					.tile = record->tile,
					.name = record->device_name };
	for (i = 0; i < count && !same_device(process, fresh, &chrome->places[i]); i++)
		;
	fresh->shown = i < count ? chrome->places[i].shown : count;
	keep_place(process, count);
	if (!chrome->places[fresh->shown].named)
		name_device(process, work, fresh->shown);
	return fresh->shown;
}

uint64_t xs_chrome_device_pid(struct xs_process *process, const struct xs_work *work)
{
	return device_pid(process, device_place(process, work));
}

static uint32_t *index_of(const struct xs_chrome *chrome, const struct device_track *key)
{
	uint64_t words[2] = { (uint64_t)key->place << 32 | key->tid, key->queue };

	for (uint32_t at = xs_hash(words, 2);; at++) {
		uint32_t *slot = &chrome->track_index[at & (2 * chrome->track_room - 1)];
		const struct device_track *track = &chrome->tracks[*slot - 1];

		if (!*slot || (track->place == key->place && track->tid == key->tid &&
			       track->queue == key->queue))
			return slot;
	}
}

static bool grow_tracks(struct xs_chrome *chrome)
{
	uint32_t room = chrome->track_room ? 2 * chrome->track_room : 16, *index;
	struct device_track *grown = realloc(chrome->tracks, room * sizeof(*grown));

	if (!grown)
		return false;
	chrome->tracks = grown;
	index = calloc(2 * room, sizeof(*index));
	if (!index)
		return false;
	free(chrome->track_index);
	chrome->track_index = index;
	chrome->track_room = room;
	for (uint32_t i = 0; i < chrome->track_count; i++)
		*index_of(chrome, &grown[i]) = i + 1;
	return true;
}

static struct device_track *find_track(struct xs_process *process, const struct device_track *key)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	uint32_t *slot = chrome->track_count ? index_of(chrome, key) : NULL;
	bool shared = !key->tid && !key->queue;

	if (slot && *slot) {
		chrome->last = *slot - 1;
		return &chrome->tracks[chrome->last];
	}
	if (!shared && chrome->own_tracks[key->place] >= OWN_TRACKS)
		return find_track(process, &(struct device_track){ .place = key->place });
	if (chrome->track_count == chrome->track_room && !grow_tracks(chrome))
		return NULL;
	chrome->own_tracks[key->place] += !shared;
	chrome->last = chrome->track_count++;
	*index_of(chrome, key) = chrome->track_count;
	return memcpy(&chrome->tracks[chrome->last], key, sizeof(*key));
}

static struct device_track *device_track(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	const struct xs_options *options = process->run->options;
	struct xs_chrome *chrome = xs_chrome_of(process);
	bool engines = xs_backend_of(record->event.source)->engines;
	struct device_track key = { .place = device_place(process, work),
				    .tid = options->no_thread_on_device ? 0 : record->tid },
			    *last;

	if (!options->no_engine_on_device)
		/*
		 * a queue is known by its handle: a new queue with an old one's handle continues in
		 * its track
		 */
		key.queue = engines ? (uint32_t)record->engine << 8 | record->engine_index
				    : record->queue_handle;
	last = chrome->last < chrome->track_count ? &chrome->tracks[chrome->last] : NULL;
	if (last && last->place == key.place && last->tid == key.tid && last->queue == key.queue)
		return last;
	return find_track(process, &key);
}

/* Is it the one of all that have none of their own? */
static bool is_shared(const struct xs_options *options, const struct device_track *track)
{
	return !track->tid && !track->queue &&
	       !(options->no_thread_on_device && options->no_engine_on_device);
}

/* What the name of such a track does not say. */
static char *put_origin(char *o, const struct xs_device_record *record)
{
	o = xs_put_count(o, ",\"thread\":", record->tid);
	if (xs_backend_of(record->event.source)->engines)
		return o + sprintf(o, ",\"engine\":\"%u,%u\"", record->engine - 1u,
				   record->engine_index);
	return o + sprintf(o, ",\"queue\":\"0x%llx\"", (unsigned long long)record->queue_handle);
}

/* " Context 1 (its name) Stream 7 (its name)" */
static char *put_stream(char *o, const struct xs_process *process, const struct xs_work *work)
{
	uint64_t handle = work->record->queue_handle;

	o = put_given(xs_put_count(o, " Context ", handle >> 32), process, work->named.context);
	o = xs_put_count(o, " Stream ", (uint32_t)handle);
	return put_given(o, process, work->named.queue);
}

static char *put_queue(char *o, const struct xs_process *process, const struct device_track *track,
		       const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	const struct xs_backend *backend = xs_backend_of(record->event.source);

	if (is_shared(process->run->options, track))
		return xs_put(o, backend->engines ? " Other Engines" : " Other Queues");
	if (!track->queue)
		return o;
	if (backend->engines)
		return o + sprintf(o, " %s Engine<%u,%u>",
				   record->event.flags & XS_DEVICE_FLAG_COPY_ENGINE ? "Copy"
										    : "Compute",
				   record->engine - 1u, record->engine_index);
	if (backend->streams)
		return put_stream(o, process, work);
	return o + sprintf(o, " Queue<0x%llx>", (unsigned long long)record->queue_handle);
}

/* Of the track's lane number `lane`. */
static void name_lane(struct xs_process *process, struct device_track *track,
		      const struct xs_work *work, uint32_t lane)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	uint64_t pid = device_pid(process, track->place);
	uint32_t tid = track->lanes.lane[lane].tid;
	char *o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "thread_name", pid, tid);

	o = xs_put(o, "\"name\":\"");
	if (track->tid)
		o = xs_put(xs_put_count(o, "Thread ", track->tid), " ");
	o = xs_put(o, xs_backend_of(work->record->event.source)->label);
	o = put_queue(o, process, track, work);
	if (lane)
		o = xs_put_count(o, " lane ", lane + 1);
	o = xs_chrome_put_metadata(xs_put(o, "\"}},\n"), "thread_sort_index", pid, tid);
	o = xs_put(xs_put_count(o, "\"sort_index\":", tid), "}},\n");
	xs_chrome_finish(chrome, o);
}

/* Has the program named it since? Of two names of a track the later one counts. */
static void name_again(struct xs_process *process, struct device_track *track,
		       const struct xs_work *work)
{
	if (!track->queue || track->renamed >= RENAMED_MAX ||
	    (track->named.queue == work->named.queue &&
	     track->named.context == work->named.context))
		return;
	track->renamed++;
	track->named = work->named;
	for (uint32_t i = 0; i < track->lanes.count; i++)
		if (track->lanes.lane[i].tid)
			name_lane(process, track, work, i);
}

static uint32_t new_tid(struct xs_process *process, uint32_t place)
{
	struct xs_kept_numbers *kept = xs_chrome_numbers(process);
	uint32_t tid = ++xs_chrome_of(process)->next_tid[place];

	if (kept && kept->track < tid)
		kept->track = tid;
	return tid;
}

/* The track for device work from start to end: 0 when there is no memory. */
static uint32_t find_lane(struct xs_process *process, struct device_track *track,
			  const struct xs_work *work, uint64_t start, uint64_t end)
{
	const struct xs_device_record *record = work->record;
	/* an engine may serve several queues, each in its order */
	bool in_order = record->event.flags & XS_DEVICE_FLAG_IN_ORDER && track->queue &&
			!xs_backend_of(record->event.source)->engines;
	struct xs_lane *lane;

	name_again(process, track, work);
	if (xs_backend_of(record->event.source)->named)
		track->last = *record;
	lane = xs_lanes_take(&track->lanes, start, end, in_order ? XS_FIT_TRUSTED : XS_FIT_APART);
	if (!lane)
		process->omitted[XS_OMIT_SLICES]++;
	if (!lane || lane->tid)
		return lane ? lane->tid : 0;
	lane->tid = new_tid(process, track->place);
	name_lane(process, track, work, (uint32_t)(lane - track->lanes.lane));
	return lane->tid;
}

static char *put_dimensions(char *o, const uint64_t *d, const char *open, const char *between,
			    const char *close)
{
	o = xs_json_uint(xs_put(o, open), d[0]);
	o = xs_json_uint(xs_put(o, between), d[1]);
	return xs_put(xs_json_uint(xs_put(o, between), d[2]), close);
}

/*
 * The name with what unitrace shows of it: kinds of memory, shape, bytes. At most 6 * TITLE_MAX +
 * 200 bytes.
 */
#define TITLE_MAX 4096u
static char *put_title(char *o, struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	uint64_t shown[3];
	size_t length;
	const char *name = xs_kernel_text(process->run, &record->event, &length);

	o = xs_json_escape(o, name, length < TITLE_MAX ? length : TITLE_MAX);
	/* a fill has one memory, and none that it comes from */
	if (record->memory && (record->memory >> 4 || record->work != XS_WORK_FILL))
		o += sprintf(o, "(%c2%c)",
			     xs_memory_letter(record->event.source, record->memory >> 4),
			     xs_memory_letter(record->event.source, record->memory & 15));
	if (work->shape) {
		if (record->simd)
			o = xs_put(xs_put_count(o, "[SIMD", record->simd), " ");
		else
			o = xs_put(o, "[");
		xs_shown_shape(record->event.source, work->shape, shown);
		o = put_dimensions(o, shown, "{", "; ", "} ");
		o = put_dimensions(o, work->shape + 3, "{", "; ", "}]");
	} else if (record->bytes) {
		o = xs_put(xs_put_count(o, "[", record->bytes), "]");
	}
	return o;
}

static char *put_sizes(char *o, const struct xs_work *work)
{
	if (work->shape) {
		o = put_dimensions(o, work->shape, ",\"global\":[", ",", "]");
		return put_dimensions(o, work->shape + 3, ",\"local\":[", ",", "]");
	}
	return work->record->bytes ? xs_put_count(o, ",\"bytes\":", work->record->bytes) : o;
}

static void make_label(struct xs_label *label, const struct xs_label_key *key,
		       struct xs_process *process, const struct xs_work *work)
{
	static char text[6 * TITLE_MAX + 256];
	size_t length = (size_t)(put_title(text, process, work) - text);

	label->key = *key;
	label->length = (uint32_t)length;
	if (length > sizeof(label->text)) {
		label->length = 0;
		return;
	}
	memcpy(label->text, text, length);
	length = (size_t)(put_sizes(text, work) - text);
	if (length > sizeof(label->args))
		label->length = 0;
	else
		memcpy(label->args, text, length);
	label->args_length = (uint32_t)length;
}

/*
 * The work's texts: programs do few things that differ, again and again. NULL: too long to be kept.
 */
static const struct xs_label *label_of(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_label_key key = { record->event.name,
				    record->event.source,
				    record->event.flags & XS_DEVICE_FLAG_FUNCTION,
				    work->shape != NULL,
				    record->simd,
				    record->memory,
				    { 0 },
				    { 0 } };
	uint64_t hash = key.name ^ (uint64_t)key.memory << 32;
	struct xs_chrome *chrome = xs_chrome_of(process);
	struct xs_label *label;

	if (work->shape)
		memcpy(key.shape, work->shape, sizeof(key.shape));
	else
		key.shape[0] = record->bytes;
	for (uint32_t i = 0; i < 6; i++)
		hash = (hash ^ key.shape[i]) * 0x9e3779b97f4a7c15ull;
	if (!chrome->labels)
		chrome->labels = calloc(XS_LABELS, sizeof(*chrome->labels));
	if (!chrome->labels)
		return NULL;
	label = &chrome->labels[(hash >> 32) % XS_LABELS];
	if (__builtin_expect(!label->length || memcmp(&key, &label->key, sizeof(key)) != 0, 0))
		make_label(label, &key, process, work);
	return label->length ? label : NULL;
}

void xs_chrome_work(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	const struct xs_options *options = process->run->options;
	struct xs_chrome *chrome = xs_chrome_of(process);
	struct device_track *track;
	const struct xs_label *label;
	struct xs_own *own;
	uint64_t pid, tid;
	char *o;

	if (!options->chrome_kernel && !options->chrome_device)
		return;
	track = device_track(process, work);
	if (!track)
		return;
	tid = find_lane(process, track, work, work->start, work->end);
	if (!tid)
		return;
	pid = device_pid(process, track->place);
	label = label_of(process, work);
	own = xs_chrome_own(chrome, pid, tid);
	o = xs_chrome_begin(xs_output_put(&chrome->out), &own->begun, own->text, own->length,
			    work->start, work->end);
	o = xs_put(o, ",\"cat\":\"gpu_op\",\"name\":\"");
	o = label ? xs_chrome_put_chunks(o, label->text, label->length)
		  : put_title(o, process, work);
	o = xs_put_count(o, "\",\"args\":{\"id\":\"", record->id);
	o = xs_json_time(xs_put(o, "\",\"queued\":"), work->queued, &chrome->time);
	o = xs_json_time(xs_put(o, ",\"submit\":"), work->submit, &chrome->time);
	o = label ? xs_chrome_put_chunks(o, label->args, label->args_length) : put_sizes(o, work);
	if (is_shared(options, track))
		o = put_origin(o, record);
	o = xs_chrome_put_facts(o, work->facts, work->fact_count, false);
	o = xs_put(o, "}},\n");
	xs_chrome_finish(chrome, o);
	if (options->chrome_kernel && work->linked)
		xs_arrow_add(process, work, pid, tid);
	if (options->chrome_kernel) {
		xs_waits_command(process, work, pid, tid);
		if (xs_backend_of(record->event.source)->streams)
			xs_orders_work(process, work, pid, tid);
	}
}

void xs_chrome_late_names(struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	for (uint32_t i = 0; i < chrome->track_count; i++) {
		struct device_track *track = &chrome->tracks[i];
		const struct xs_backend *backend = xs_backend_of(track->last.event.source);
		struct xs_work work = { .record = &track->last };

		if (!backend->named)
			continue;
		work.named = backend->named(process, &track->last);
		name_device_again(process, &work, track->place);
		name_again(process, track, &work);
	}
}

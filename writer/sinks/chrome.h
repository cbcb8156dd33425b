/*
 * Inside the Chrome JSON sink: its state and the pieces that events are put together from.
 */
#ifndef XS_CHROME_H
#define XS_CHROME_H

#include <limits.h>
#include <string.h>

#include "device_record.h"
#include "extras.h"
#include "json.h"
#include "json_times.h"
#include "lanes.h"
#include "mpi_record.h"
#include "output.h"
#include "put.h"
#include "sink.h"
#include "sinks.h"
#include "task_record.h"

#define XS_PERFETTO_LEVELS 8u /* tasks in each other that have their own sequences */

#define XS_OWN	   16u	       /* such tracks whose beginnings are remembered */
#define XS_OWN_TID 0x40000000u /* from here on: tracks that are no thread's */

/* A device, or a tile of it: a process in the trace, one for all APIs that reach it. */
struct device_place {
	uint8_t source, device; /* enum xs_source; each counts its devices from 0 */
	uint8_t tile;		/* from 1; 0: the whole device */
	uint8_t renamed;	/* how often */
	bool named;		/* the device, by this drain process */
	uint32_t given;		/* what the program calls it */
	uint32_t name;		/* interned, with what its driver tells */
	uint32_t shown;		/* the place whose process it is */
};

/* What files begin with: traces, and those of Kineto's format. */
#define XS_CHROME_OPENING "{\"displayTimeUnit\":\"ns\","
#define XS_KINETO_OPENING "{\"schemaVersion\": 1,"

#define XS_CHUNK 64u /* bytes that texts which are kept are copied by */

#define XS_NAME_SLACK 128u /* bytes that a name's text has, with readable ones behind it */
#define XS_JSON_HOT   64u

/* A name as the last thing of an event: ,"cat":"cpu_op","name":"…"},\n */
struct xs_json_name {
	uint32_t id;	 /* 0: free */
	uint16_t length; /* 0: too long to keep */
	uint16_t skip;	 /* bytes of the category before it */
	char *text;
};

/* Those that were written, made once; further ones are made each time. */
struct xs_json_names {
	struct xs_json_name *table;
	uint32_t size, count; /* size: power of two */
	size_t bytes;
	struct xs_json_name hot[XS_JSON_HOT]; /* by the last bits of their ids */
};

/* Nothing is hot yet: each place has an id that belongs to another one. */
void xs_json_names_init(struct xs_json_names *names);

/* The key of an argument, as it comes again and again. */
struct xs_key {
	uint32_t id; /* string id; 0: free */
	uint32_t length;
	char json[120]; /* "key":[ */
};
#define XS_KEYS 32u /* those that are remembered, by their ids' last bits */

/* A slice that is written: where, for flows. */
struct xs_place {
	uint32_t tid;
	uint64_t start;
};

/*
 * What was written last of a kernel with its shape: programs launch the same one again and again.
 */
struct xs_label {
	struct xs_label_key {
		uint32_t name, source;
		uint8_t flags, has_shape, simd, memory, unused[4];
		uint64_t shape[6]; /* without one: its bytes */
	} key;
	uint32_t length, args_length; /* length 0: nothing yet, or it was too long */
	/* its name in the trace; its sizes among the arguments */
	char text[4 * XS_CHUNK], args[3 * XS_CHUNK];
};
#define XS_LABELS 64u /* a power of two: where a key's label is kept */

/*
 * How a slice on a track begins, up to the last eight digits of its time: they are mostly in the
 * same 100 ms as the one before.
 */
struct xs_begun {
	uint64_t from; /* its time is not before that; 0: nothing is known yet */
	uint32_t length;
	char text[XS_CHUNK];
};

/* How a slice, and the end of an arrow, begins on a track, up to its time. */
struct xs_own {
	char text[XS_CHUNK], arrow[XS_CHUNK];
	uint64_t pid, tid;
	uint32_t length, arrow_length;
	struct xs_begun begun; /* its last slice */
};

/*
 * Where device work of one queue (and thread, as asked) is shown; work that overlaps gets another
 * lane.
 */
struct device_track {
	uint32_t place, tid; /* key; tid and queue 0: not told apart; place: struct device_place */
	uint64_t queue;
	struct xs_lanes lanes;
	struct xs_named named;	      /* as its name says */
	struct xs_device_record last; /* where its backend has names that programs give */
	uint32_t renamed;	      /* how often */
};

/* A row of slices that belong to no thread: frames, regions, tracks that the application made. */
struct xs_row {
	uint32_t name; /* string id; below XS_SPAN_COUNT: enum xs_span */
	struct xs_lanes lanes;
};

/* Between a call and device work; arrows.c. */
enum xs_arrow_kind {
	XS_ARROW_ENQUEUE,
	XS_ARROW_SUBMIT,
	XS_ARROW_WAIT,
	XS_ARROW_KINETO, /* of its format; in the other one: */
	XS_ARROW_ORDER = XS_ARROW_KINETO,
};
struct xs_arrow {
	uint64_t host, device; /* ns: its two ends */
	uint64_t after;	       /* when the call ended: its record is read once the track is there */
	uint64_t pid, tid;     /* the device's track */
	uint32_t id, host_tid;
	enum xs_arrow_kind kind;
	uint8_t source; /* each API counts its commands from 1 */
};

/*
 * Where the trace's numbers are noted for a successor (--recover); NULL: there will be none. That
 * of --recover itself begins where it began.
 */
static inline struct xs_kept_numbers *xs_chrome_numbers(const struct xs_process *process)
{
	return process->kept && !process->copy && !process->run->flight && !process->run->recovering
		       ? &process->kept->numbers
		       : NULL;
}

/*
 * What both ends of an arrow have in common: unique among the processes of a host, and exact in a
 * double. 22 bits of the pid, 2 of who numbers it (struct xs_backend; 0: tasks), 29 of the number.
 */
static inline uint64_t xs_arrow_id(const struct xs_process *process, uint8_t whose, uint32_t number)
{
	return (uint64_t)((uint32_t)process->pid & 0x3fffff) << 31 | (uint64_t)(whose & 3) << 29 |
	       (number & 0x1fffffff);
}

/* One of device work's two sides. */
struct xs_arrow_end {
	uint64_t pid, tid, ns;
};

/* Of a thread's ring. */
struct xs_chrome_track {
	char prefix[XS_CHUNK]; /* {"ph":"X","tid":T,"pid":P,"ts": */
	uint32_t prefix_length;
	struct xs_begun begun;
	uint32_t sequences[XS_PERFETTO_LEVELS]; /* perfetto.c; 0: none yet */
	/* arrows.c: they wait for the calls that they start from, and for how many there is room */
	uint32_t arrow_first, arrow_end, arrow_room;
	struct xs_arrow *arrows;
	struct xs_lanes crossing; /* tasks that end out of order */
	struct xs_lanes unplaced; /* those of clocks that cannot be placed */
};

struct xs_chrome {
	struct xs_output out;
	int former_error; /* --recover: errno of the killed drain process's first failed write */
	char path[PATH_MAX];
	char title[XS_TITLE_MAX]; /* as it was written last */
	int32_t rank;
	struct device_track *tracks;
	uint32_t *track_index;			/* number of the track + 1, by its key; 0: free */
	uint32_t track_count, track_room, last; /* index: twice the room */
	uint32_t next_tid[XS_DEVICES], own_tracks[XS_DEVICES];
	struct device_place places[XS_DEVICES];
	uint32_t place_count;
	struct xs_json_clock time;
	char counter[32]; /* how each counter's event begins */
	uint32_t counter_length;
	uint32_t next_own;	   /* tracks from XS_OWN_TID on */
	struct xs_own own[XS_OWN]; /* those of them, and of devices, that had the last slices */
	struct xs_label *labels;   /* XS_LABELS; NULL: none yet */
	struct xs_row *rows;
	uint32_t row_count, last_row;
	struct xs_json_names names;
	struct xs_key keys[XS_KEYS];
	struct xs_mpi_texts *mpi;      /* chrome_mpi.c; NULL: none yet */
	struct xs_flows *span_flows;   /* flows.c; NULL: none yet */
	struct xs_waits *waits;	       /* waits.c; NULL: none yet */
	struct xs_orders *orders;      /* orders.c; NULL: none yet */
	struct xs_chrome_about *about; /* chrome_own.c; NULL: none yet */
	struct xs_often *often;	       /* often.c; NULL: none yet */
	struct xs_kineto *kineto;      /* kineto.c; NULL: not its format */
	struct xs_perfetto *perfetto;  /* perfetto.c; NULL: JSON */
	const char *category;	       /* of tasks: ,"cat":"…" */
	uint64_t types;		       /* of activities that are wanted: a bit for each */
	uint32_t flows;
	uint32_t last_caller; /* index of the track that the last arrow came from */
};

static inline struct xs_chrome *xs_chrome_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_CHROME];
}

/* enum xs_activity_type */
static inline bool xs_chrome_wants(const struct xs_chrome *chrome, uint32_t type)
{
	return chrome->types >> type & 1;
}

static inline struct xs_chrome_track *xs_chrome_track(const struct xs_track *track)
{
	return track->sink[XS_SINK_CHROME];
}

/*
 * Text that is kept, with a multiple of XS_CHUNK readable bytes: copies of a fixed size, no call.
 * Touches as much behind `out`.
 */
static inline char *xs_chrome_put_chunks(char *out, const char *text, uint32_t length)
{
	memcpy(out, text, XS_CHUNK);
	for (uint32_t at = XS_CHUNK; at < length; at += XS_CHUNK)
		memcpy(out + at, text + at, XS_CHUNK);
	return out + length;
}

/*
 * perfetto.c: whole events of JSON, with 64 bytes behind them that may be overwritten, become
 * packets, at most XS_OUTPUT_SLACK bytes, in the same place. Returns their end.
 */
char *xs_perfetto_put(struct xs_perfetto *perfetto, char *text, char *end);

/*
 * often.c: a call of the function is written. They are counted in traces that are large by then:
 * some 800,000 calls.
 */
#define XS_TRACE_LARGE ((uint64_t)256 << 20)
void xs_often_count(struct xs_chrome *chrome, uint32_t name);
static inline void xs_often_see(struct xs_chrome *chrome, uint32_t name)
{
	if (__builtin_expect(chrome->out.put > XS_TRACE_LARGE, 0))
		xs_often_count(chrome, name);
}
/* A line names the functions that make most of those calls, if few do. Frees it; NULL: none. */
void xs_often_end(struct xs_run *run, struct xs_often *often);

/* chrome_put.c: the rarer half of xs_chrome_begin() */
char *xs_chrome_begin_far(char *o, struct xs_begun *begun, const char *text, uint32_t length,
			  uint64_t start, uint64_t duration);

static inline void xs_chrome_finish(struct xs_chrome *chrome, char *end)
{
	if (__builtin_expect(chrome->perfetto != NULL, 0))
		end = xs_perfetto_put(chrome->perfetto, chrome->out.data + chrome->out.length, end);
	xs_output_put_end(&chrome->out, end);
}

/*
 * The beginning of a slice, up to its duration; `text`: XS_CHUNK bytes, of which `length` count, of
 * its track.
 */
static inline char *xs_chrome_begin(char *o, struct xs_begun *begun, const char *text,
				    uint32_t length, uint64_t start, uint64_t end)
{
	uint64_t low = start - begun->from, duration = end > start ? end - start : 0;

	if (__builtin_expect(low >= XS_JSON_TIME_LOW || duration > XS_JSON_TIME_DUR || !begun->from,
			     0))
		return xs_chrome_begin_far(o, begun, text, length, start, duration);
	memcpy(o, begun->text, sizeof(begun->text)); /* of a fixed size: no call */
	return xs_json_times(o + begun->length, (uint32_t)low, (uint32_t)duration);
}

/* The same on the thread's own track. */
static inline char *xs_chrome_put_slice(char *o, const struct xs_track *track, uint64_t start,
					uint64_t end)
{
	struct xs_chrome_track *own = xs_chrome_track(track);

	return xs_chrome_begin(o, &own->begun, own->prefix, own->prefix_length, start, end);
}

/* ---- chrome_file.c ---- */

/*
 * The trace of the process, new or (--recover) begun by the drain process that was killed:
 * *ret_offset bytes are there. The descriptor or -errno.
 */
int xs_chrome_open_file(struct xs_process *process, struct xs_chrome *chrome, uint64_t *ret_offset);

/* ---- chrome_ends.c ---- */

/* All that comes before the events: metadata, and the process's names. */
void xs_chrome_put_head(struct xs_process *process);
/* What ends the list of events, and all that is known of the process now. */
char *xs_chrome_put_tail(char *o, struct xs_process *process, enum xs_end end, int status,
			 uint32_t threads);

/* ---- chrome_put.c ---- */

/*
 * How events begin on a track that is no thread's, and on devices' tracks: few of these mostly have
 * many in a row.
 */
struct xs_own *xs_chrome_own(struct xs_chrome *chrome, uint64_t pid, uint64_t tid);
/* "RANK 3 ", or nothing. */
char *xs_chrome_put_rank(char *o, const struct xs_process *process);
/*
 * ,"key":… for each fact. lists: each value in brackets, as arguments of tasks are; else only where
 * a fact has several.
 */
char *xs_chrome_put_facts(char *o, const struct xs_fact *facts, uint32_t count, bool lists);
/* The beginning of a metadata event, up to the members of its args. name: a constant. */
char *xs_chrome_put_metadata(char *o, const char *name, uint64_t pid, uint64_t tid);
/* The name, as the last thing of an event, without its category. */
char *xs_chrome_put_bare_name(char *o, struct xs_process *process, uint32_t name);
/* The lane of `lanes` for [start, end]; a new one is named by `title`. 0: no memory. */
uint32_t xs_chrome_lane(struct xs_process *process, struct xs_lanes *lanes, const char *title,
			uint64_t start, uint64_t end, enum xs_fit fit);

/* ---- chrome_names.c ---- */

struct xs_json_name xs_json_name_find(struct xs_process *process, uint32_t id);
static inline struct xs_json_name xs_json_name_of(struct xs_process *process, uint32_t id)
{
	const struct xs_json_name *hot = &xs_chrome_of(process)->names.hot[id % XS_JSON_HOT];

	return __builtin_expect(hot->id == id, 1) ? *hot : xs_json_name_find(process, id);
}
void xs_json_names_free(struct xs_json_names *names);

/*
 * The category of a task of that name, as ,"cat":"…". In Kineto's format operations of PyTorch have
 * another one, and lose the domain before their names (text and length change).
 */
const char *xs_chrome_category(const struct xs_process *process, const char **text, size_t *length);
/* Is a task of that name wanted, by its type? */
bool xs_chrome_wants_task(const struct xs_process *process, uint32_t id);
char *xs_chrome_put_long_name(char *o, struct xs_process *process, uint32_t id);
/* The name, as the last thing of an event. */
static inline char *xs_chrome_put_name(char *o, struct xs_process *process, uint32_t id)
{
	const struct xs_json_name name = xs_json_name_of(process, id);

	if (__builtin_expect(!name.length, 0))
		return xs_chrome_put_long_name(o, process, name.id);
	return xs_chrome_put_chunks(o, name.text, name.length);
}

/* ---- chrome_tasks.c ---- */

void xs_chrome_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count);

/* ---- chrome_args.c ---- */

/*
 * ,"args":{…} with the arguments of a span or mark, the id that the application gave it before
 * them, and what is to be said of the span; nothing where there is nothing.
 */
char *xs_chrome_put_args(char *o, struct xs_process *process, const struct xs_id *id,
			 const struct xs_extra *extra, bool unfinished);
/*
 * The shortest of a few lengths that reads back as the same number. JSON knows neither infinity nor
 * NaN: these are text.
 */
char *xs_chrome_put_double(char *o, double value, bool single);
/* A text, or JSON: both have bytes for values. */
bool xs_chrome_is_text(const struct xs_arg *arg);
/* With quotes unless it is JSON. At most 6 bytes per byte, and 2. */
char *xs_chrome_put_text(char *o, const struct xs_arg *arg, const unsigned char *data);

/* ---- chrome_itt.c: what is not a plain slice of a thread ---- */

void xs_chrome_aside(struct xs_process *process, const struct xs_aside *aside);
void xs_chrome_span(struct xs_process *process, const struct xs_slice *span);
void xs_chrome_mark(struct xs_process *process, const struct xs_mark *mark);
void xs_chrome_counter(struct xs_process *process, const struct xs_counter_record *record,
		       uint64_t ns);
/* The work of a request, on a row of such work. */
void xs_chrome_request(struct xs_process *process, uint32_t name, uint64_t start, uint64_t end,
		       const char *args, size_t length);

/* The beginning of a slice on the track that is called `row` (a string id), up to its duration.
 * NULL: there is no such track, and no memory for one. */
char *xs_chrome_own_slice(struct xs_process *process, uint32_t row, uint64_t start, uint64_t end);

/* ---- chrome_own.c: what the program has described itself ---- */

void xs_chrome_activity(struct xs_track *track, const struct xs_activity *activity);
void xs_chrome_about(struct xs_process *process, uint32_t key, const char *text, size_t length,
		     bool json);
/* That as a member of otherData, and the bytes that it needs at most. */
char *xs_chrome_put_about(char *o, const struct xs_process *process);
/* As members beside traceEvents, but for those that are named. */
char *xs_chrome_put_about_keys(char *o, const struct xs_process *process,
			       const char *const *reserved);
bool xs_chrome_has_about(const struct xs_process *process, const char *key);
size_t xs_chrome_about_room(const struct xs_chrome *chrome);
void xs_chrome_about_free(struct xs_chrome *chrome);

/* ---- flows.c: arrows between tasks that are named by their ids ---- */

/* The slice of an id is written; it ends at `end`. */
void xs_flows_place(struct xs_process *process, const struct xs_id *id, struct xs_place place,
		    uint64_t end);
/*
 * A marker has an id, too. Arrows end on slices: its own end at its time on the slice that it lies
 * in, which is written later, wherever that is shown then.
 */
void xs_flows_mark(struct xs_process *process, const struct xs_id *id, const struct xs_id *within,
		   uint64_t ns);
/* An arrow between two ids, as soon as both are written. name: a constant. */
void xs_flows_add(struct xs_process *process, const char *name, const struct xs_id *from,
		  const struct xs_id *to);
/* No slice comes any more: process->open_relations of the arrows have not both of theirs. */
void xs_flows_end(struct xs_process *process);
void xs_flows_fini(struct xs_process *process);

/* ---- chrome_mpi.c ---- */

void xs_chrome_mpi_call(struct xs_track *track, const struct xs_mpi_call *call);
void xs_chrome_mpi_work(struct xs_process *process, const struct xs_mpi_work *work);
void xs_chrome_communicator(struct xs_track *track, const struct xs_mpi_member_record *record);

/* A number for a track that is no thread's, from 0 on. */
uint32_t xs_chrome_own_number(struct xs_process *process);

/* ---- chrome_device.c ---- */

void xs_chrome_work(struct xs_process *process, const struct xs_work *work);
/* --recover: tracks and devices go on behind those that the file has, arrows, too. */
void xs_chrome_take_up(struct xs_chrome *chrome, const struct xs_kept_numbers *kept);
/* The process that the work's device is shown as. */
uint64_t xs_chrome_device_pid(struct xs_process *process, const struct xs_work *work);

/* ---- chrome_metrics.c ---- */

void xs_chrome_metrics(struct xs_process *process, const struct xs_metrics *metrics);
void xs_chrome_sample(struct xs_process *process, const struct xs_metrics *sample);
/* What the program has named after its last work there. */
void xs_chrome_late_names(struct xs_process *process);

/* ---- arrows.c: from calls to device work; waits.c: back ---- */

/* As soon as the call's record is read. */
void xs_arrow_put(struct xs_process *process, const struct xs_arrow *arrow);
/* To the slice of the work, on that track, from the calls that enqueued and submitted it. */
void xs_arrow_add(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		  uint64_t tid);
/* The calls of the track that ended by then are written: so are the arrows that waited for them. */
void xs_arrows_flush(struct xs_track *track, uint64_t ns);
/* From the slice to the call that waited for it: one that is known, or comes later. */
void xs_waits_command(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		      uint64_t tid);
void xs_waits_read(struct xs_process *process, const struct xs_wait *wait);
/* All threads have been read up to one moment. */
void xs_waits_looked(struct xs_process *process);
/* Nothing comes any more: what is still held back gets its arrow. */
void xs_waits_end(struct xs_process *process);
void xs_waits_fini(struct xs_process *process);
/* From work on one track to work on another; number: of such arrows of that API. */
void xs_arrow_between(struct xs_process *process, uint8_t source, uint32_t number,
		      const struct xs_arrow_end *from, const struct xs_arrow_end *to);

/* ---- orders.c: from work to work ---- */

void xs_orders_work(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		    uint64_t tid);
void xs_orders_read(struct xs_process *process, const struct xs_order *order);
void xs_orders_fini(struct xs_process *process);

#endif

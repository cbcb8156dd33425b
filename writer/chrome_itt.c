/*
 * The Chrome JSON of what is not a plain slice of a thread: arguments, instants, counters, rows of
 * their own, arrows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"

#define ARGS_MAX   32768u	/* JSON text of one slice's arguments */
#define ARGS_BYTES (256u << 20) /* of all slices that are open in a process */
#define ARGS_BLOCK 64u		/* what its room is a multiple of */
#define NUMBER_MAX 40u		/* more than put_value() writes */
#define ROWS_MAX   1024u
#define OTHER_ROWS UINT32_MAX /* in place of a name: what is beyond these shares one */

/* ---- arguments ---- */

/* In bytes; 0: no such type. */
static inline size_t value_size(uint8_t type)
{
	static const uint8_t sizes[] = {
		[XS_VALUE_U64] = 8,	[XS_VALUE_S64] = 8, [XS_VALUE_DOUBLE] = 8,
		[XS_VALUE_POINTER] = 8, [XS_VALUE_U32] = 4, [XS_VALUE_S32] = 4,
		[XS_VALUE_FLOAT] = 4,	[XS_VALUE_U16] = 2, [XS_VALUE_S16] = 2,
		[XS_VALUE_TEXT] = 1,
	};

	return type < sizeof(sizes) ? sizes[type] : 0;
}

/*
 * The shortest of a few lengths that reads back as the same number. JSON knows neither infinity nor
 * NaN: these are text.
 */
static char *put_double(char *o, double value, bool single)
{
	char text[40];

	if (!isfinite(value))
		return put(o, isnan(value) ? "\"NaN\""
			      : value > 0  ? "\"Infinity\""
					   : "\"-Infinity\"");
	for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	return put(o, text);
}

/* Each case copies a size that the compiler knows: no call. */
#define LOAD(type) (memcpy(&value.type, data, sizeof(value.type)), value.type)

static inline char *put_value(char *o, uint8_t type, const unsigned char *data)
{
	union {
		uint64_t u64;
		int64_t s64;
		uint32_t u32;
		int32_t s32;
		uint16_t u16;
		int16_t s16;
		float f;
		double d;
	} value;

	switch (type) {
	case XS_VALUE_U64:
		return xs_json_uint(o, LOAD(u64));
	case XS_VALUE_S64:
		return xs_json_signed(o, LOAD(s64));
	case XS_VALUE_U32:
		return xs_json_uint(o, LOAD(u32));
	case XS_VALUE_S32:
		return xs_json_signed(o, LOAD(s32));
	case XS_VALUE_U16:
		return xs_json_uint(o, LOAD(u16));
	case XS_VALUE_S16:
		return xs_json_signed(o, LOAD(s16));
	case XS_VALUE_FLOAT:
		return put_double(o, (double)LOAD(f), true);
	case XS_VALUE_DOUBLE:
		return put_double(o, LOAD(d), false);
	default:
		return o + sprintf(o, "\"0x%llx\"", (unsigned long long)LOAD(u64));
	}
}

static bool grow_members(struct xs_process *process, struct xs_extra *extra)
{
	uint32_t room = extra->member_room ? 2 * extra->member_room : 4;
	struct xs_member *grown;

	if (extra->member_count < extra->member_room)
		return true;
	grown = realloc(extra->members, room * sizeof(*grown));
	if (!grown)
		return false;
	process->args_bytes += (room - extra->member_room) * sizeof(*grown);
	extra->members = grown;
	extra->member_room = room;
	return true;
}

/* Room for `more` bytes and one member more. */
static bool grow(struct xs_process *process, struct xs_extra *extra, size_t more)
{
	uint32_t room = extra->room ? extra->room : 4 * ARGS_BLOCK;
	char *grown;

	while (room < extra->length + more)
		room *= 2;
	if (room != extra->room) {
		grown = process->args_bytes < ARGS_BYTES ? realloc(extra->args, room) : NULL;
		if (!grown)
			return false;
		process->args_bytes += room - extra->room;
		extra->args = grown;
		extra->room = room;
	}
	return grow_members(process, extra);
}

/* key: "key":[ as in the text. Its number; `member_count`: there is none. */
static uint32_t find_member(const struct xs_extra *extra, const char *key, size_t length)
{
	uint32_t i;

	for (i = 0; i < extra->member_count; i++)
		if (extra->members[i].key_length == length &&
		    !memcmp(extra->args + extra->members[i].at, key, length))
			break;
	return i;
}

const char *xs_chrome_values(const struct xs_extra *extra, const char *key, size_t *ret_length)
{
	uint32_t i = find_member(extra, key, strlen(key));
	const struct xs_member *member = &extra->members[i];

	if (i == extra->member_count)
		return NULL;
	*ret_length = member->end - member->at - member->key_length;
	return extra->args + member->at + member->key_length;
}

/* The values alone, with commas between. At most 6 bytes per byte of text, 30 per number. */
static char *put_values(char *o, const struct xs_arg *arg, const unsigned char *data)
{
	size_t size = value_size(arg->type);

	if (arg->type == XS_VALUE_TEXT)
		return put(xs_json_escape(put(o, "\""), (const char *)data, arg->count), "\"");
	for (uint32_t i = 0; i < arg->count; i++) {
		if (i)
			*o++ = ',';
		o = put_value(o, arg->type, data + i * size);
	}
	return o;
}

/* At most 6 * 256 + 8 bytes. */
static char *put_key(char *o, const struct xs_process *process, uint32_t id)
{
	size_t length;
	const char *text = xs_text_of(process->run, id, &length);

	return put(xs_json_escape(put(o, "\""), text, length < 256 ? length : 256), "\":[");
}

/* So that the next one need not be escaped; not if it is too long to be remembered. */
static void remember_key(struct xs_process *process, uint32_t id, const char *json, size_t length)
{
	struct xs_key *key = &process->keys[id % XS_KEYS];

	if (!id || key->id == id || length > sizeof(key->json))
		return;
	memcpy(key->json, json, length);
	key->length = (uint32_t)length;
	key->id = id;
}

/* Behind all others. There is room. */
static void add_member(struct xs_extra *extra, const char *key, uint32_t key_length,
		       const char *values, uint32_t length)
{
	char *o = extra->args + extra->length;
	struct xs_member *member = &extra->members[extra->member_count++];

	if (extra->length)
		*o++ = ',';
	member->at = (uint32_t)(o - extra->args);
	member->key_length = key_length;
	member->end = member->at + key_length + length;
	memcpy(o, key, key_length);
	memcpy(o + key_length, values, length);
	extra->args[member->end] = ']';
	extra->length = member->end + 1;
}

/* More values of a key that was given before. There is room. */
static void add_values(struct xs_extra *extra, uint32_t i, const char *values, uint32_t length)
{
	struct xs_member *member = &extra->members[i];
	bool comma = length && member->end > member->at + member->key_length;
	char *o = extra->args + member->end;

	memmove(o + comma + length, o, extra->length - member->end);
	if (comma)
		*o++ = ',';
	memcpy(o, values, length);
	member->end += comma + length;
	extra->length += comma + length;
	for (i++; i < extra->member_count; i++) {
		extra->members[i].at += comma + length;
		extra->members[i].end += comma + length;
	}
}

static void add(struct xs_process *process, struct xs_extra *extra, const struct xs_arg *arg,
		const unsigned char *data)
{
	/* the longest per byte: text with six for one, and floats with 16 for four */
	static char values[XS_RECORD_MAX * 8];
	char key[6 * 256 + 8];
	size_t length, values_length;
	uint32_t i;

	values_length = (size_t)(put_values(values, arg, data) - values);
	length = (size_t)(put_key(key, process, arg->key) - key);
	remember_key(process, arg->key, key, length);
	if (extra->length + length + values_length + 2 > ARGS_MAX) {
		extra->cut = true;
		return;
	}
	if (!grow(process, extra, length + values_length + 2)) {
		extra->cut = true;
		return;
	}
	extra->cut |= arg->cut;
	i = find_member(extra, key, length);
	if (i == extra->member_count)
		add_member(extra, key, (uint32_t)length, values, (uint32_t)values_length);
	else
		add_values(extra, i, values, (uint32_t)values_length);
}

void xs_chrome_id(struct xs_process *process, struct xs_extra *extra, const struct xs_id *id)
{
	static const char key[] = "\"id\":[";
	char value[64];
	int length = snprintf(value, sizeof(value), "\"0x%llx:0x%llx:0x%llx\"",
			      (unsigned long long)id->word[0], (unsigned long long)id->word[1],
			      (unsigned long long)id->word[2]);

	if (grow(process, extra, sizeof(key) + (size_t)length + 2))
		add_member(extra, key, sizeof(key) - 1, value, (uint32_t)length);
}

/* What most tasks with arguments have: one number, of a key that is known. */
static inline bool add_only_number(struct xs_process *process, struct xs_extra *extra,
				   const unsigned char *args, uint32_t length)
{
	const struct xs_key *key;
	struct xs_arg arg;
	char *o;

	if (length != sizeof(arg) + 8 || extra->length) /* values are padded to that */
		return false;
	memcpy(&arg, args, sizeof(arg));
	key = &process->keys[arg.key % XS_KEYS];
	if (!arg.key || key->id != arg.key || arg.count != 1 || arg.cut ||
	    arg.type == XS_VALUE_TEXT || !value_size(arg.type) ||
	    extra->room < sizeof(key->json) + NUMBER_MAX)
		return false;
	memcpy(extra->args, key->json, sizeof(key->json)); /* of a fixed size: no call */
	o = put_value(extra->args + key->length, arg.type, args + sizeof(arg));
	extra->members[0] = (struct xs_member){ 0, key->length, (uint32_t)(o - extra->args) };
	extra->member_count = 1;
	*o++ = ']';
	extra->length = (uint32_t)(o - extra->args);
	return true;
}

static __attribute__((noinline)) void add_all(struct xs_process *process, struct xs_extra *extra,
					      const unsigned char *args, uint32_t length)
{
	uint32_t at = 0;

	while (at + sizeof(struct xs_arg) <= length) {
		struct xs_arg arg;
		size_t bytes, size;

		memcpy(&arg, args + at, sizeof(arg));
		size = value_size(arg.type);
		bytes = arg.count * size;
		at += (uint32_t)sizeof(arg);
		if (bytes > length - at || !size) /* hostile, or of a newer collector */
			return;
		add(process, extra, &arg, args + at);
		at += (uint32_t)((bytes + 7) & ~(size_t)7);
	}
}

void xs_chrome_args(struct xs_process *process, struct xs_extra *extra, const unsigned char *args,
		    uint32_t length)
{
	if (!add_only_number(process, extra, args, length))
		add_all(process, extra, args, length);
}

static __attribute__((noinline)) char *put_flags(char *o, const struct xs_extra *extra,
						 bool unfinished)
{
	if (extra && extra->cut)
		o = put(o, "\"cut\":true,");
	if (extra && extra->cancelled)
		o = put(o, "\"cancelled\":true,");
	if (extra && extra->unplaced)
		o = put(o, "\"clock\":\"not placed\",");
	if (unfinished)
		o = put(o, "\"unfinished\":true,");
	return o;
}

static inline char *put_args(char *o, const struct xs_extra *extra, bool unfinished)
{
	bool flags = unfinished || (extra && (extra->cut || extra->cancelled || extra->unplaced));

	if (!flags && !(extra && extra->length))
		return o;
	o = put(o, ",\"args\":{");
	if (extra && extra->length) {
		/*
		 * in blocks of a fixed size, as far as the text's room goes: mostly one, and no
		 * call
		 */
		for (uint32_t at = 0; at < extra->length; at += ARGS_BLOCK)
			memcpy(o + at, extra->args + at, ARGS_BLOCK);
		o += extra->length;
		*o++ = ',';
	}
	if (flags)
		o = put_flags(o, extra, unfinished);
	o[-1] = '}'; /* the last comma */
	return o;
}

/* ---- slices ---- */

static struct xs_place end_slice(struct xs_process *process, char *o, uint32_t tid,
				 const struct xs_open *task, bool unfinished)
{
	o = put_args(o, task->extra, unfinished);
	finish(process->chrome, xs_chrome_put_name(o, process, &task->name));
	return (struct xs_place){ tid, task->start };
}

/* The beginning of a slice on a track that is no thread's, up to its duration. */
static char *put_own_slice(struct xs_process *process, uint32_t tid, uint64_t start, uint64_t end)
{
	struct xs_chrome *chrome = process->chrome;
	const struct xs_own *own = xs_chrome_own(chrome, (uint32_t)process->pid, tid);
	char *o = put_chunks(xs_output_put(&chrome->out), own->text, own->length);

	o = put(xs_json_time(o, start, &chrome->time), ",\"dur\":");
	return xs_json_micros(o, end > start ? end - start : 0);
}

static struct xs_place slice(struct xs_process *process, uint32_t tid, const struct xs_open *task,
			     uint64_t end, bool unfinished)
{
	if (!tid)
		return (struct xs_place){ 0, 0 };
	return end_slice(process, put_own_slice(process, tid, task->start, end), tid, task,
			 unfinished);
}

static struct xs_row *row_of(struct xs_process *process, uint32_t name)
{
	struct xs_chrome *chrome = process->chrome;
	struct xs_row *grown;

	if (chrome->last_row < chrome->row_count && chrome->rows[chrome->last_row].name == name)
		return &chrome->rows[chrome->last_row];
	for (uint32_t i = 0; i < chrome->row_count; i++)
		if (chrome->rows[i].name == name)
			return &chrome->rows[chrome->last_row = i];
	if (chrome->row_count >= ROWS_MAX && name != OTHER_ROWS) {
		process->omitted[XS_OMIT_TRACKS]++;
		return row_of(process, OTHER_ROWS);
	}
	grown = realloc(chrome->rows, (chrome->row_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	chrome->rows = grown;
	grown += chrome->row_count++;
	memset(grown, 0, sizeof(*grown));
	grown->name = name;
	return grown;
}

struct xs_place xs_chrome_on_row(struct xs_process *process, uint32_t row,
				 const struct xs_open *task, uint64_t end, bool unfinished)
{
	static const char *const titles[XS_SPAN_COUNT] = {
		[XS_SPAN_FRAME] = "Frames",
		[XS_SPAN_REGION] = "Regions",
		[XS_SPAN_OVERLAPPED] = "Overlapped tasks",
		[XS_SPAN_WAIT] = "Waits",
		[XS_SPAN_REQUEST] = "MPI requests",
	};
	struct xs_row *found = row_of(process, row);
	char title[1025];
	const char *text;
	size_t length;

	if (!found)
		return (struct xs_place){ 0, 0 };
	row = found->name;
	text = row < XS_SPAN_COUNT ? titles[row] : row == OTHER_ROWS ? "(more tracks)" : NULL;
	if (!text) {
		text = xs_text_of(process->run, row, &length);
		if (length >= sizeof(title))
			length = sizeof(title) - 1;
		memcpy(title, text, length);
		title[length] = '\0';
		text = title;
	}
	return slice(process,
		     xs_chrome_lane(process, &found->lanes, text, task->start, end,
				    row == XS_SPAN_OVERLAPPED ? XS_FIT_APART : XS_FIT_NESTING),
		     task, end, unfinished);
}

void xs_chrome_request(struct xs_process *process, uint32_t name, uint64_t start, uint64_t end,
		       const char *args, size_t length)
{
	struct xs_row *row = row_of(process, XS_SPAN_REQUEST);
	uint32_t tid = row ? xs_chrome_lane(process, &row->lanes, "MPI requests", start, end,
					    XS_FIT_FOLDED)
			   : 0;
	char *o;

	if (!tid)
		return;
	o = put(put_own_slice(process, tid, start, end), ",\"args\":{");
	memcpy(o, args, length);
	o = put(o + length, "},\"cat\":\"mpi_request\"");
	finish(process->chrome, xs_chrome_put_bare_name(o, process, xs_name_of(process, name)));
}

struct xs_place xs_chrome_on_thread(struct xs_track *track, const struct xs_open *task,
				    uint64_t end, bool displaced, bool unfinished)
{
	struct xs_process *process = track->process;
	char title[64];

	if (task->extra && task->extra->unplaced) {
		(void)snprintf(title, sizeof(title), "%u (clock not placed)", track->tid);
		return slice(process,
			     xs_chrome_lane(process, &track->unplaced, title, task->start, end,
					    XS_FIT_NESTING),
			     task, end, unfinished);
	}
	if (!displaced)
		return end_slice(process,
				 put_slice(xs_output_put(&process->chrome->out), track, task->start,
					   end),
				 track->tid, task, unfinished);
	(void)snprintf(title, sizeof(title), "%u (overlapping)", track->tid);
	return slice(process,
		     xs_chrome_lane(process, &track->crossing, title, task->start, end,
				    XS_FIT_APART),
		     task, end, unfinished);
}

/* ---- instants, counters, arrows ---- */

void xs_chrome_instant(struct xs_process *process, uint32_t tid, uint32_t name, bool metadata,
		       uint64_t ns, uint8_t scope, const struct xs_extra *extra)
{
	static const char *const scopes[] = { "t", "p", "g" };
	char *o = put_count(xs_output_put(&process->chrome->out), "{\"ph\":\"i\",\"tid\":", tid);
	size_t length;
	const char *text;

	o = put(put_count(o, ",\"pid\":", (uint32_t)process->pid), ",\"ts\":");
	o = xs_json_micros(o, ns);
	o = put(put(put(o, ",\"s\":\""), scopes[scope <= XS_SCOPE_GLOBAL ? scope : 0]), "\"");
	o = put_args(o, extra, false);
	if (!metadata) {
		finish(process->chrome, xs_chrome_put_name(o, process, xs_name_of(process, name)));
		return;
	}
	text = xs_text_of(process->run, name, &length);
	o = xs_json_escape(put(o, ",\"cat\":\"cpu_op\",\"name\":\""), text,
			   length < 8192 ? length : 8192);
	finish(process->chrome, put(o, "::metadata\"},\n"));
}

void xs_chrome_counter(struct xs_track *track, const struct xs_counter_record *record, uint64_t ns)
{
	struct xs_process *process = track->process;
	struct xs_chrome *chrome = process->chrome;
	char *o = xs_output_put(&chrome->out);

	if (record->event.flags == XS_VALUE_DOUBLE && !isfinite(record->value.d))
		return; /* no viewer can show it, and JSON cannot say it */
	if (!chrome->counter_length)
		chrome->counter_length =
			(uint32_t)(put(put_count(chrome->counter,
						 "{\"ph\":\"C\",\"pid\":", (uint32_t)process->pid),
				       ",\"ts\":") -
				   chrome->counter);
	memcpy(o, chrome->counter, sizeof(chrome->counter));
	o = put(xs_json_time(o + chrome->counter_length, ns, &chrome->time),
		",\"args\":{\"value\":");
	if (record->event.flags == XS_VALUE_DOUBLE)
		o = put_double(o, record->value.d, false);
	else if (record->event.flags == XS_VALUE_S64)
		o = xs_json_signed(o, record->value.s);
	else
		o = xs_json_uint(o, record->value.u);
	/* a counter is its process's, of no thread and no category: a fifth less to write */
	finish(chrome, xs_chrome_put_bare_name(put(o, "}"), process,
					       xs_name_of(process, record->event.name)));
}

static char *put_arrow(char *o, const struct xs_process *process, const char *phase,
		       const char *name, uint64_t id, struct xs_place place)
{
	o = put(put(put(o, "{\"ph\":\""), phase), "\",\"tid\":");
	o = put_count(xs_json_uint(o, place.tid), ",\"pid\":", (uint32_t)process->pid);
	o = xs_json_time(put(o, ",\"ts\":"), place.start, &process->chrome->time);
	o = put(put_count(o, ",\"id\":", id), ",\"cat\":\"relation\",\"name\":\"");
	return put(put(o, name), "\"},\n");
}

void xs_chrome_flow(struct xs_process *process, const char *name, struct xs_place from,
		    struct xs_place to)
{
	/* beside those of device work, and exact in a double */
	uint64_t id = 1ull << 52 | (uint64_t)(uint32_t)process->pid << 30 |
		      (process->chrome->flows++ & 0x3fffffff);
	char *o = xs_output_put(&process->chrome->out);

	/* an arrow cannot go back in time: then it is drawn the other way */
	if (from.start > to.start) {
		struct xs_place swap = from;

		from = to;
		to = swap;
	}
	o = put_arrow(o, process, "s", name, id, from);
	finish(process->chrome, put_arrow(o, process, "f\",\"bp\":\"e", name, id, to));
}

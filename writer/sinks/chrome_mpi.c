/*
 * The Chrome JSON of MPI: a slice for each call and for the work of each request, and who the
 * process is in a communicator.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "chrome.h"
#include "mpi_record.h"

#define SET_ROOM   4096 /* bytes of a set of ranks; what does not fit is left out */
#define WORDS_ROOM (XS_MPI_WORDS * 64 + SET_ROOM) /* bytes that may be touched */

#define TEXTS	     64u   /* a power of two */
#define LABELS	     1024u /* a power of two */
#define LABEL	     128u
#define LONGEST_NAME 256u /* bytes of what the application calls a communicator */

/* Ranks of a set of `words` words as text: "0-3,7". */
static char *put_set(char *o, const uint64_t *word, uint32_t words)
{
	const char *end = o + SET_ROOM - 32, *begin = o;
	uint32_t count = words * 64;

	for (uint32_t i = 0; i < count && o < end; i++) {
		uint32_t first = i;

		if (!(word[i / 64] >> i % 64 & 1))
			continue;
		while (i + 1 < count && word[(i + 1) / 64] >> (i + 1) % 64 & 1)
			i++;
		if (o > begin)
			*o++ = ',';
		o = xs_json_uint(o, first);
		if (i > first)
			o = xs_json_uint(xs_put(o, "-"), i);
	}
	return o;
}

/*
 * XS_MPI_FROM. A set of many ranks is a string that others can change while it is copied: any bits
 * are ranks.
 */
static char *put_from(const struct xs_run *run, char *o, uint64_t value)
{
	uint64_t set[XS_STRING_MAX / 8];
	const struct xs_string *text;
	uint32_t length;

	if (value == XS_MPI_FROM_ALL)
		return xs_put(o, ",\"from\":\"all\"");
	if (!(value >> XS_MPI_FROM_BITS))
		return xs_put(put_set(xs_put(o, ",\"from\":\""), &value, 1), "\"");
	if ((value & ~(uint64_t)UINT32_MAX) != XS_MPI_FROM_SET)
		return o;
	text = xs_string(run->strings, run->strings_size, (uint32_t)value, &length);
	if (!text || text->scope != XS_MPI_SET_SCOPE || length > sizeof(set))
		return o;
	memcpy(set, text->text, length);
	return xs_put(put_set(xs_put(o, ",\"from\":\""), set, length / 8), "\"");
}

/* Words that are the same in many calls; the number of a collective is not. */
#define KEPT_WORDS 6u
#define KEPT                                                                               \
	(1u << XS_MPI_COMM | 1u << XS_MPI_PEER | 1u << XS_MPI_COUNT | 1u << XS_MPI_BYTES | \
	 1u << XS_MPI_RECV_PEER | 1u << XS_MPI_RECV_BYTES)

struct xs_mpi_texts {
	struct text {
		uint32_t words, length; /* words: 0, there is none */
		uint64_t word[KEPT_WORDS];
		char text[6 * XS_CHUNK]; /* the six members have 204 bytes at most, and a label */
	} of[TEXTS];
	/*
	 * names of communicators for human readers: each hashes to one place, and the latest one
	 * has it
	 */
	struct label {
		uint64_t id;
		char json[LABEL]; /* escaped */
	} labels[LABELS];
};

/* An identity as text: the same on all ranks. 0: not known. */
static inline __attribute__((always_inline)) char *put_identity(char *o, const char *key,
								uint64_t id)
{
	static const char digits[] = "0123456789abcdef";

	if (!id)
		return o;
	o = xs_put(o, key);
	if (id == XS_MPI_WORLD)
		return xs_put(o, "\"world\"");
	if (id == XS_MPI_SELF)
		return xs_put(o, "\"self\"");
	*o++ = '"';
	for (int shift = 60; shift >= 0; shift -= 4)
		*o++ = digits[id >> shift & 15];
	*o++ = '"';
	return o;
}

static inline __attribute__((always_inline)) char *put_half(char *o, const char *key, uint32_t half)
{
	return (int32_t)half == XS_MPI_NOTHING ? o : xs_json_signed(xs_put(o, key), (int32_t)half);
}

static inline __attribute__((always_inline)) char *put_amount(char *o, const char *key,
							      uint64_t value)
{
	return (int64_t)value == INT64_MIN ? o : xs_json_signed(xs_put(o, key), (int64_t)value);
}

static struct label *label_of(struct xs_mpi_texts *texts, uint64_t id)
{
	return &texts->labels[id * 0x9e3779b97f4a7c15ull >> 54];
}

static char *put_label(char *o, const struct xs_process *process, uint64_t id)
{
	struct xs_mpi_texts *texts = xs_chrome_of(process)->mpi;
	const struct label *label = texts ? label_of(texts, id) : NULL;

	return label && id && label->id == id
		       ? xs_put(xs_put(xs_put(o, ",\"comm_name\":\""), label->json), "\"")
		       : o;
}

static char *put_word(const struct xs_process *process, char *o, enum xs_mpi_word word,
		      uint64_t value)
{
	uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

	switch (word) {
	case XS_MPI_COMM:
		return put_label(put_identity(o, ",\"comm\":", value), process, value);
	case XS_MPI_PEER:
		return put_half(put_half(o, ",\"peer\":", low), ",\"tag\":", high);
	case XS_MPI_COUNT:
		return put_amount(o, ",\"count\":", value);
	case XS_MPI_BYTES:
		return put_amount(o, ",\"bytes\":", value);
	case XS_MPI_ROOT:
		return put_half(put_half(o, ",\"root\":", low), ",\"seq\":", high);
	case XS_MPI_RECV_PEER:
		return put_half(put_half(o, ",\"recv_peer\":", low), ",\"recv_tag\":", high);
	case XS_MPI_RECV_BYTES:
		return put_amount(o, ",\"recv_bytes\":", value);
	case XS_MPI_NEW_COMM:
		return put_identity(o, ",\"new_comm\":", value);
	case XS_MPI_WIN:
		return put_identity(o, ",\"win\":", value);
	case XS_MPI_FILE:
		return put_identity(o, ",\"file\":", value);
	case XS_MPI_OFFSET:
		return xs_json_signed(xs_put(o, ",\"offset\":"), (int64_t)value);
	case XS_MPI_FROM:
		return put_from(process->run, o, value);
	default:
		return o;
	}
}

static char *put_words(const struct xs_process *process, char *o, uint32_t words,
		       const uint64_t *value)
{
	for (; words; words &= words - 1) {
		uint32_t word = (uint32_t)__builtin_ctz(words);

		o = put_word(process, o, word, value[word]);
	}
	return o;
}

/* NULL: no memory. */
static struct xs_mpi_texts *texts_of(const struct xs_process *process)
{
	struct xs_chrome *chrome = xs_chrome_of(process);

	if (!chrome->mpi)
		chrome->mpi = calloc(1, sizeof(*chrome->mpi));
	return chrome->mpi;
}

/*
 * What the words say, as members with a comma before each, but for a request. Programs make few
 * calls that differ, and what those before said is remembered.
 */
static char *put_call(const struct xs_process *process, char *o, uint32_t words,
		      const uint64_t *value)
{
	/* words that are not there are 0 */
	const uint64_t kept[KEPT_WORDS] = { value[XS_MPI_COMM],	     value[XS_MPI_PEER],
					    value[XS_MPI_COUNT],     value[XS_MPI_BYTES],
					    value[XS_MPI_RECV_PEER], value[XS_MPI_RECV_BYTES] };
	struct xs_mpi_texts *texts = texts_of(process);
	uint64_t hash = words & KEPT, differs;
	struct text *text;

	if (!hash || !texts)
		return put_words(process, o, words, value);
	for (uint32_t i = 0; i < KEPT_WORDS; i++)
		hash = (hash ^ kept[i]) * 0x9e3779b97f4a7c15ull;
	text = &texts->of[hash >> 58];
	differs = text->words ^ (words & KEPT);
	for (uint32_t i = 0; i < KEPT_WORDS; i++)
		differs |= text->word[i] ^ kept[i];
	if (__builtin_expect(differs != 0, 0)) {
		text->words = words & KEPT;
		memcpy(text->word, kept, sizeof(text->word));
		text->length =
			(uint32_t)(put_words(process, text->text, text->words, value) - text->text);
	}
	return put_words(process, xs_chrome_put_chunks(o, text->text, text->length), words & ~KEPT,
			 value);
}

/* All that one call started, in their order. */
static char *put_started(char *o, const struct xs_mpi_call *call)
{
	o = xs_put(o, ",\"requests\":[");
	for (uint32_t i = 0; i < call->started_count; i++) {
		if (i)
			*o++ = ',';
		o = xs_json_uint(o, call->started[i]);
	}
	*o++ = ']';
	return o;
}

/* The class of an error; nothing if it has none of these. */
static char *put_error(char *o, uint32_t error)
{
	static const char *const names[] = {
		[XS_MPI_ERR_BUFFER] = "BUFFER",	    [XS_MPI_ERR_COUNT] = "COUNT",
		[XS_MPI_ERR_TYPE] = "TYPE",	    [XS_MPI_ERR_TAG] = "TAG",
		[XS_MPI_ERR_COMM] = "COMM",	    [XS_MPI_ERR_RANK] = "RANK",
		[XS_MPI_ERR_REQUEST] = "REQUEST",   [XS_MPI_ERR_ROOT] = "ROOT",
		[XS_MPI_ERR_GROUP] = "GROUP",	    [XS_MPI_ERR_OP] = "OP",
		[XS_MPI_ERR_TOPOLOGY] = "TOPOLOGY", [XS_MPI_ERR_DIMS] = "DIMS",
		[XS_MPI_ERR_ARG] = "ARG",	    [XS_MPI_ERR_UNKNOWN] = "UNKNOWN",
		[XS_MPI_ERR_TRUNCATE] = "TRUNCATE", [XS_MPI_ERR_OTHER] = "OTHER",
		[XS_MPI_ERR_INTERN] = "INTERN",	    [XS_MPI_ERR_INFO] = "INFO",
	};
	const char *name = error < sizeof(names) / sizeof(names[0]) ? names[error] : NULL;

	return name ? xs_put(xs_put(xs_put(o, ",\"error\":\"MPI_ERR_"), name), "\"") : o;
}

/* What Kineto tells of collectives, as far as MPI's calls have it. `name`: MPI_Allreduce, … */
static char *put_collective(char *o, const struct xs_process *process,
			    const struct xs_mpi_call *call)
{
	uint32_t sequence = (uint32_t)(call->word[XS_MPI_ROOT] >> 32);
	int32_t size = atomic_load_explicit(&process->file->world_size, memory_order_relaxed),
		rank = xs_process_rank(process);
	uint64_t comm = call->words & 1u << XS_MPI_COMM ? call->word[XS_MPI_COMM] : 0;
	size_t length;
	const char *name = xs_text_of(process->run, call->name, &length);

	if (!(call->words & 1u << XS_MPI_ROOT) || (int32_t)sequence == XS_MPI_NOTHING ||
	    length < 5 || length > 64 || memcmp(name, "MPI_", 4) != 0)
		return o;
	if (length > 6 && memcmp(name + length - 2, "_c", 2) == 0)
		length -= 2; /* of large counts */
	o = xs_put(o, ",\"Collective name\":\"");
	for (size_t i = 4; i < length; i++)
		o = xs_json_escape(o, &(char){ (char)tolower((unsigned char)name[i]) }, 1);
	o = xs_put_count(xs_put(o, "\""), ",\"Seq\":", sequence);
	if (call->words & 1u << XS_MPI_COUNT)
		o = put_amount(o, ",\"In msg nelems\":", call->word[XS_MPI_COUNT]);
	o = put_identity(o, ",\"Process Group Name\":", comm);
	if (comm == XS_MPI_WORLD && size > 0)
		o = xs_put_count(o, ",\"Group size\":", (uint64_t)size);
	if (comm == XS_MPI_WORLD && rank >= 0)
		o = xs_put_count(o, ",\"Rank\":", (uint64_t)rank);
	return o;
}

void xs_chrome_mpi_call(struct xs_track *track, const struct xs_mpi_call *call)
{
	struct xs_chrome *chrome = xs_chrome_of(track->process);
	char *begin = xs_chrome_put_slice(xs_output_put(&chrome->out), track, call->start,
					  call->end),
	     *args = xs_put(begin, ",\"args\":"), *o = args;

	o = put_call(track->process, o, call->words, call->word);
	if (call->request)
		o = xs_json_uint(xs_put(o, ",\"request\":"), call->request);
	else if (call->started_count)
		o = put_started(o, call);
	if (call->result)
		o = put_error(xs_json_signed(xs_put(o, ",\"result\":"), call->result), call->error);
	if (chrome->kineto)
		o = put_collective(o, track->process, call);
	if (call->unfinished)
		o = xs_put(o, ",\"unfinished\":true");
	if (o > args) {
		*args = '{'; /* in place of the first comma */
		*o++ = '}';
	} else {
		o = begin;
	}
	xs_chrome_finish(chrome, xs_chrome_put_name(o, track->process, call->name));
	xs_often_see(chrome, call->name);
}

void xs_chrome_mpi_work(struct xs_process *process, const struct xs_mpi_work *work)
{
	char args[WORDS_ROOM + 128], *o = args;

	o = put_call(process, o, work->words, work->word);
	o = xs_json_uint(xs_put(o, ",\"request\":"), work->number);
	o = xs_json_uint(xs_put(o, ",\"started_by\":"), work->started_by);
	if (work->ended_by)
		o = xs_json_uint(xs_put(o, ",\"ended_by\":"), work->ended_by);
	if (work->cancelled)
		o = xs_put(o, ",\"cancelled\":true");
	if (work->unfinished)
		o = xs_put(o, ",\"unfinished\":true");
	xs_chrome_request(process, work->name, work->start, work->end, args + 1,
			  (size_t)(o - args) - 1);
}

/* "4 of world", "2 and 3 of world": what a communicator is called that has no name of its own. */
static void make_label(const struct xs_process *process, const struct xs_mpi_member_record *record,
		       const char *name, size_t length)
{
	struct xs_mpi_texts *texts = texts_of(process);
	struct label *label;
	char text[64], json[6 * LABEL + 1];

	if (!texts || (!length && (record->members <= 0 || record->id <= XS_MPI_SELF)))
		return;
	if (!length) {
		length = record->others > 0
				 ? (size_t)snprintf(text, sizeof(text), "%d and %d of world",
						    record->side ? record->others : record->members,
						    record->side ? record->members : record->others)
				 : (size_t)snprintf(text, sizeof(text), "%d of world",
						    record->members);
		name = text;
	}
	length = (size_t)(xs_json_escape(json, name, length < LABEL ? length : LABEL - 1) - json);
	if (length >= LABEL)
		return;
	label = label_of(texts, record->id);
	label->id = record->id;
	memcpy(label->json, json, length);
	label->json[length] = '\0';
	for (uint32_t i = 0; i < TEXTS; i++)
		texts->of[i].words = 0; /* they may have another name of it */
}

/* Who merges ranks needs to know it before the first collective there. */
void xs_chrome_communicator(struct xs_track *track, const struct xs_mpi_member_record *record)
{
	struct xs_process *process = track->process;
	char *o = xs_chrome_put_metadata(xs_output_put(&xs_chrome_of(process)->out), "communicator",
					 (uint64_t)process->pid, track->tid),
	     *begin = o;
	size_t length = 0;
	const char *name =
		record->event.name ? xs_text_of(process->run, record->event.name, &length) : "";

	length = length < LONGEST_NAME ? length : LONGEST_NAME;
	o = put_identity(o, ",\"comm\":", record->id);
	if (record->members > 0) {
		o = xs_json_signed(xs_put(o, ",\"rank\":"), record->rank);
		o = xs_json_signed(xs_put(o, ",\"members\":"), record->members);
	}
	if (record->others > 0) {
		o = xs_json_signed(xs_put(o, ",\"others\":"), record->others);
		o = xs_json_signed(xs_put(o, ",\"side\":"), record->side);
	}
	if (length)
		o = xs_put(xs_json_escape(xs_put(o, ",\"name\":\""), name, length), "\"");
	if (o == begin)
		return;					    /* nobody knows which it is */
	memmove(begin, begin + 1, (size_t)(o - begin) - 1); /* the first comma */
	xs_chrome_finish(xs_chrome_of(process), xs_put(o - 1, "}},\n"));
	make_label(process, record, name, length);
}

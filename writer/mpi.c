/*
 * What the records of MPI mean: a slice for each call, with its partners and sizes.
 */
#include <string.h>

#include "json.h"
#include "writer.h"

static char *put(char *o, const char *text)
{
	size_t n = strlen(text);

	memcpy(o, text, n);
	return o + n;
}

static char *key(char *o, const char *name)
{
	*o++ = ',';
	*o++ = '"';
	return put(put(o, name), "\":");
}

static char *put_signed(char *o, int64_t value)
{
	if (value < 0)
		*o++ = '-';
	return xs_json_uint(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* An identity as text: the same on all ranks. 0: not known. */
static char *put_identity(char *o, const char *name, uint64_t id)
{
	static const char digits[] = "0123456789abcdef";

	if (!id)
		return o;
	o = put(key(o, name), "\"");
	if (id == XS_MPI_WORLD || id == XS_MPI_SELF) {
		o = put(o, id == XS_MPI_WORLD ? "world" : "self");
	} else {
		for (int shift = 60; shift >= 0; shift -= 4)
			*o++ = digits[id >> shift & 15];
	}
	*o++ = '"';
	return o;
}

static char *put_half(char *o, const char *name, uint32_t half)
{
	return (int32_t)half == XS_MPI_NOTHING ? o : put_signed(key(o, name), (int32_t)half);
}

/* One word of a call. */
static char *put_word(char *o, enum xs_mpi_word word, uint64_t value)
{
	uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

	switch (word) {
	case XS_MPI_COMM:
		return put_identity(o, "comm", value);
	case XS_MPI_PEER:
		return put_half(put_half(o, "peer", low), "tag", high);
	case XS_MPI_COUNT:
		return put_signed(key(o, "count"), (int64_t)value);
	case XS_MPI_BYTES:
		return put_signed(key(o, "bytes"), (int64_t)value);
	case XS_MPI_ROOT:
		return put_half(put_half(o, "root", low), "seq", high);
	case XS_MPI_RECV_PEER:
		return put_half(put_half(o, "recv_peer", low), "recv_tag", high);
	case XS_MPI_RECV_BYTES:
		return put_signed(key(o, "recv_bytes"), (int64_t)value);
	case XS_MPI_NEW_COMM:
		return put_identity(o, "new_comm", value);
	case XS_MPI_WIN:
		return put_identity(o, "win", value);
	case XS_MPI_FILE:
		return put_identity(o, "file", value);
	case XS_MPI_OFFSET:
		return put_signed(key(o, "offset"), (int64_t)value);
	default:
		return o;
	}
}

static void read_call(struct xs_track *track, const struct xs_mpi_record *record, uint32_t size, uint64_t start)
{
	struct xs_process *process = track->process;
	uint64_t end = xs_process_ns(process, record->event.tick + record->duration), off;
	uint32_t name = xs_function_id(record->event.source, record->event.name);
	uint32_t words = (size - (uint32_t)sizeof(*record)) / 8, at = 0;
	char args[XS_MPI_WORDS * 96 + 32], *o = args;

	if (end < start)
		end = start;
	off = xs_track_cut_short(track, record->event.tick, record->duration);
	if (off != UINT64_MAX) {
		off = xs_process_ns(process, off);
		end = off > start ? off : start;
		o = put(o, ",\"unfinished\":true");
	}
	for (uint32_t word = 0; word < XS_MPI_WORDS; word++)
		if (record->words & 1u << word && at < words)
			o = put_word(o, word, record->word[at++]);
	if (record->result)
		o = put_signed(key(o, "result"), record->result);
	if (process->chrome)
		xs_chrome_mpi(track, name, start, end, args + 1, o > args ? (size_t)(o - args) - 1 : 0);
	track->last_ns = end;
}

void xs_mpi_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	uint64_t ns = xs_process_ns(track->process, event->tick);

	if (event->kind == XS_MPI && size >= sizeof(struct xs_mpi_record))
		read_call(track, (const struct xs_mpi_record *)event, size, ns);
}

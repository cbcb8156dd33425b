/*
 * Records as the drain process looks at them: private copies.
 */
#ifndef XS_COPY_H
#define XS_COPY_H

#include "track.h"

/*
 * A record out of a ring, which the traced process may change at any time: it is copied once, and
 * only the copy is looked at. One that was moved out of the ring is read likewise.
 */
typedef uint64_t xs_two_words __attribute__((vector_size(16), may_alias));
struct xs_record {
	union {
		struct xs_event event;
		struct xs_call_record call;
		struct xs_values_record values;
		_Alignas(16) uint64_t word[(XS_RECORD_MAX + 15) / 16 * 2];
	};
};
/*
 * The sizes that a record of a kind can have, in units of 16 bytes: these two, and where `between`
 * is set all between. Of a kind that is not in the table, none.
 */
struct xs_record_sizes {
	uint8_t least, most, between;
};
extern const struct xs_record_sizes xs_record_sizes[256];

/*
 * One that does not fit hides those behind it, or is none: what it says of its length leads
 * nowhere.
 */
static inline bool xs_record_fits(uint8_t kind, uint32_t size)
{
	const struct xs_record_sizes *sizes = &xs_record_sizes[kind];
	uint32_t units = size / 16;

	return units == sizes->least || units == sizes->most ||
	       (sizes->between && units > sizes->least && units < sizes->most);
}

/* Can the record last so long? Its tick is not behind track->latest. */
static inline bool xs_track_believes(const struct xs_track *track, const struct xs_event *event,
				     uint64_t duration)
{
	return duration <= track->latest - event->tick;
}

/* Where bytes of a track's stream lie: at their position modulo `size`, up to `end`. */
struct xs_stream {
	const unsigned char *data;
	uint64_t size, end;
};

/* Where the record at `pos` is; `head`: where those in the ring end. */
static inline struct xs_stream xs_track_stream(const struct xs_track *track, uint64_t pos,
					       uint64_t head)
{
	if (xs_track_is_moved(track, pos))
		return (struct xs_stream){ track->moved.data, track->moved.room, track->moved.end };
	return (struct xs_stream){ track->data, track->ring_size, head };
}

/*
 * Of the record at `pos` at most `most` bytes (a multiple of 16). Returns the record's size; 0:
 * what is there cannot be one.
 */
static inline uint32_t xs_record_copy(struct xs_record *copy, const struct xs_stream *stream,
				      uint64_t pos, uint32_t most)
{
	uint64_t offset = pos & (stream->size - 1), left = stream->end - pos;
	uint64_t room = stream->size - offset < left ? stream->size - offset : left;
	const uint64_t *from = (const void *)(stream->data + offset);
	uint64_t second;
	uint32_t size;

	if (room < sizeof(copy->event) || offset % 16)
		return 0;
	second = __atomic_load_n(&from[1], __ATOMIC_RELAXED);
	copy->word[0] = __atomic_load_n(&from[0], __ATOMIC_RELAXED);
	copy->word[1] = second;
	size = (uint32_t)(second >> 40 & 0xff) * 8; /* event.words, as xs_mark() puts it there */
	if (size < sizeof(copy->event) || size % 16 || size > room ||
	    !xs_record_fits(copy->event.kind, size))
		return 0;
	/* volatile: each is read once, and not again from there */
	for (uint32_t i = 2; i < (most < size ? most : size) / 8; i += 2)
		*(xs_two_words *)&copy->word[i] = *(const volatile xs_two_words *)&from[i];
	return size;
}

/* what is looked at of a record that is not to be shown */
#define XS_RECORD_GLANCE sizeof(struct xs_call_record)

/* The same for a look ahead. 0: there is none yet, or none that can be one. */
static inline uint32_t xs_record_at(struct xs_record *record, const struct xs_track *track,
				    uint64_t pos, uint64_t head, uint32_t most)
{
	const struct xs_stream stream = xs_track_stream(track, pos, head);

	record->call.duration = 0; /* which a shorter record has not */
	return pos == head ? 0 : xs_record_copy(record, &stream, pos, most);
}

#endif

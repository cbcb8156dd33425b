/*
 * What the two halves of the Perfetto sink share: perfetto.c takes events and gives them to the
 * sort on disk, perfetto_write.c writes what comes out of it.
 */
#ifndef XM_PERFETTO_H
#define XM_PERFETTO_H

#include "annotate.h"
#include "pour.h"
#include "sink.h"
#include "sort.h"

#define XM_MAX_KEYS   255
#define XM_MAX_TRACKS (1u << 20)

enum { XM_NAMES, XM_CATEGORIES, XM_KEYS, XM_TEXT_KINDS };
enum xm_kind { XM_SLICE, XM_INSTANT, XM_COUNTER, XM_FLOW };

struct xm_track {
	uint32_t pid;
	int64_t tid; /* -1: the process's own */
	uint32_t out_tid;
	struct {
		char *data; /* NULL: none */
		size_t length;
	} name;
	int64_t sort_index; /* -1: none */
	bool is_counter;
	/* of phases B and E: texts of what is open */
	struct open {
		int64_t start;
		uint32_t length;
		char *data;
	} *open;
	uint32_t open_count, open_room;
	uint64_t too_deep; /* what has begun without room, within all that is open */
};

/* In front of each record's annotations. */
struct xm_shape {
	uint32_t name, category; /* XF_NONE: in the annotations' bytes, as a field of its own */
	uint64_t flow;
	uint32_t keys[XM_MAX_KEYS];
	uint8_t key_count;
	char phase;
	bool enclosing;
};
#define XM_SHAPE_SIZE(count) (offsetof(struct xm_shape, keys) + 4 * (size_t)(count))

struct xm_perfetto {
	struct xm_sink sink;
	struct xm_pour pour;
	struct xm_sort *sort;
	struct xf_map texts[XM_TEXT_KINDS], track_map;
	uint32_t *stamps[XM_TEXT_KINDS]; /* the track in which a text was told last, + 1 */
	struct xm_track *tracks;
	uint32_t track_room;
	uint32_t *pids, pid_room; /* of the output, by the processes' order */
	struct xf_map places;	  /* of the merged events' pids in `orders` */
	uint32_t *orders, order_room;
	struct xf_proto fields, packet;
	struct xm_shape shape;
	struct xf_annotator annotator;
	char text[XF_LONGEST_TEXT];
	uint64_t skipped, no_room;
	int64_t last;
	int error;
};

static inline void xm_perfetto_fail(struct xm_perfetto *p, int error)
{
	if (!p->error && error < 0)
		p->error = error;
}

/* Once all events are there: the numbers that processes and threads have in the output. */
void xm_perfetto_number(struct xm_perfetto *p, const struct xm_merge *merge);

/* Everything, once xm_sort_start() has been called. */
void xm_perfetto_write(struct xm_perfetto *p, const struct xm_merge *merge);

#endif

/*
 * Where the merged trace goes: Chrome's JSON (write.c) or Perfetto's protobuf (perfetto.c). Times
 * are ns since the output's base.
 */
#ifndef XM_SINK_H
#define XM_SINK_H

#include "clocks.h"
#include "merge.h"

struct xm_place {
	uint32_t pid;
	int64_t tid, time;
};

struct xm_totals {
	uint64_t messages, alone, dropped, arrows;
	uint64_t early;	  /* messages that arrive before they are sent */
	int64_t early_ns; /* the worst of them */
	uint64_t no_room; /* events that are left out, of more tracks or open slices than fit */
};

struct xm_sink {
	/* Takes over fd. 0 or -errno. */
	int (*open)(struct xm_sink *sink, int fd, bool compress);
	/* Before the first event. */
	void (*head)(struct xm_sink *sink, const struct xm_merge *merge,
		     const struct xm_clocks *clocks, bool synced);
	/* An event of the block's input. What becomes of it may lie in the block's text. */
	void (*event)(struct xm_sink *sink, struct xm_block *block, const struct xf_event *event,
		      const struct xm_place *place, int64_t duration);
	/* In the order of the output: text that event() has left in a block. */
	void (*text)(struct xm_sink *sink, const char *text, size_t length);
	void (*arrow)(struct xm_sink *sink, const char *category, const char *name, uint64_t id,
		      const struct xm_place *from, const struct xm_place *to);
	/* 0, or -errno of the first thing that went wrong; closes and frees in any case. */
	int (*close)(struct xm_sink *sink, const struct xm_merge *merge, struct xm_totals *totals);
	const struct xm_merge *merge;
	const struct xm_clocks *clocks;
	/* events of different inputs may be given at once, by several threads */
	bool is_ahead;
	int error; /* the first thing that went wrong, if it was not the file */
};

/* kineto: with the members that files of Kineto have (kineto.c). */
struct xm_sink *xm_sink_json(bool kineto);
struct xm_sink *xm_sink_perfetto(void);

/* The time of an event's other times (args.queued and the like), as the output has them. */
static inline int64_t xm_out_time(const struct xm_sink *sink, const struct xm_input *input,
				  int64_t time)
{
	return xm_true_time(xm_clocks_of(sink->clocks, input), time + input->shift) -
	       sink->merge->base;
}

/*
 * JSON (a string with quotes): what the process is called in the output. Writes at most room bytes.
 */
size_t xm_process_name(const struct xm_input *input, const struct xm_process *process, char *out,
		       size_t room);
/* Every process of the output, in order: true while there is one. Both counters begin with 0. */
bool xm_next_process(const struct xm_merge *merge, uint32_t *place, uint32_t *part,
		     const struct xm_input **input, const struct xm_process **process);
/* What is said of the inputs and of the whole, as members of an object without its braces. */
void xm_put_summary(FILE *out, const struct xm_merge *merge, const struct xm_clocks *clocks,
		    const struct xm_totals *totals);
/* What Kineto's files say, as members with a comma behind each. */
void xm_put_kineto(FILE *out, const struct xm_merge *merge);
void xm_put_metadata(FILE *out, const struct xm_merge *merge, const struct xm_clocks *clocks,
		     bool synced);

#endif

/*
 * One true time out of the clocks of several hosts.
 *
 * A message that left at s (by the sender's clock) and had arrived at r (by the receiver's) bounds
 * how far the two clocks are apart, from one side; messages the other way bound it from the other.
 * Offset and drift of each clock are chosen between these bounds, so that no message arrives before
 * it was sent, and half of what the bounds leave is the error that can remain.
 */
#ifndef XM_CLOCKS_H
#define XM_CLOCKS_H

#include "merge.h"

struct xm_function;

/*
 * Something that cannot have been seen by one input before it left the other; but it was, by so
 * much, if both have one clock.
 */
struct xm_proof {
	const struct xm_function *function; /* NULL: there is none */
	const struct xm_input *from, *to;
	int64_t sent, early;
};

/*
 * A clock whose pace changes: from this time of it on, true time = t + offset + drift * (t - from).
 */
struct xm_piece {
	int64_t from, offset;
	double drift;
};

struct xm_clock {
	double drift; /* true time = t + offset + drift * (t - start), before the first piece */
	int64_t offset, start;
	struct xm_piece *pieces;
	uint32_t piece_count;
	double unseen; /* the largest undetectable change of rate */
	double change; /* by how much its pace changed, as the lines say that it bends along */
	int64_t error; /* ns, XM_NO_TIME: unknown, nothing bounds it from both sides */
	bool is_tied, is_sampled;
	/* the clock that messages tie it to; itself: the one that was left as it is */
	uint32_t root;
	/* a bit for each function (xm_function_number()) that ties it to others */
	uint64_t calls[2];
	struct xm_proof proof; /* of one that is not its host's */
	/* ns by which messages still arrive too early: the clock did not run evenly */
	uint64_t violated;
};

struct xm_clocks;

struct xm_clocks *xm_clocks_create(uint32_t inputs);
/*
 * Something that left `from` at `sent` cannot have been seen by `to` before `seen`, each by its own
 * clock; by the semantics of `function`.
 */
void xm_clocks_message(struct xm_clocks *clocks, const struct xm_function *function,
		       const struct xm_input *from, int64_t sent, const struct xm_input *to,
		       int64_t seen);
/* Something was over for both at about the same time. */
void xm_clocks_together(struct xm_clocks *clocks, uint32_t a, int64_t a_time, uint32_t b,
			int64_t b_time);
/*
 * Solves: inputs of a host get one clock unless messages between them contradict, and input->clock
 * is set. Without `sync` all clocks stay as they are. 0 or -ENOMEM.
 */
int xm_clocks_solve(struct xm_clocks *clocks, struct xm_merge *merge, bool sync);
const struct xm_clock *xm_clocks_of(const struct xm_clocks *clocks, const struct xm_input *input);
/* One by its index (input->clock), of so many. */
struct xm_clock *xm_clock_at(struct xm_clocks *clocks, uint32_t index);
uint32_t xm_clocks_count(const struct xm_clocks *clocks);
/* Pairs of clocks of which something is known. */
uint32_t xm_clocks_pairs(const struct xm_clocks *clocks);
/* The widest difference between the paces of its pieces. */
double xm_clock_change(const struct xm_clock *clock);
void xm_clocks_free(struct xm_clocks *clocks);

/* Monotone. */
static inline int64_t xm_true_time(const struct xm_clock *clock, int64_t time)
{
	int64_t from = clock->start, offset = clock->offset;
	double drift = clock->drift;
	/* pieces before low have begun, those from high on have not */
	uint32_t low = 0, high = clock->piece_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (clock->pieces[middle].from <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (low) {
		from = clock->pieces[low - 1].from;
		offset = clock->pieces[low - 1].offset;
		drift = clock->pieces[low - 1].drift;
	}
	time += offset;
	return drift == 0 ? time
			  : time + (int64_t)__builtin_floor(drift * (double)(time - offset - from) +
							    0.5);
}

#endif

/*
 * What the drain process keeps for a successor: see kept.h.
 */
#include "kept.h"

#include <stddef.h>
#include <string.h>

/* One each, so that nothing passes for something else. */
enum { OF_LENGTH = 1, OF_TRACE, OF_OUTPUT, OF_RING, OF_ACTIVITY };
#define SALT 0x78ac7e5b1d0936f5ull

/*
 * Whoever is killed has made the stores of its program up to some instruction: the compiler alone
 * could change their order.
 */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/* Each step can be undone: where one word differs, so does the sum. */
static uint64_t sum_up(uint64_t sum, const void *data, size_t size)
{
	const char *from = data;

	for (size_t at = 0; at < size; at += sizeof(sum)) {
		uint64_t word = 0;

		memcpy(&word, from + at, size - at < sizeof(word) ? size - at : sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum;
}

/* 0 says that something is being written. */
static uint64_t check_of(unsigned what, const void *data, size_t size)
{
	uint64_t sum = sum_up(SALT * what, data, size);

	return sum ? sum : 1;
}

/* ---- the head of a file ---- */

static uint64_t length_check(const struct xs_kept_length *length)
{
	return check_of(OF_LENGTH, length, offsetof(struct xs_kept_length, check));
}

static uint64_t trace_check(const struct xs_kept_file *kept)
{
	const uint64_t trace[] = { kept->device, kept->inode };

	return check_of(OF_TRACE, trace, sizeof(trace));
}

/* 0: it is no text. */
static uint64_t output_check(const struct xs_kept_file *kept)
{
	size_t length = strnlen(kept->output, sizeof(kept->output));

	return length < sizeof(kept->output) ? check_of(OF_OUTPUT, kept->output, length) : 0;
}

/* Of no commit it is 0, as in a file that is new. */
static uint64_t turn_check(uint64_t turn)
{
	return turn ? ~turn : 0;
}

static const struct xs_kept_length *counting(const struct xs_kept_file *kept)
{
	return &kept->length[atomic_load_explicit(&kept->turn, memory_order_relaxed) & 1];
}

uint64_t xs_kept_bytes(const struct xs_kept_file *kept)
{
	uint64_t bytes = counting(kept)->bytes;

	return bytes == XS_KEPT_ENDED || !atomic_load_explicit(&kept->turn, memory_order_relaxed)
		       ? 0
		       : bytes;
}

static bool has_output(const struct xs_kept_file *kept)
{
	return kept->output_check && kept->output_check == output_check(kept);
}

static bool has_trace(const struct xs_kept_file *kept)
{
	return kept->trace_check == trace_check(kept);
}

int xs_kept_error(const struct xs_kept_file *kept)
{
	return atomic_load_explicit(&kept->turn, memory_order_relaxed) ? (int)counting(kept)->error
								       : 0;
}

void xs_kept_commit(struct xs_kept_file *kept, uint64_t *turn, uint64_t bytes, int error)
{
	struct xs_kept_length *length = &kept->length[++*turn & 1];

	length->turn = *turn;
	length->bytes = bytes;
	length->error = (uint64_t)-error;
	length->check = length_check(length);
	atomic_store_explicit(&kept->turn, *turn, memory_order_release);
	atomic_store_explicit(&kept->turn_check, turn_check(*turn), memory_order_release);
}

void xs_kept_name_trace(struct xs_kept_file *kept, const char *path)
{
	kept->output_check = 0;
	in_order();
	memcpy(kept->output, path, strlen(path) + 1);
	in_order();
	kept->output_check = output_check(kept);
}

void xs_kept_identify(struct xs_kept_file *kept, uint64_t device, uint64_t inode)
{
	kept->trace_check = 0;
	in_order();
	kept->device = device;
	kept->inode = inode;
	in_order();
	kept->trace_check = trace_check(kept);
}

/*
 * In between, a length of 0 and the path would say that nothing in this file counts, and the length
 * without the path that it is spoilt.
 */
void xs_kept_end_trace(struct xs_kept_file *kept, uint64_t *turn)
{
	xs_kept_commit(kept, turn, XS_KEPT_ENDED, 0);
	xs_kept_identify(kept, 0, 0);
	xs_kept_name_trace(kept, "");
	xs_kept_commit(kept, turn, 0, 0);
}

void xs_kept_tidy(struct xs_kept_file *kept)
{
	bool ended = atomic_load(&kept->turn) && counting(kept)->bytes == XS_KEPT_ENDED;

	if (ended || !has_output(kept))
		xs_kept_name_trace(kept, "");
	if (ended || !has_trace(kept))
		xs_kept_identify(kept, 0, 0);
}

/* ---- copies ---- */

static uint64_t ring_check(const struct xs_ring_saved *saved)
{
	uint32_t depth = __atomic_load_n(&saved->depth, __ATOMIC_RELAXED);
	uint64_t sum;

	if (depth > XS_RING_SAVED)
		return 0;
	sum = sum_up(SALT * OF_RING, saved, offsetof(struct xs_ring_saved, check));
	sum = sum_up(sum, saved->open, depth * sizeof(saved->open[0]));
	return sum ? sum : 1;
}

static uint64_t activity_check(const struct xs_activity_saved *saved)
{
	return check_of(OF_ACTIVITY, saved, offsetof(struct xs_activity_saved, check));
}

struct copy {
	uint64_t turn;
	uint64_t check, right; /* as it is, and as it should be */
};

/*
 * Being written is the older one of the two, which has no turn yet or that of the next commit, and
 * no check: whatever else is not right has been changed by somebody. Then neither is believed, for
 * nobody can say which one counted.
 */
static enum xs_kept_copy choose(const struct copy copy[2], uint64_t now)
{
	enum xs_kept_copy newest = XS_KEPT_NEITHER;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t turn = copy[i].turn, other = copy[1 - i].turn;
		bool is_old = turn < other || !(turn | other);

		if (!copy[i].check && (is_old || turn == now + 1))
			continue;
		if (!copy[i].check || copy[i].check != copy[i].right || !turn || turn > now + 1)
			return XS_KEPT_SPOILT;
		if (turn <= now && (newest == XS_KEPT_NEITHER || turn > copy[newest].turn))
			newest = i ? XS_KEPT_SECOND : XS_KEPT_FIRST;
	}
	return newest;
}

static enum xs_kept_copy choose_activity(const struct xs_kept_activity *activity, uint64_t turn)
{
	struct copy copy[2];

	for (unsigned i = 0; i < 2; i++)
		copy[i] = (struct copy){ .turn = activity->saved[i].turn,
					 .check = activity->saved[i].check,
					 .right = activity_check(&activity->saved[i]) };
	return choose(copy, turn);
}

/* Killed in here, it is as one that was being written. */
static void forget(uint64_t *turn, uint64_t *check)
{
	*check = 0;
	in_order();
	*turn = 0;
	in_order();
}

enum xs_kept_copy xs_kept_take_ring(struct xs_kept_ring *ring, uint64_t turn)
{
	enum xs_kept_copy counts;
	struct copy copy[2];

	for (unsigned i = 0; i < 2; i++)
		copy[i] = (struct copy){ .turn = ring->saved[i].turn,
					 .check = ring->saved[i].check,
					 .right = ring_check(&ring->saved[i]) };
	counts = choose(copy, turn);
	for (unsigned i = 0; i < 2 && counts != XS_KEPT_SPOILT; i++)
		if (i != counts && (copy[i].turn || copy[i].check))
			forget(&ring->saved[i].turn, &ring->saved[i].check);
	return counts;
}

enum xs_kept_copy xs_kept_take_activity(struct xs_kept_activity *activity, uint64_t turn)
{
	enum xs_kept_copy counts = choose_activity(activity, turn);

	for (unsigned i = 0; i < 2 && counts != XS_KEPT_SPOILT; i++)
		if (i != counts && (activity->saved[i].turn || activity->saved[i].check))
			forget(&activity->saved[i].turn, &activity->saved[i].check);
	return counts;
}

static void begin(uint64_t *saved_turn, uint64_t *check, uint64_t turn)
{
	*check = 0;
	in_order();
	*saved_turn = turn;
	in_order();
}

void xs_kept_begin_ring(struct xs_ring_saved *saved, uint64_t turn)
{
	begin(&saved->turn, &saved->check, turn);
}

void xs_kept_end_ring(struct xs_ring_saved *saved)
{
	in_order();
	saved->check = ring_check(saved);
}

void xs_kept_begin_activity(struct xs_activity_saved *saved, uint64_t turn)
{
	begin(&saved->turn, &saved->check, turn);
}

void xs_kept_end_activity(struct xs_activity_saved *saved)
{
	in_order();
	saved->check = activity_check(saved);
}

/* ---- all of a head ---- */

static bool is_mark(uint32_t word, uint32_t mark)
{
	return !word || word == mark;
}

bool xs_kept_is_sound(const struct xs_kept_file *kept)
{
	uint64_t turn = atomic_load(&kept->turn), check = atomic_load(&kept->turn_check);
	const struct xs_kept_length *length = counting(kept);

	/* the kill may have come between the two stores */
	if (check != turn_check(turn) && (!turn || check != turn_check(turn - 1)))
		return false;
	if (turn && (length->turn != turn || length->check != length_check(length)))
		return false;
	if (!is_mark(kept->complete, XS_KEPT_COMPLETE) ||
	    !is_mark(kept->unwritten, XS_KEPT_UNWRITTEN))
		return false;
	/* what does not count yet may be half written */
	if (xs_kept_bytes(kept) && (!has_output(kept) || !has_trace(kept)))
		return false;
	return choose_activity(&kept->activity, turn) != XS_KEPT_SPOILT;
}

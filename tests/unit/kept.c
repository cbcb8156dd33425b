/*
 * What the drain process keeps for a successor: no word of it can change unseen, and it can be
 * killed at any instruction while it writes there.
 */
#include "kept.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPPING false
#else
#define STEPPING true
#endif

#define PATH	"/somewhere/program.123.json"
#define LENGTH	8211u
#define COMMITS 4u /* the copy that counts has open tasks */

/* As in a file: the head, and a ring. */
struct kept {
	union {
		struct xs_kept_file file;
		unsigned char head[XS_KEPT_HEADER];
	};
	struct xs_kept_ring ring;
};

static struct kept *kept; /* shared with a process that is killed */

static void save(unsigned copy, uint64_t turn)
{
	struct xs_ring_saved *ring = &kept->ring.saved[copy];
	struct xs_activity_saved *activity = &kept->file.activity.saved[copy];

	xs_kept_begin_ring(ring, turn);
	ring->tail = 160 * turn;
	ring->records = turn;
	ring->tid = 77;
	ring->name = 5;
	ring->depth = (uint32_t)turn % 3;
	for (uint32_t i = 0; i < ring->depth; i++)
		ring->open[i] = (struct xs_open_task){ .ns = turn + i, .name = 9 };
	xs_kept_end_ring(ring);
	xs_kept_begin_activity(activity, turn);
	activity->consumed[3] = 4096 * turn;
	activity->used[0] = (int64_t)turn;
	xs_kept_end_activity(activity);
}

/* A trace, and commits with turns from 2 on: that of an odd turn is in the second copy. */
static uint64_t prepare(unsigned commits)
{
	uint64_t turn = 0;

	memset(kept, 0, sizeof(*kept));
	xs_kept_identify(&kept->file, 0, 0);
	xs_kept_name_trace(&kept->file, PATH);
	xs_kept_identify(&kept->file, 3, 4);
	xs_kept_commit(&kept->file, &turn, 100, 0);
	while (turn < 1 + commits) {
		save(turn % 2 == 0, turn + 1);
		xs_kept_commit(&kept->file, &turn, LENGTH + turn, 0);
	}
	return turn;
}

static bool has_tasks(const struct xs_ring_saved *ring, uint64_t turn)
{
	for (uint32_t i = 0; i < ring->depth && i < XS_RING_SAVED; i++)
		if (ring->open[i].ns != turn + i || ring->open[i].name != 9 || ring->open[i].lost)
			return false;
	return ring->depth == turn % 3;
}

static bool is_whole(const struct kept *one, uint64_t turn)
{
	struct kept copy = *one;
	enum xs_kept_copy ring = xs_kept_take_ring(&copy.ring, turn),
			  activity = xs_kept_take_activity(&copy.file.activity, turn);

	return xs_kept_is_sound(&one->file) && xs_kept_bytes(&one->file) == LENGTH + turn - 1 &&
	       ring < XS_KEPT_NEITHER && one->ring.saved[ring].tail == 160 * turn &&
	       has_tasks(&one->ring.saved[ring], turn) && activity < XS_KEPT_NEITHER &&
	       one->file.activity.saved[activity].consumed[3] == 4096 * turn;
}

/* Is what is changed there without meaning: behind a text or a list, a number that has no check? */
static bool is_free(size_t at)
{
	size_t output = offsetof(struct kept, file.output),
	       numbers = offsetof(struct kept, file.numbers),
	       ring = offsetof(struct kept, ring.saved);

	return (at >= output + sizeof(PATH) - 1 && at < offsetof(struct kept, file.activity)) ||
	       (at >= numbers && at < ring);
}

/* Each word by itself: it is seen, or what counts is what was written. */
static void words(void)
{
	uint64_t turn = prepare(COMMITS);
	size_t seen = 0, all = 0;
	struct kept copy;

	CHECK(is_whole(kept, turn), "as it was written");
	for (size_t at = 0; at < sizeof(copy); at += 4)
		for (int how = 0; how < 37; how++) {
			uint32_t word, new;
			struct kept before;
			bool sound;

			copy = *kept;
			memcpy(&word, (char *)&copy + at, 4);
			new = how < 32	  ? word ^ 1u << how
			      : how == 32 ? 0
			      : how == 33 ? word + 1
			      : how == 34 ? word - 1
			      : how == 35 ? word / 2
					  : UINT32_MAX;
			if (new == word)
				continue;
			memcpy((char *)&copy + at, &new, 4);
			before = copy;
			sound = xs_kept_is_sound(&copy.file) &&
				xs_kept_take_ring(&copy.ring, atomic_load(&copy.file.turn)) !=
					XS_KEPT_SPOILT;
			all++;
			seen += !sound;
			CHECK(!sound || is_free(at) ||
				      is_whole(&before, atomic_load(&before.file.turn)),
			      "word %zu: %x for %x", at / 4, new, word);
		}
	CHECK(seen > 1000 && seen < all, "%zu of %zu", seen, all);
}

/* Whole words of the checks and turns, which a kill may leave at 0. */
static void zeros(void)
{
	uint64_t turn = prepare(COMMITS);

	for (size_t at = 0; at < sizeof(*kept); at += 8) {
		struct kept copy = *kept, before;
		uint64_t word;

		memcpy(&word, (char *)&copy + at, 8);
		if (!word || is_free(at))
			continue;
		memset((char *)&copy + at, 0, 8);
		before = copy;
		if (xs_kept_is_sound(&copy.file) &&
		    xs_kept_take_ring(&copy.ring, atomic_load(&copy.file.turn)) != XS_KEPT_SPOILT)
			CHECK(is_whole(&before, turn), "word %zu of 64 bits", at / 8);
	}
}

/*
 * Runs `work` one instruction after the other; `look` sees what a kill there would leave. Returns
 * the instructions.
 */
static long step(void (*work)(uint64_t turn), void (*look)(uint64_t turn), uint64_t turn)
{
	pid_t pid = fork();
	long steps = 0;
	int status;

	if (!pid) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		work(turn);
		(void)raise(SIGSTOP);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && !tap_failures) {
		if (WSTOPSIG(status) == SIGSTOP && steps)
			break;
		look(turn);
		steps++;
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return steps;
}

static void commit(uint64_t turn)
{
	save(turn % 2 == 0, turn + 1);
	xs_kept_commit(&kept->file, &turn, LENGTH + turn, 0);
}

static void look_at_commit(uint64_t turn)
{
	uint64_t now = atomic_load(&kept->file.turn);

	CHECK(now == turn || now == turn + 1, "turn %" PRIu64, now);
	CHECK(is_whole(kept, now), "a commit behind turn %" PRIu64, now);
}

/* Also the very first ones, which have nothing beside them. */
static void killed_in_commits(void)
{
	for (unsigned commits = 1; commits < 4; commits++) {
		uint64_t turn = prepare(commits);

		CHECK(step(commit, look_at_commit, turn) > 500, "cannot trace a process here");
		CHECK(is_whole(kept, turn + 1), "turn %" PRIu64, turn + 1);
	}
}

static void end_trace(uint64_t turn)
{
	xs_kept_end_trace(&kept->file, &turn);
}

/* There is the trace, whole, or none at all. */
static void look_at_end(uint64_t turn)
{
	struct kept copy = *kept;

	(void)turn;
	CHECK(xs_kept_is_sound(&copy.file), "while a trace ends");
	xs_kept_tidy(&copy.file);
	if (xs_kept_bytes(&copy.file))
		CHECK(!strcmp(copy.file.output, PATH) && copy.file.inode == 4, "%s",
		      copy.file.output);
	else
		CHECK(!copy.file.output[0] && !copy.file.inode, "%s", copy.file.output);
}

static void killed_at_an_end(void)
{
	CHECK(step(end_trace, look_at_end, prepare(COMMITS)) > 100, "cannot trace a process here");
	CHECK(!kept->file.output[0] && !xs_kept_bytes(&kept->file), "%s", kept->file.output);
}

static void name_trace(uint64_t turn)
{
	xs_kept_identify(&kept->file, 0, 0);
	xs_kept_name_trace(&kept->file, PATH "-2");
	xs_kept_identify(&kept->file, 5, 6);
	xs_kept_commit(&kept->file, &turn, 100, 0);
}

/* Half a name is none, and half an inode neither. */
static void look_at_name(uint64_t turn)
{
	struct kept copy = *kept;

	(void)turn;
	CHECK(xs_kept_is_sound(&copy.file), "while a trace is named");
	xs_kept_tidy(&copy.file);
	CHECK(!copy.file.output[0] || !strcmp(copy.file.output, PATH "-2"), "%s", copy.file.output);
	CHECK(!copy.file.inode || (copy.file.inode == 6 && copy.file.device == 5), "%" PRIu64,
	      copy.file.inode);
	CHECK(!xs_kept_bytes(&copy.file) || copy.file.inode == 6, "a length of no file");
}

static void killed_while_a_trace_is_named(void)
{
	uint64_t turn = prepare(COMMITS);

	xs_kept_end_trace(&kept->file, &turn);
	CHECK(step(name_trace, look_at_name, turn) > 100, "cannot trace a process here");
	CHECK(xs_kept_bytes(&kept->file) == 100, "%" PRIu64, xs_kept_bytes(&kept->file));
}

/* --recover gives the number of a commit that was being prepared to another one. */
static void prepared(void)
{
	for (unsigned commits = 1; commits < 4; commits++) {
		uint64_t turn = prepare(commits), old = turn;
		struct xs_kept_ring *ring = &kept->ring;
		enum xs_kept_copy copy;

		save(turn % 2 == 0, turn + 1);
		CHECK(xs_kept_take_ring(ring, turn) == (turn % 2 ? XS_KEPT_SECOND : XS_KEPT_FIRST),
		      "turn %" PRIu64, turn);
		(void)xs_kept_take_activity(&kept->file.activity, turn);
		xs_kept_commit(&kept->file, &turn, 55, 0);
		copy = xs_kept_take_ring(ring, turn);
		CHECK(copy < XS_KEPT_NEITHER && ring->saved[copy].turn == old, "copy %d", copy);
		copy = xs_kept_take_activity(&kept->file.activity, turn);
		CHECK(copy < XS_KEPT_NEITHER && kept->file.activity.saved[copy].turn == old,
		      "CUDA: copy %d", copy);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} steps[] = {
		{ "killed at any instruction of commits", killed_in_commits },
		{ "killed at any instruction of a trace's end", killed_at_an_end },
		{ "killed while a trace is named", killed_while_a_trace_is_named },
	};

	(void)argc;
	tap_main(argv);
	kept = mmap(NULL, sizeof(*kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kept == MAP_FAILED)
		return 1;
	tap_run("each word has a check", words);
	tap_run("nothing that was written is 0", zeros);
	tap_run("a commit that was being prepared is forgotten", prepared);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (STEPPING)
			tap_run(steps[i].name, steps[i].run);
		else
			tap_skip(steps[i].name, "not under a sanitizer");
	return tap_done();
}

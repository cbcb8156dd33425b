/*
 * A drain process that is killed, at any instruction of a commit or of a move into the backlog:
 * --recover writes each task once.
 */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backlog.h"
#include "drained.h"
#include "tracks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPPING false
#else
#define STEPPING true
#endif

static struct xs_process *processes; /* of the run, for the backlog */
static char spools[] = "/var/tmp/drain-killed-XXXXXX";

/* Puts tasks n0, n1, … into the two rings in turn. */
static void fill(unsigned *n, unsigned count)
{
	for (unsigned i = 0; i < count; i++, ++*n) {
		struct xs_ring *ring = rundir_ring(file, *n % 2);
		char text[16];

		(void)snprintf(text, sizeof(text), "n%u", *n);
		put_begin(&dir, ring, tick(), task(text));
		put_end(&dir, ring, tick(), domain);
	}
}

/* The trace has each of the n tasks once, ended, and the four that prepare() began. */
static void each_once(unsigned n, const char *when)
{
	struct trace trace = load();
	bool *seen = calloc(n, sizeof(*seen));
	unsigned number;

	CHECK(trace.count == n + 4, "%s: %zu slices, not %u", when, trace.count, n + 4);
	for (size_t i = 0; seen && i < trace.count; i++) {
		if (sscanf(trace.slices[i].name, "d::n%u", &number) != 1 || number >= n)
			continue;
		CHECK(!seen[number], "%s: n%u twice", when, number);
		seen[number] = true;
		CHECK(!trace.slices[i].unfinished, "%s: n%u unfinished", when, number);
	}
	for (number = 0; seen && number < n; number++)
		CHECK(seen[number], "%s: n%u missing", when, number);
	CHECK(trace_named(&trace, "d::open") == 4, "%s: %zu of 4 open tasks", when,
	      trace_named(&trace, "d::open"));
	free(seen);
	drop(&trace);
}

/* Two rings with two open tasks each. */
static void prepare(const struct xs_options *options, unsigned *n)
{
	open_all(options, 2);
	*n = 0;
	for (uint32_t i = 0; i < 2; i++) {
		put_thread(&dir, rundir_ring(file, i), 77 + i, "t");
		put_begin(&dir, rundir_ring(file, i), tick(), task("open"));
		put_begin(&dir, rundir_ring(file, i), tick(), task("open"));
	}
}

/* What --recover does. */
static void recover(void)
{
	dir.run.recovering = true;
	xs_backlog_open(&dir.run, &processes);
	finish(adopt());
	xs_backlog_close(&dir.run);
	dir.run.recovering = false;
}

/* Of a drain process: where it stops, to be looked at by the test. Its status is of no interest. */
enum stops { BEGUN = 1, COMMITTED, READ, COMMITTED_AGAIN };

static void victim_without_backlog(void)
{
	struct xs_process *process;

	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	process = adopt();
	xs_process_read(process, false);
	xs_process_commit(process);
	(void)raise(SIGSTOP);
	xs_process_read(process, false);
	(void)raise(SIGSTOP);
	xs_process_commit(process);
	xs_process_commit(process);
	(void)raise(SIGSTOP);
	_exit(0);
}

/* A victim with a backlog, which has committed what was there. */
static struct xs_process *begin_backlog(void)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	xs_backlog_open(&dir.run, &processes);
	processes = adopt();
	xs_process_read(processes, false);
	xs_process_commit(processes);
	(void)raise(SIGSTOP);
	return processes;
}

/* Moves what its rings hold. */
static void victim_that_moves(void)
{
	(void)begin_backlog();
	(void)raise(SIGSTOP);
	xs_backlog_relieve(&dir.run, UINT64_MAX);
	(void)raise(SIGSTOP);
	_exit(0);
}

/* About so many bytes of each track. */
static void read_part(struct xs_process *process, uint64_t bytes)
{
	for (uint32_t i = 0; i < process->track_count; i++) {
		xs_track_begin(process->tracks[i]);
		(void)xs_track_read(process->tracks[i], bytes);
	}
}

/* Commits a part of what it has moved, or all and what lies behind it. */
static void commit_part(uint64_t bytes)
{
	struct xs_process *process = begin_backlog();

	xs_backlog_relieve(&dir.run, UINT64_MAX);
	read_part(process, bytes);
	(void)raise(SIGSTOP);
	xs_process_commit(process);
	(void)raise(SIGSTOP);
	_exit(0);
}

static void victim_in_backlog(void)
{
	commit_part(20000);
}

static void victim_behind_backlog(void)
{
	commit_part(XS_RING_MIN);
}

/*
 * Has a victim commit what is there, then do its work on `more` tasks, and kills it `steps`
 * instructions behind that. Returns the instructions that it made there; -1: not possible here.
 */
static long kill_after(void (*victim)(void), unsigned *n, unsigned more, long steps)
{
	pid_t pid = fork();
	int status, stops = 0;
	long made = 0;

	if (!pid)
		victim();
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) == SIGSTOP)
			stops++;
		else
			made++;
		if (WSTOPSIG(status) == SIGSTOP && stops == COMMITTED)
			fill(n, more);
		if (stops == COMMITTED_AGAIN || made == steps ||
		    ptrace(stops < READ ? PTRACE_CONT : PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return stops < READ ? -1 : made;
}

/*
 * Kills victims at `rounds` of their instructions and at `last` ones, five apart, before the end;
 * then producers go on (`after`, may be NULL), the run is recovered, and each task must be there
 * once. Whether room is given back too early shows only if it is used.
 */
static void kill_commits(void (*victim)(void), const struct xs_options *options, unsigned more,
			 int rounds, int last, void (*after)(unsigned *n))
{
	long length = LONG_MAX;
	char when[64];
	unsigned n;

	for (int i = 0; i <= rounds + last && length > 0 && !tap_failures; i++) {
		/*
		 * the first two are whole: how long is it? (Before the first recovery functions of
		 * other libraries are still to be found.)
		 */
		long made, steps = i < 2	 ? LONG_MAX
				   : i <= rounds ? 1 + length * (i - 2) / rounds
						 : length - 5 * (i - rounds);

		prepare(options, &n);
		fill(&n, 40);
		made = kill_after(victim, &n, more, steps);
		length = i < 2 ? made : length;
		(void)snprintf(when, sizeof(when), "killed after %ld of %ld instructions", made,
			       length);
		if (after)
			after(&n);
		recover();
		each_once(n, when);
		close_all();
	}
	CHECK(length > 0, "cannot trace a process here");
}

static void killed_while_committing(void)
{
	kill_commits(victim_without_backlog, NULL, 40, 400, 0, NULL);
}

/*
 * Both rings until there is no room. What finds none is lost with its whole subtree: the end goes
 * the same way.
 */
static void fill_up(unsigned *n)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct xs_ring *ring = rundir_ring(file, i);
		bool room = true;

		while (room) {
			char text[16];

			(void)snprintf(text, sizeof(text), "n%u", *n);
			room = put_begin(&dir, ring, tick(), task(text));
			(void)put_end(&dir, ring, tick(), domain);
			*n += room;
		}
	}
}

static void killed_while_rings_are_full(void)
{
	const struct xs_options options = { .chrome_itt = true,
					    .ring_size = XS_RING_MIN,
					    .on_full = XS_FULL_DROP };

	/*
	 * more than a step and less than a quarter of each ring, which would be committed while it
	 * is read
	 */
	kill_commits(victim_without_backlog, &options, 2 * XS_RING_MIN * 3 / 16 / 32, 120, 0,
		     fill_up);
}

static const struct xs_options backlog_options = { .chrome_itt = true,
						   .ring_size = XS_RING_MIN,
						   .backlog = 8 * XS_RING_MIN,
						   .on_full = XS_FULL_DROP };
/* of which two fifths have a place in memory, the rest on disk */
static const struct xs_options disk_options = { .chrome_itt = true,
						.ring_size = XS_RING_MIN,
						.backlog = XS_RING_MIN / 2,
						.backlog_disk = 8 * XS_RING_MIN,
						.on_full = XS_FULL_DROP };
/* of both rings in all; five steps of each */
#define MUCH (2 * XS_RING_MIN * 5 / 8 / 32)

/* A file that a victim has made. */
static bool spool_left(void)
{
	DIR *list = opendir(spools);
	struct dirent *entry;
	bool left = false;

	while (list && (entry = readdir(list)))
		left |= !strncmp(entry->d_name, ".xstrace-backlog-", 17);
	if (list)
		closedir(list);
	return left;
}

static void killed_while_moving(void)
{
	kill_commits(victim_that_moves, &backlog_options, MUCH, 30, 120, fill_up);
}

static void killed_while_moving_to_disk(void)
{
	kill_commits(victim_that_moves, &disk_options, MUCH, 10, 6, fill_up);
	CHECK(!spool_left(), "the spool is still there");
}

static void killed_with_backlog(void)
{
	kill_commits(victim_in_backlog, &backlog_options, MUCH, 40, 0, fill_up);
	kill_commits(victim_behind_backlog, &backlog_options, MUCH, 40, 0, fill_up);
	kill_commits(victim_in_backlog, &disk_options, MUCH, 8, 0, fill_up);
	kill_commits(victim_behind_backlog, &disk_options, MUCH, 8, 0, fill_up);
}

/* Moves what the rings hold, twice. */
static void move_twice(unsigned *n)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		xs_backlog_open(&dir.run, &processes);
		processes = adopt();
		xs_process_find_tracks(processes, false);
		xs_backlog_relieve(&dir.run, UINT64_MAX);
		(void)raise(SIGSTOP);
		xs_backlog_relieve(&dir.run, UINT64_MAX);
		_exit(0);
	}
	(void)waitpid(pid, &status, WUNTRACED);
	fill(n, MUCH);
	(void)kill(pid, SIGCONT);
	(void)waitpid(pid, &status, 0);
	CHECK(!status, "status %d", status);
}

/* One successor commits a part, and is killed; the next one writes all. */
static void recover_backlog(void)
{
	char when[64];
	unsigned n;
	int status;
	pid_t pid;

	for (uint64_t part = 0; part <= 4 * (uint64_t)XS_RING_MIN; part += 20000) {
		prepare(part / 20000 % 2 ? &disk_options : &backlog_options, &n);
		fill(&n, MUCH);
		move_twice(&n);
		pid = fork();
		if (!pid) {
			dir.run.recovering = true;
			xs_backlog_open(&dir.run, &processes);
			processes = adopt();
			read_part(processes, part);
			xs_process_commit(processes);
			_exit(0);
		}
		(void)waitpid(pid, &status, 0);
		CHECK(!status, "status %d", status);
		recover();
		(void)snprintf(when, sizeof(when), "killed behind %" PRIu64 " bytes", part);
		each_once(n, when);
		close_all();
	}
}

/* What a commit leaves when it is killed just before its turn is stored, or just behind that. */
static void go_back_to(bool stored)
{
	struct xs_kept_file *kept = rundir_kept(&dir, file);
	uint64_t turn = atomic_load(&kept->turn);

	CHECK(turn >= 2 && atomic_load(&kept->turn_check) == ~turn, "turn %" PRIu64, turn);
	atomic_store(&kept->turn_check, ~(turn - 1));
	if (stored)
		return;
	atomic_store(&kept->turn, turn - 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(rundir_kept_ring(kept, i)->saved[0].turn == turn, "ring %u", i);
		atomic_store(&rundir_ring(file, i)->tail, 0);
	}
}

/* The same points by hand. */
static void recover_prepared(bool stored)
{
	struct xs_process *process;
	unsigned n;
	int status;
	pid_t pid;

	prepare(NULL, &n);
	fill(&n, 40);
	pid = fork();
	if (!pid) {
		process = adopt();
		xs_process_read(process, false);
		xs_process_commit(process);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	go_back_to(stored);
	recover();
	each_once(n, stored ? "behind its turn" : "before its turn");
	close_all();
}

static void recover_before_its_turn(void)
{
	recover_prepared(false);
}

static void recover_behind_its_turn(void)
{
	recover_prepared(true);
}

/* Recovery is a drain process too: killed, it can be done again. */
static void recover_twice(void)
{
	unsigned n;
	int status;
	pid_t pid;

	for (int point = 0; point < 3; point++) {
		prepare(NULL, &n);
		fill(&n, 40);
		pid = fork();
		if (!pid) {
			struct xs_process *process = adopt();

			xs_process_read(process, false);
			xs_process_commit(process);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (point)
			go_back_to(point == 2);
		fill(&n, 40);
		pid = fork();
		if (!pid) {
			struct xs_process *process;

			dir.run.recovering = true;
			process = adopt();
			xs_process_read(process, false);
			xs_process_commit(process);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		fill(&n, 10);
		recover();
		each_once(n, point == 0	  ? "after a kill between commits"
			     : point == 1 ? "after a kill before a turn"
					  : "after a kill behind a turn");
		close_all();
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	/* what the test writes is in memory: where it looks for a disk next */
	if (!mkdtemp(spools))
		return 1;
	(void)setenv("TMPDIR", spools, 1);
	tap_run("recovery after a kill just before a turn", recover_before_its_turn);
	tap_run("recovery after a kill just behind a turn", recover_behind_its_turn);
	tap_run("recovery after a killed recovery", recover_twice);
	tap_run("recovery of a backlog after a killed recovery", recover_backlog);
	if (STEPPING) {
		tap_run("killed at any instruction of a move", killed_while_moving);
		tap_run("killed at any instruction of a move to disk", killed_while_moving_to_disk);
		tap_run("killed in commits of a backlog", killed_with_backlog);
		tap_run("killed at any instruction of a commit", killed_while_committing);
		tap_run("killed in a commit, and rings fill up", killed_while_rings_are_full);
	} else {
		tap_skip("killed at any instruction of a move", "not under a sanitizer");
		tap_skip("killed at any instruction of a move to disk", "not under a sanitizer");
		tap_skip("killed in commits of a backlog", "not under a sanitizer");
		tap_skip("killed at any instruction of a commit", "not under a sanitizer");
		tap_skip("killed in a commit, and rings fill up", "not under a sanitizer");
	}
	(void)rmdir(spools);
	return tap_done();
}

#include "kmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "below.h"
#include "channel.h"
#include "json.h"
#include "output.h"
#include "paths.h"
#include "stored.h"
#include "text.h"
#include "version.h"

#define READY_NS 5000000000ull /* the application does not wait longer for bpftrace to begin */
/* how long bpftrace may take to end after SIGINT, then after SIGTERM */
#define POLITE_NS      2000000000ull
#define PIPE_SIZE      (1 << 20)
#define LINE_MAX_BYTES 4096u
#define PIECE	       65536u

struct xs_kmd {
	struct xs_run *run;
	pid_t pid; /* 0: it has ended */
	int fd;	   /* its stdout; -1: at its end */
	int status;
	uint64_t began, asked; /* CLOCK_MONOTONIC; asked: when it was told to end, 0: not yet */
	int signals;	       /* sent so far */
	bool much;	       /* there was a lot to read: more is on its way */
	bool ready, cut;       /* cut: the rest of an overlong line follows */
	char line[LINE_MAX_BYTES];
	size_t length;
	uint64_t events;
	uint64_t offset;      /* of a time of CLOCK_BOOTTIME to one of the trace */
	struct xs_output out; /* data NULL: no event yet */
	char path[PATH_MAX];
};

/* ---- the program ---- */

/* As the launcher starts it: not with what this process ignores. `failed`: why it cannot be run. */
static __attribute__((noinline)) pid_t start(char **argv, int out, volatile int *failed)
{
	pid_t parent = getpid(), pid = vfork();

	if (pid == 0) {
		struct sigaction action = { .sa_handler = SIG_DFL };

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpgid(0, 0); /* what it starts ends with it */
		for (int i = 1; i < NSIG; i++)
			(void)sigaction(i, &action, NULL);
		(void)dup2(out, STDOUT_FILENO); /* stdin is /dev/null already */
		if (getppid() == parent)
			execvp(argv[0], argv);
		*failed = errno;
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	if (pid < 0)
		*failed = errno;
	return pid;
}

static void set_ready(struct xs_kmd *kmd)
{
	kmd->ready = true;
	xs_channel_say(kmd->run->channel, XS_WORD_READY, 0);
}

static const char *about_rights(void)
{
	return geteuid() ? " (it needs root)" : "";
}

struct xs_kmd *xs_kmd_start(struct xs_run *run)
{
	char *argv[] = { "bpftrace", run->copied_options.kmd_script, NULL };
	struct xs_kmd *kmd = calloc(1, sizeof(*kmd));
	volatile int failed = 0;
	int fds[2] = { -1, -1 };

	if (!kmd)
		return NULL;
	kmd->run = run;
	kmd->began = xs_clock_ns(CLOCK_MONOTONIC);
	kmd->offset = xs_clock_ns(CLOCK_REALTIME) - xs_clock_ns(CLOCK_BOOTTIME) - run->base;
	if (access(argv[1], R_OK) < 0) {
		xs_tell("xstrace: --chrome-kmd-logging %s: %s; nothing of the kernel is recorded\n",
			argv[1], strerror(errno));
	} else if (pipe2(fds, O_CLOEXEC) < 0) {
		xs_tell("xstrace: --chrome-kmd-logging: %s; nothing of the kernel is recorded\n",
			strerror(errno));
	} else {
		(void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE);
		(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
		kmd->fd = fds[0];
		kmd->pid = start(argv, fds[1], &failed);
		close(fds[1]);
		if (!failed)
			return kmd;
		if (kmd->pid > 0)
			(void)waitpid(kmd->pid, NULL, 0);
		close(fds[0]);
		xs_tell("xstrace: --chrome-kmd-logging: bpftrace cannot be run: %s%s; nothing of "
			"the kernel is recorded\n",
			failed == ENOENT ? "it is not installed" : strerror(failed),
			about_rights());
	}
	set_ready(kmd);
	free(kmd);
	return NULL;
}

/* ---- its output ---- */

static char *xs_put(char *o, const char *text)
{
	size_t n = strlen(text);

	memcpy(o, text, n);
	return o + n;
}

/*
 * oskmd.<pid>[.<rank>].json, or with --result-dir oskmd.json beside run_config.json; pid:
 * xstrace's, as unitrace has it.
 */
static int create(struct xs_kmd *kmd)
{
	struct xs_run *run = kmd->run;
	const char *own = run->control->own_directory;
	char number[16] = "", rank[16] = "", dir[PATH_MAX];
	int error = xs_path_from_root(run->options->output_dir, dir, sizeof(dir));

	if (error < 0)
		return error;
	if (run->rank >= 0)
		(void)snprintf(rank, sizeof(rank), ".%d", run->rank);
	for (unsigned n = 1; n < 10000; n++) {
		int fd, length;

		if (n > 1)
			(void)snprintf(number, sizeof(number), "-%u", n);
		if (run->options->result_dir[0])
			length = snprintf(kmd->path, sizeof(kmd->path), "%.*s/oskmd%s.json",
					  PATH_MAX - 1, own, number);
		else
			length = snprintf(kmd->path, sizeof(kmd->path), "%s/oskmd.%d%s%s.json", dir,
					  run->launcher_pid, rank, number);
		if (length >= (int)sizeof(kmd->path))
			return -ENAMETOOLONG;
		fd = xs_below_create(run, XS_BASE_OUTPUT, kmd->path,
				     run->options->result_dir[0] ? 2 : 1);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

static bool open_file(struct xs_kmd *kmd)
{
	const struct xs_run *run = kmd->run;
	int fd = create(kmd);
	char *o;

	if (xs_output_init(&kmd->out, fd, 0, XS_COMPRESS_NONE) < 0) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (fd < 0) {
		kmd->out.error = fd;
		xs_tell("xstrace: cannot write %s: %s; nothing of the kernel is recorded\n",
			kmd->path, strerror(-fd));
	}
	o = xs_put(xs_output_put(&kmd->out),
		   "{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":");
	o = xs_put(xs_json_uint(o, run->base),
		   ",\"metadata\":{\"tool\":\"xstrace\",\"version\":\"" XS_VERSION
		   "\",\"format\":" XS_TRACE_FORMAT ",\"run\":\"");
	o = xs_put(xs_json_escape(o, run->run_id, strlen(run->run_id)), "\",\"host\":\"");
	o = xs_put(xs_json_escape(o, run->host, strlen(run->host)), "\",\"pid\":0,\"script\":\"");
	o = xs_put(xs_json_escape(o, run->options->kmd_script, strlen(run->options->kmd_script)),
		   "\"");
	if (run->rank >= 0)
		o = xs_json_uint(xs_put(o, ",\"rank\":"), (uint64_t)run->rank);
	o = xs_put(o,
		   "},\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":"
		   "0,\"args\":{\"name\":\"HOST-OS-KMD<");
	o = xs_put(xs_json_escape(o, run->host, strlen(run->host)), ">\"}},\n");
	xs_output_put_end(&kmd->out, o);
	(void)xs_output_head(&kmd->out);
	return true;
}

/* A field up to the next comma; false: there is none. */
static bool take_field(char **rest, char **ret, size_t *ret_length)
{
	char *comma = strchr(*rest, ',');

	*ret = *rest;
	*ret_length = comma ? (size_t)(comma - *rest) : strlen(*rest);
	*rest = comma ? comma + 1 : *rest + *ret_length;
	return *ret_length;
}

static bool take_number(char **rest, uint64_t highest, uint64_t *ret)
{
	char *text, *end;
	size_t length;

	if (!take_field(rest, &text, &length) || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && end == text + length && *ret <= highest;
}

static void put_event(struct xs_kmd *kmd, uint64_t tid, const char *name, size_t length,
		      uint64_t start, uint64_t duration, const char *data)
{
	char *o;

	if (!kmd->out.data && !open_file(kmd))
		return;
	o = xs_put(xs_json_uint(xs_put(xs_output_put(&kmd->out), "{\"ph\":\"X\",\"tid\":"), tid),
		   ",\"pid\":0,\"ts\":");
	o = xs_put(xs_json_micros(o, start + kmd->offset), ",\"dur\":");
	o = xs_put(xs_json_micros(o, duration), ",\"cat\":\"os_op\",\"name\":\"");
	o = xs_put(xs_json_escape(o, name, length), "\"");
	if (*data)
		o = xs_put(xs_json_escape(xs_put(o, ",\"args\":{\"data\":\""), data, strlen(data)),
			   "\"}");
	xs_output_put_end(&kmd->out, xs_put(o, "},\n"));
	kmd->events++;
}

static void read_line(struct xs_kmd *kmd, char *line)
{
	uint64_t tid, begin, duration;
	char *name;
	size_t length;

	if (take_number(&line, INT32_MAX, &tid) && take_field(&line, &name, &length) &&
	    take_number(&line, INT64_MAX, &begin) && take_number(&line, INT64_MAX, &duration))
		put_event(kmd, tid, name, length, begin, duration, line);
}

static void read_bytes(struct xs_kmd *kmd, const char *data, size_t length)
{
	for (const char *c = data; c < data + length; c++) {
		if (*c == '\n') {
			kmd->line[kmd->length] = '\0';
			if (!kmd->cut)
				read_line(kmd, kmd->line);
			kmd->length = 0;
			kmd->cut = false;
		} else if (kmd->length < sizeof(kmd->line) - 1) {
			kmd->line[kmd->length++] = *c ? *c : ' ';
		} else {
			kmd->cut = true;
		}
		if (kmd->out.data && xs_output_full(&kmd->out))
			(void)xs_output_flush(&kmd->out);
	}
}

static void read_all(struct xs_kmd *kmd)
{
	char data[PIECE];
	ssize_t n = 0, all = 0;

	/* one piece after the other, but the rings are waiting too */
	for (int i = 0; i < PIPE_SIZE / (int)PIECE && kmd->fd >= 0; i++) {
		n = read(kmd->fd, data, sizeof(data));
		if (n > 0)
			read_bytes(kmd, data, (size_t)n);
		all += n > 0 ? n : 0;
		if (n > 0 && !kmd->ready)
			set_ready(kmd);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
	}
	kmd->much = all >= PIPE_SIZE / 4;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		close(kmd->fd);
		kmd->fd = -1;
	}
}

/* Told to end politely first, so that it prints what it has. */
static void ask(struct xs_kmd *kmd)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGKILL };
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);

	if (kmd->signals == 3 || (kmd->asked && now - kmd->asked < POLITE_NS))
		return;
	kmd->asked = now;
	(void)kill(-kmd->pid, signals[kmd->signals++]);
	if (kmd->signals == 3)
		xs_tell("[WARNING] bpftrace did not end when it was asked to; it was killed\n");
}

bool xs_kmd_look(struct xs_kmd *kmd, bool stop)
{
	pid_t ended = 0;

	if (kmd->pid)
		ended = waitpid(kmd->pid, &kmd->status, WNOHANG);
	if (kmd->pid && !ended && stop)
		ask(kmd);
	read_all(kmd); /* after its end was noticed: all that it printed is there */
	if (!kmd->ready && xs_clock_ns(CLOCK_MONOTONIC) - kmd->began >= READY_NS) {
		xs_tell("[WARNING] bpftrace has not begun after %llu s; the application starts "
			"without waiting for it\n",
			READY_NS / 1000000000ull);
		set_ready(kmd);
	}
	if (!ended)
		return kmd->pid != 0;
	if (!kmd->asked)
		xs_tell("[WARNING] bpftrace ended (%s %d)%s by itself; nothing more of the kernel "
			"is recorded\n",
			WIFSIGNALED(kmd->status) ? "signal" : "status",
			WIFSIGNALED(kmd->status) ? WTERMSIG(kmd->status) : WEXITSTATUS(kmd->status),
			about_rights());
	kmd->pid = 0;
	for (int i = 0; i < 64 && kmd->fd >= 0; i++) {
		size_t before = kmd->length + kmd->events;

		read_all(kmd);
		if (before == kmd->length + kmd->events)
			break; /* somebody else holds its end open, and prints nothing */
	}
	if (!kmd->ready)
		set_ready(kmd);
	return false;
}

bool xs_kmd_urgent(const struct xs_kmd *kmd)
{
	return !kmd->ready || kmd->asked || kmd->much;
}

void xs_kmd_close(struct xs_kmd *kmd)
{
	char tail[256], *o = tail;
	bool written = kmd->out.data && !kmd->out.error;
	int error = 0;

	if (kmd->fd >= 0)
		close(kmd->fd);
	if (kmd->out.data) {
		/* an event to close the list: all others end with a comma */
		o = xs_put(o, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,\"tid\":0,"
			      "\"args\":{\"sort_index\":0}}\n],\"otherData\":{\"events\":");
		o = xs_put(xs_json_uint(o, kmd->events), "}}\n");
		error = xs_output_close(&kmd->out, tail, (size_t)(o - tail));
	}
	if (error)
		xs_tell("xstrace: cannot write all of %s: %s\n", kmd->path, strerror(-error));
	else if (written)
		xs_tell_output("Kernel events are", kmd->path, &kmd->out, 0);
	else
		xs_tell("[INFO] No kernel event is logged\n");
	kmd->run->wrote_something |= written;
	free(kmd);
}

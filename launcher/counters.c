/*
 * --cpu-metrics: which events processors and kernel count here, tried on this process; and the
 * events of the application, which xstrace-cpu reads.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher.h"
#include "text.h"

#define WHAT "--cpu-metrics: "

static int perf_open(struct perf_event_attr *attr, int group)
{
	return (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

/* ---- what is wished for ---- */

static int unknown(const char *name, size_t length)
{
	const char *nearest = xs_cpu_event_name(0);
	size_t best = SIZE_MAX;

	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++) {
		size_t distance =
			length > 64 ? 64 : xs_edit_distance(xs_cpu_event_name(event), name, length);

		if (distance < best) {
			best = distance;
			nearest = xs_cpu_event_name(event);
		}
	}
	xs_tell("xstrace: " WHAT "unknown event '%.*s'; did you mean %s?\n",
		(int)(length < 64 ? length : 64), name, nearest);
	return -1;
}

static int parse(const char *text, uint32_t *ret)
{
	*ret = 0;
	for (;; text++) {
		size_t length = strcspn(text, ",");
		uint32_t event = xs_cpu_event_find(text, length);

		if (!length) {
			xs_tell("xstrace: " WHAT "takes events with one comma between each two, as "
				"cycles,page-faults\n");
			return -1;
		}
		if (event == XS_CPU_EVENTS)
			return unknown(text, length);
		*ret |= XS_CPU_BIT(event);
		text += length;
		if (!*text)
			return 0;
	}
}

/* "cycles,instructions" */
static const char *list(uint32_t events, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (events >> event & 1 && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "",
						 xs_cpu_event_name(event));
	return text;
}

/* ---- what there is ---- */

/* 0, or the -errno for which it is not counted. */
static int try(uint32_t event, int group, int *ret_fd)
{
	struct perf_event_attr attr;
	int fd;

	xs_cpu_event_attr(event, &attr);
	fd = perf_open(&attr, group);
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? -errno : 0;
}

/* Those that can be counted; *ret_error: of the last one that cannot, 0: there is none. */
static uint32_t countable(uint32_t events, int *ret_error)
{
	uint32_t found = 0;

	*ret_error = 0;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++) {
		int error = events >> event & 1 ? try(event, -1, NULL) : -1;

		if (!error)
			found |= XS_CPU_BIT(event);
		else if (events >> event & 1)
			*ret_error = error;
	}
	return found;
}

static long paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	char text[32] = "";

	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		(void)fclose(file);
	}
	return strtol(text, NULL, 10);
}

/* Why it is so, and what mends it. */
static const char *reason(int error)
{
	switch (error) {
	case -EACCES:
		return paranoid() > 2 ? "this user may not count (sudo sysctl "
					"kernel.perf_event_paranoid=2)"
				      : "this user may not count (sudo sysctl "
					"kernel.perf_event_paranoid=1)";
	case -EPERM:
		return "a sandbox forbids perf_event_open() (of a container: --cap-add PERFMON, or "
		       "--security-opt with a seccomp profile that allows it)";
	case -ENOSYS:
		return "this kernel has no perf_event_open()";
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		return "this machine has no such counters";
	default:
		return strerror(-error);
	}
}

/* Are there counters for all of them at once? -1 after one line. */
static int check_group(uint32_t events)
{
	int fds[XS_CPU_EVENTS], count = 0, error = 0;
	uint32_t event;

	for (event = 0; event < XS_CPU_EVENTS && !error; event++)
		if (events >> event & 1) {
			error = try(event, count ? fds[0] : -1, &fds[count]);
			count += !error;
		}
	for (int i = 0; i < count; i++)
		(void)close(fds[i]);
	if (!error)
		return 0;
	xs_tell("xstrace: " WHAT "the processor cannot count so many events at once: leave out %s "
		"or others of the processor\n",
		xs_cpu_event_name(event - 1));
	return -1;
}

#if defined(__x86_64__)
/* May a program read its thread's counters without a system call? */
static bool has_instruction(uint32_t event)
{
	struct perf_event_mmap_page *page;
	bool may = false;
	int fd;

	/* a thread may be switched to a sort of processor that has other counters */
	if (!access("/sys/bus/event_source/devices/cpu_atom", F_OK) || try(event, -1, &fd))
		return false;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) {
		may = page->cap_user_rdpmc;
		(void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
	}
	(void)close(fd);
	return may;
}
#else
static bool has_instruction(uint32_t event)
{
	(void)event;
	return false;
}
#endif

/* What of the processor's counters tasks can have. -1 after one line. */
static int select_hardware(struct xs_options *options)
{
	uint32_t hardware = options->cpu_events & XS_CPU_HARDWARE;

	if (!hardware)
		return 0;
	if (has_instruction((uint32_t)__builtin_ctz(hardware))) {
		options->cpu_events_of_tasks |= hardware;
		return check_group(hardware);
	}
	xs_tell("[WARNING] " WHAT "programs cannot read the processor's counters here: tasks get "
		"those of the kernel, kernels of OpenCL both\n");
	options->cpu_events |= XS_CPU_DEFAULT_SOFTWARE;
	return 0;
}

static void tell_missing(uint32_t missing, uint32_t counted, int error)
{
	char names[512], others[512];

	xs_tell("[WARNING] " WHAT "%s not counted: %s; counted: %s\n",
		list(missing, names, sizeof(names)), reason(error),
		list(counted, others, sizeof(others)));
}

static void tell_kernels_alone(uint32_t events)
{
	char names[512];

	xs_tell("[INFO] " WHAT "%s is counted for kernels of OpenCL on processors alone; without "
		"such kernels there is no count: name events that tasks have, too\n",
		list(events, names, sizeof(names)));
}

int xs_counters_select(struct xs_options *options)
{
	bool by_default = !strcmp(options->cpu_metrics, "default");
	uint32_t wanted = XS_CPU_DEFAULT, missing;
	int error, more;

	if (!options->cpu_metrics[0])
		return 0;
	if (!by_default && parse(options->cpu_metrics, &wanted) < 0)
		return -1;
	options->cpu_events = countable(wanted, &error);
	missing = wanted & ~options->cpu_events;
	if (missing & XS_CPU_HARDWARE && (by_default || missing == wanted)) {
		wanted = (wanted & ~XS_CPU_HARDWARE) | XS_CPU_DEFAULT_SOFTWARE;
		options->cpu_events |= countable(XS_CPU_DEFAULT_SOFTWARE, &more);
	}
	/* a thread asks the kernel for these without perf_event_open() */
	options->cpu_events_of_tasks = wanted & ~options->cpu_events & ~XS_CPU_HARDWARE &
				       ~XS_CPU_NOT_OF_TASKS;
	if (select_hardware(options) < 0)
		return -1;
	options->cpu_events_of_tasks |= options->cpu_events & ~XS_CPU_HARDWARE &
					~XS_CPU_NOT_OF_TASKS;
	if (missing)
		tell_missing(missing, options->cpu_events | options->cpu_events_of_tasks, error);
	if (options->cpu_events && !(options->cpu_events & XS_CPU_HARDWARE) &&
	    !options->cpu_events_of_tasks)
		tell_kernels_alone(options->cpu_events);
	return 0;
}

/* ---- the application ---- */

/* All signals are as they are in the application, and may end it here as there. */
void xs_counters_offer(const struct xs_launch *launch)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(XS_CPU_EVENTS * sizeof(int))];
	} control;
	char word = 0;
	struct iovec part = { .iov_base = &word, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control };
	int fds[XS_CPU_EVENTS], count = 0;
	struct cmsghdr *head = &control.head;

	if (launch->counters < 0)
		return;
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++) {
		struct perf_event_attr attr;

		if (!(launch->options->cpu_events >> event & 1))
			continue;
		xs_cpu_event_attr(event, &attr);
		attr.disabled = attr.enable_on_exec = attr.inherit = 1;
		fds[count] = perf_open(&attr, -1);
		if (fds[count++] < 0)
			return; /* exec closes the others, and nobody counts */
	}
	memset(&control, 0, sizeof(control));
	message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	memcpy(CMSG_DATA(head), fds, (size_t)count * sizeof(int));
	(void)sendmsg(launch->counters, &message, MSG_NOSIGNAL);
}

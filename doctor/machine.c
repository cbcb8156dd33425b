/*
 * The machine: what events, rings, stacks and counters need of it.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "regular.h"
#include "version.h"

#define MIB	  (1ull << 20)
#define SHM_LEAST (32 * MIB)	/* for a run directory: docs/ARCHITECTURE.md */
#define FILE_MOST (256ll << 20) /* bytes of a file that are searched */
#define SHM_GOOD  (320 * MIB)	/* with rings, and a backlog of the default size */

void dr_first_line(const char *path, char *text, size_t size)
{
	int fd = xs_open_regular(path);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

bool dr_file_has(const char *path, const char *text)
{
	static char data[1 << 16];
	size_t keep = strlen(text) - 1, have = 0;
	int fd = xs_open_regular(path);
	long long left = FILE_MOST;
	bool found = false;
	ssize_t n;

	while (fd >= 0 && !found && left > 0 &&
	       (n = read(fd, data + have, sizeof(data) - have)) > 0) {
		have += (size_t)n;
		left -= n;
		found = memmem(data, have, text, keep + 1);
		if (have > keep) {
			memmove(data, data + have - keep, keep);
			have = keep;
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static void versions(void)
{
	struct utsname name = { .sysname = "?" };

	(void)uname(&name);
	dr_say(DR_OK, "versions", NULL, "xstrace " XS_VERSION ", Linux %s, %s, glibc %s",
	       name.release, name.machine, gnu_get_libc_version());
}

static void clock_source(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char source[64];

	dr_first_line(path, source, sizeof(source));
	if (!strcmp(source, "tsc"))
		dr_say(DR_OK, "clock", NULL, "the time stamp counter, as the kernel's own");
	else
		dr_say(DR_NOTE, "clock",
		       "nothing, unless the kernel's log tells why it does not trust the counter",
		       "the kernel's clock source is %s and not tsc: times come from "
		       "CLOCK_MONOTONIC, and an event costs some 20 to 1,000 ns more",
		       source[0] ? source : "not known");
}

static void shared_memory(void)
{
	struct statvfs fs;
	unsigned long long room, all;

	if (statvfs("/dev/shm", &fs) < 0 || access("/dev/shm", W_OK | X_OK) < 0) {
		dr_say(DR_NOTE, "/dev/shm", "mount a tmpfs there (docker run --shm-size=1g)",
		       "%s: run directories go to $XDG_RUNTIME_DIR, $TMPDIR or /tmp",
		       strerror(errno));
		return;
	}
	room = (unsigned long long)fs.f_bavail * fs.f_frsize;
	all = (unsigned long long)fs.f_blocks * fs.f_frsize;
	if (room < SHM_LEAST)
		dr_say(DR_NOTE, "/dev/shm",
		       "make it larger: mount -o remount,size=1G /dev/shm (docker run "
		       "--shm-size=1g)",
		       "%llu of %llu MiB are free, less than 32: run directories go to "
		       "$XDG_RUNTIME_DIR, $TMPDIR or /tmp",
		       room / MIB, all / MIB);
	else if (room < SHM_GOOD)
		dr_say(DR_NOTE, "/dev/shm",
		       "make it larger, or --backlog 16M: mount -o remount,size=1G /dev/shm "
		       "(docker run --shm-size=1g)",
		       "%llu of %llu MiB are free: programs with many threads or bursts of events "
		       "may wait, or lose events",
		       room / MIB, all / MIB);
	else
		dr_say(DR_OK, "/dev/shm", NULL, "%llu of %llu MiB are free", room / MIB, all / MIB);
}

static void limits(void)
{
	static const struct {
		int kind;
		const char *name;
		unsigned long long application, own; /* docs/ARCHITECTURE.md#limits */
	} rows[] = {
		{ RLIMIT_AS, "address space (ulimit -v)", 100 * MIB, 100 * MIB },
		{ RLIMIT_DATA, "data (ulimit -d)", 1 * MIB, 16 * MIB },
		{ RLIMIT_STACK, "stack (ulimit -s)", MIB / 8, MIB / 8 },
		{ RLIMIT_NOFILE, "open files (ulimit -n)", 6, 10 },
		{ RLIMIT_FSIZE, "file size (ulimit -f)", 0, 24 * MIB },
	};
	bool all = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rlimit limit;

		if (getrlimit((__rlimit_resource_t)rows[i].kind, &limit) < 0 ||
		    (limit.rlim_cur >= rows[i].application && limit.rlim_max >= rows[i].own))
			continue;
		all = false;
		dr_say(DR_BAD, "limits", "raise it (a hard limit: ask who runs the machine)",
		       "%s is %llu, too little: programs run untraced", rows[i].name,
		       (unsigned long long)limit.rlim_cur);
	}
	if (all)
		dr_say(DR_OK, "limits", NULL,
		       "the resource limits (ulimit) leave room for tracing");
}

/* 0, or the errno of seizing a child, as --stacks does. */
static int try_ptrace(void)
{
	pid_t pid = fork();
	int error;

	if (!pid) {
		pause();
		_exit(0);
	}
	if (pid < 0)
		return errno;
	error = ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 ? errno : 0;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return error;
}

static void stacks(void)
{
	char scope[16];
	int error = try_ptrace();

	dr_first_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	if (error)
		dr_say(DR_NOTE, "ptrace", "allow ptrace (docker run --cap-add SYS_PTRACE)",
		       "%s: --stacks, --watchdog and --stacks-on-crash cannot look into processes",
		       strerror(error));
	else if (scope[0] >= '2')
		dr_say(DR_NOTE, "ptrace", "sysctl kernel.yama.ptrace_scope=1",
		       "kernel.yama.ptrace_scope is %s: --stacks needs CAP_SYS_PTRACE", scope);
	else
		dr_say(DR_OK, "ptrace", NULL, "--stacks and --watchdog can look into processes");
}

static int try_perf(unsigned type, unsigned long long config)
{
	struct perf_event_attr attr = { .type = type,
					.size = sizeof(attr),
					.config = config,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

/* Does this process have the capability of that number? */
static bool capable(int number)
{
	char line[128];
	unsigned long long set = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		(void)sscanf(line, "CapEff: %llx", &set);
	if (file)
		(void)fclose(file);
	return set >> number & 1;
}

static void attach(void)
{
	int ptrace_error = try_ptrace();
	int perf_error = try_perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	char scope[16];

	dr_first_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	if (ptrace_error)
		dr_say(DR_NOTE, "attach", "allow ptrace (docker run --cap-add SYS_PTRACE)",
		       "%s: --attach cannot look into programs that run already",
		       strerror(ptrace_error));
	else if (scope[0] >= '1' && (scope[0] >= '3' || !capable(CAP_SYS_PTRACE)))
		dr_say(DR_NOTE, "attach",
		       scope[0] >= '3'
			       ? "nothing until the next boot"
			       : "sudo xstrace --attach, or sysctl kernel.yama.ptrace_scope=0",
		       "kernel.yama.ptrace_scope is %s: --attach cannot look into programs that "
		       "run already",
		       scope);
	else if (perf_error)
		dr_say(DR_NOTE, "attach",
		       "sysctl kernel.perf_event_paranoid=2 (docker run --cap-add PERFMON)",
		       "perf_event_open: %s: --attach holds threads that run for a moment at each "
		       "look",
		       strerror(perf_error));
	else
		dr_say(DR_OK, "attach", NULL,
		       "--attach can sample programs that run already, and need not hold those "
		       "that are not Python's");
}

static void counters(void)
{
	int hardware = try_perf(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	char paranoid[16];

	dr_first_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	if (!hardware)
		dr_say(DR_OK, "perf_event", NULL,
		       "--cpu-metrics has the processor's counters (perf_event_paranoid %s)",
		       paranoid[0] ? paranoid : "not known");
	else if (hardware == EACCES || hardware == EPERM)
		dr_say(DR_NOTE, "perf_event",
		       "sysctl kernel.perf_event_paranoid=2 (docker run --cap-add PERFMON)",
		       "%s (perf_event_paranoid %s): --cpu-metrics has what the kernel counts, not "
		       "cycles and cache misses",
		       strerror(hardware), paranoid[0] ? paranoid : "not known");
	else
		dr_say(DR_NOTE, "perf_event",
		       "nothing, if this is a virtual machine: its host keeps the counters",
		       "the processor's counters are not there (%s): --cpu-metrics has what the "
		       "kernel counts",
		       strerror(hardware));
}

/* Who may read a GPU's counters; nothing is said where there is no such GPU. */
static void gpu_counters(void)
{
	static const struct {
		const char *path, *what, *todo;
	} rows[] = {
		{ "/proc/sys/dev/i915/perf_stream_paranoid", "i915",
		  "sysctl dev.i915.perf_stream_paranoid=0" },
		{ "/proc/sys/dev/xe/observation_paranoid", "xe",
		  "sysctl dev.xe.observation_paranoid=0" },
	};
	char value[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		dr_first_line(rows[i].path, value, sizeof(value));
		if (value[0] && value[0] != '0' && geteuid())
			dr_say(DR_NOTE, "GPU counters", rows[i].todo,
			       "the driver %s keeps them from users other than root: -q and -k "
			       "need them",
			       rows[i].what);
		else if (value[0])
			dr_say(DR_OK, "GPU counters", NULL,
			       "the driver %s lets this user read them", rows[i].what);
	}
	if (access("/proc/driver/nvidia/params", F_OK))
		return;
	if (geteuid() && dr_file_has("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1"))
		dr_say(DR_NOTE, "GPU counters",
		       "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, "
		       "then "
		       "reload the driver",
		       "NVIDIA's driver keeps them from users other than root: -q and -k need "
		       "them");
	else
		dr_say(DR_OK, "GPU counters", NULL, "NVIDIA's driver lets this user read them");
}

/* Device files of GPUs that this user cannot open. */
static void gpu_files(void)
{
	static const char *const patterns[] = { "/dev/dri/renderD*", "/dev/nvidia[0-9]*",
						"/dev/dxg", "/dev/kfd" };
	glob_t found = { 0 };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		(void)glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && i < 16; i++)
		if (access(found.gl_pathv[i], R_OK | W_OK))
			dr_say(DR_NOTE, "GPU files",
			       "become a member of the file's group (usermod -aG render,video "
			       "$USER)",
			       "%s: %s", found.gl_pathv[i], strerror(errno));
	if (!found.gl_pathc)
		dr_say(DR_NOTE, "GPU files",
		       "if there is a GPU: its driver; in a container --device /dev/dri or --gpus "
		       "all",
		       "there is no device file of a GPU (/dev/dri/renderD*, /dev/nvidia*)");
	globfree(&found);
}

static void container(void)
{
	uint64_t limit = xs_memory_limit();
	const char *kind = NULL;
	char line[256];

	dr_first_line("/proc/version", line, sizeof(line));
	if (strstr(line, "microsoft") || strstr(line, "Microsoft"))
		kind = "WSL: GPUs are reached by /dev/dxg; hardware counters are not there";
	else if (!access("/.dockerenv", F_OK))
		kind = "a container of Docker";
	else if (!access("/run/.containerenv", F_OK))
		kind = "a container of Podman";
	else if (getenv("container") || getenv("APPTAINER_NAME") || getenv("SINGULARITY_NAME"))
		kind = "a container";
	if (kind)
		dr_say(DR_NOTE, "container",
		       "start xstrace in the same container as the program, not around it", "%s",
		       kind);
	if (limit < 512 * MIB)
		dr_say(DR_NOTE, "memory", "a smaller --ring-size, if there are many threads",
		       "the control group has %llu MiB; a quarter of it is for rings, what finds "
		       "no "
		       "room there is lost and counted",
		       (unsigned long long)(limit / MIB));
}

void dr_machine(void)
{
	dr_section("This machine", "machine");
	versions();
	clock_source();
	shared_memory();
	limits();
	stacks();
	counters();
	attach();
	gpu_files();
	gpu_counters();
	container();
}

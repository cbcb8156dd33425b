/*
 * Prints everything that a program can see of itself and of what it was given, so that a test can
 * run it with and without the tracer and compare. Numbers that differ from run to run anyway
 * (pids, inodes) are left out; one line for each fact, the environment last and sorted.
 *
 *	env_probe [ARG...]	arguments are only printed
 */
#include <fcntl.h>
#include <dirent.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "app.h"

extern char **environ;

static void print_arguments(int argc, char **argv)
{
	printf("argc: %d\n", argc);
	for (int i = 0; i < argc; i++)
		printf("argv[%d]: %s\n", i, argv[i]);
	printf("invocation: %s %s\n", program_invocation_name, program_invocation_short_name);
	printf("getopt: optind %d opterr %d optopt %d optarg %s\n", optind, opterr, optopt,
	       optarg ? optarg : "(null)");
}

static void print_link(const char *what, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	target[n < 0 ? 0 : n] = '\0';
	printf("%s: %s\n", what, target);
}

/* "pipe:[1234]" differs in every run: "pipe" */
static void strip_inode(char *target)
{
	char *inode = strstr(target, ":[");

	if (inode && inode[2] >= '0' && inode[2] <= '9')
		*inode = '\0';
}

static void print_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int max = (int)sysconf(_SC_OPEN_MAX), own;

	if (!dir)
		die("/proc/self/fd");
	own = dirfd(dir);
	for (int fd = 0; fd < max && fd < 65536; fd++) {
		char path[64], target[PATH_MAX];
		struct stat st;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0 || fd == own)
			continue;
		target[n] = '\0';
		strip_inode(target);
		fstat(fd, &st);
		printf("fd %d: %s type %o flags %#o cloexec %d\n", fd, target,
		       (unsigned int)(st.st_mode & S_IFMT), (unsigned int)fcntl(fd, F_GETFL),
		       fcntl(fd, F_GETFD));
	}
	closedir(dir);
}

static void print_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		const char *kind = "closed";

		if (fstat(fd, &st) == 0)
			kind = isatty(fd)	      ? "terminal"
			       : S_ISFIFO(st.st_mode) ? "pipe"
			       : S_ISSOCK(st.st_mode) ? "socket"
			       : S_ISREG(st.st_mode)  ? "file"
			       : S_ISCHR(st.st_mode)  ? "device"
						      : "other";
		printf("stream %d: %s\n", fd, kind);
	}
	printf("stdin at: %jd\n", (intmax_t)lseek(STDIN_FILENO, 0, SEEK_CUR));
	printf("terminal foreground: %s\n", tcgetpgrp(STDIN_FILENO) == getpgrp() ? "us" : "not us");
}

static void print_signals(void)
{
	sigset_t blocked, pending;
	stack_t stack;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	sigpending(&pending);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		struct sigaction action;

		/* the C library keeps two for itself, and hides them */
		if (sigaction(sig, NULL, &action))
			continue;
		if (action.sa_handler != SIG_DFL || sigismember(&blocked, sig) ||
		    sigismember(&pending, sig))
			printf("signal %d: %s%s%s\n", sig,
			       action.sa_handler == SIG_DFL   ? "default"
			       : action.sa_handler == SIG_IGN ? "ignored"
							      : "handled",
			       sigismember(&blocked, sig) ? " blocked" : "",
			       sigismember(&pending, sig) ? " pending" : "");
	}
	sigaltstack(NULL, &stack);
	printf("signal stack: %s\n", stack.ss_flags & SS_DISABLE ? "none" : "set");
}

static void print_limits(void)
{
	static const char *const names[] = { "cpu",	 "fsize", "data",   "stack",
					     "core",	 "rss",	  "nproc",  "nofile",
					     "memlock",	 "as",	  "locks",  "sigpending",
					     "msgqueue", "nice",  "rtprio", "rttime" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct rlimit limit;

		if (getrlimit((int)i, &limit) == 0)
			printf("limit %s: %jd %jd\n", names[i], (intmax_t)limit.rlim_cur,
			       (intmax_t)limit.rlim_max);
	}
}

static void print_timer(const char *name, int which)
{
	struct itimerval timer;

	if (getitimer(which, &timer) == 0)
		printf("timer %s: %s\n", name,
		       timer.it_value.tv_sec || timer.it_value.tv_usec ? "running" : "off");
}

static void print_scheduling(void)
{
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	printf("cpus: %d\n", CPU_COUNT(&cpus));
	printf("nice: %d\n", getpriority(PRIO_PROCESS, 0));
	printf("scheduler: %d\n", sched_getscheduler(0));
	printf("io priority: %ld\n", syscall(SYS_ioprio_get, 1, 0));
	printf("timer slack: %d\n", prctl(PR_GET_TIMERSLACK));
	print_timer("real", ITIMER_REAL);
	print_timer("virtual", ITIMER_VIRTUAL);
	print_timer("profiling", ITIMER_PROF);
}

static void print_relations(void)
{
	pid_t self = getpid(), parent = getppid();

	printf("process group: %s\n", getpgrp() == self		     ? "own"
				      : getpgrp() == getpgid(parent) ? "parent's"
								     : "other");
	printf("session: %s\n", getsid(0) == self	      ? "own"
				: getsid(0) == getsid(parent) ? "parent's"
							      : "other");
	printf("thread is process: %d\n", syscall(SYS_gettid) == self);
}

/* the lines of /proc/self/status that say what a process is, not how big it is */
static void print_status(void)
{
	static const char *const wanted[] = {
		"Name:",   "TracerPid:", "Uid:",    "Gid:",    "Groups:",  "Threads:",	 "CapInh:",
		"CapPrm:", "CapEff:",	 "CapBnd:", "CapAmb:", "Seccomp:", "NoNewPrivs:"
	};
	FILE *f = fopen("/proc/self/status", "re");
	char line[4096];

	if (!f)
		die("/proc/self/status");
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
			if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
				printf("status %s", line);
	fclose(f);
}

static void print_rest(void)
{
	mode_t mask = umask(0);
	int death = -1, reaper = -1;

	umask(mask);
	prctl(PR_GET_PDEATHSIG, &death);
	prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	printf("umask: %03o\n", (unsigned int)mask);
	printf("parent death signal: %d\n", death);
	printf("subreaper: %d\n", reaper);
	printf("dumpable: %d\n", prctl(PR_GET_DUMPABLE));
	printf("secure: %lu\n", getauxval(AT_SECURE));
	printf("locale: %s\n", setlocale(LC_ALL, NULL));
}

/* nobody else's child may be ours, and our own must end as it says */
static void print_children(void)
{
	int status = 0;
	pid_t pid;

	printf("foreign children: %s\n",
	       waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD ? "none" : "some");
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(3);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	printf("child: %s %d\n", WIFEXITED(status) ? "exited" : "killed",
	       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	status = system("exit 4");
	printf("shell: %s %d\n", WIFEXITED(status) ? "exited" : "killed", WEXITSTATUS(status));
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_environment(void)
{
	size_t n = 0;
	char **sorted;

	while (environ[n])
		n++;
	sorted = calloc(n + 1, sizeof(*sorted));
	if (!sorted)
		die("calloc");
	memcpy(sorted, environ, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	for (size_t i = 0; i < n; i++)
		printf("env %s\n", sorted[i]);
	free(sorted);
}

int main(int argc, char **argv)
{
	int start_errno = errno;

	printf("errno: %d\n", start_errno);
	print_arguments(argc, argv);
	print_link("exe", "/proc/self/exe");
	print_link("cwd", "/proc/self/cwd");
	print_link("root", "/proc/self/root");
	print_descriptors();
	print_standard_streams();
	print_signals();
	print_limits();
	print_scheduling();
	print_relations();
	print_status();
	print_rest();
	print_children();
	print_environment();
	return 0;
}

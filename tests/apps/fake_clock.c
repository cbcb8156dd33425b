/*
 * Runs a program, and all that it starts, by another clock than this machine's: CLOCK_REALTIME is
 *off, and it and CLOCK_MONOTONIC run faster.
 *
 *	fake_clock OFFSET_NS PPM SINCE_NS [AFTER_NS PPM] program [arguments]
 *
 * SINCE_NS: when it had run for no time yet, by CLOCK_MONOTONIC: who is given the same numbers
 *lives by the same clock. After AFTER_NS the pace changes.
 *
 * clock_gettime() of any C library, linked statically or not, is code of the kernel's that lies in
 *every process (the vDSO). Each program that is executed gets other code there: a debugger's
 *breakpoint of 400 bytes. Time that passes is not touched, nor what a program asks the kernel
 *itself (syscall(SYS_clock_gettime)): a test knows the true time by that. Waits until a time of
 *CLOCK_REALTIME end OFFSET_NS too late.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VDSO_ROOM 65536
#define NS	  1000000000

/*
 * What the code that is put there knows; it lies in front of it, and is found by its distance
 * alone.
 */
struct fake {
	int64_t offset, ppm, after, ppm_after;
	int64_t since[2]; /* by CLOCK_REALTIME, CLOCK_MONOTONIC */
};

__asm__(".pushsection fake_text,\"ax\",@progbits\n"
	".balign 16\n"
	"fake: .zero 48\n"
	".popsection\n");
extern const struct fake fake __attribute__((visibility("hidden")));
extern const char __start_fake_text[] __attribute__((visibility("hidden"))),
	__stop_fake_text[] __attribute__((visibility("hidden")));

/* Built without anything that the compiler could add: see meson.build. */
__attribute__((section("fake_text"), noinline)) static long fake_clock_gettime(
	long clock, struct timespec *time)
{
	int64_t ns, passed;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_clock_gettime), "D"(clock), "S"(time)
			 : "rcx", "r11", "memory");
	if (result || clock < CLOCK_REALTIME || clock > CLOCK_MONOTONIC)
		return result;
	ns = time->tv_sec * NS + time->tv_nsec;
	passed = ns - fake.since[clock];
	ns += passed * fake.ppm / 1000000;
	if (passed > fake.after)
		ns += (passed - fake.after) * (fake.ppm_after - fake.ppm) / 1000000;
	if (clock == CLOCK_REALTIME)
		ns += fake.offset;
	time->tv_sec = ns / NS;
	time->tv_nsec = ns % NS;
	return 0;
}

static void die(const char *what)
{
	fprintf(stderr, "fake_clock: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static int64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * NS + time.tv_nsec;
}

static void move(int memory, void *data, size_t size, uint64_t at, int writing)
{
	ssize_t n = writing ? pwrite(memory, data, size, (off_t)at)
			    : pread(memory, data, size, (off_t)at);

	if (n != (ssize_t)size)
		die("memory of the program");
}

/* Where the vDSO of a process lies, and how long it is. */
static uint64_t find_vdso(pid_t pid, uint64_t *ret_size)
{
	char path[64], line[512];
	uint64_t first = 0, last = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		die(path);
	while (!last && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &first, &last) != 2)
			last = 0;
	fclose(maps);
	*ret_size = last - first;
	return first;
}

/* Where a function is in the image. */
static uint64_t find_function(const unsigned char *image, const char *name)
{
	const Elf64_Ehdr *head = (const void *)image;
	const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);

	for (int i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
		const char *names = (const char *)image + sections[sections[i].sh_link].sh_offset;

		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++)
			if (!strcmp(names + symbols[k].st_name, name))
				return symbols[k].st_value;
	}
	errno = ENOENT;
	die(name);
	return 0;
}

/*
 * Other code for a program that begins: at the vDSO's end, where nothing is, and a jump to it from
 * the function.
 */
static void change(pid_t pid, const struct fake *wanted)
{
	static unsigned char image[VDSO_ROOM] __attribute__((aligned(16)));
	const size_t length = (size_t)(__stop_fake_text - __start_fake_text);
	uint64_t size, base = find_vdso(pid, &size), function, place;
	unsigned char jump[5] = { 0xe9 }, code[4096];
	char path[64];
	int32_t far;
	int memory;

	if (!base || size > sizeof(image))
		return; /* a program of 32 bits, perhaps */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		die(path);
	move(memory, image, size, base, 0);
	function = find_function(image, "__vdso_clock_gettime");
	place = (size - length) & ~15ull;
	memcpy(code, __start_fake_text, length);
	memcpy(code + ((const char *)&fake - __start_fake_text), wanted, sizeof(*wanted));
	move(memory, code, length, base + place, 1);
	far = (int32_t)(place + (uint64_t)((const char *)fake_clock_gettime - __start_fake_text) -
			function - sizeof(jump));
	memcpy(jump + 1, &far, sizeof(far));
	move(memory, jump, sizeof(jump), base + function, 1);
	close(memory);
}

/* Lets all go on, and changes what begins; until the first has ended. */
static int follow(pid_t first, const struct fake *wanted)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int event = status >> 16, number = WSTOPSIG(status);

		if (!WIFSTOPPED(status)) {
			if (pid == first)
				return status;
			continue;
		}
		if (event == PTRACE_EVENT_EXEC)
			change(pid, wanted);
		if (event == PTRACE_EVENT_STOP && (number == SIGSTOP || number == SIGTSTP ||
						   number == SIGTTIN || number == SIGTTOU))
			ptrace(PTRACE_LISTEN, pid, 0, 0);
		else
			ptrace(PTRACE_CONT, pid, 0, event ? 0 : number);
	}
	die("wait");
	return 0;
}

int main(int argc, char **argv)
{
	const long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	struct fake wanted = { .after = INT64_MAX };
	int go[2], status;
	char byte = 0;
	pid_t pid;

	if (argc < 5)
		return 99;
	wanted.offset = atoll(argv[1]);
	wanted.ppm = wanted.ppm_after = atoll(argv[2]);
	wanted.since[1] = atoll(argv[3]);
	wanted.since[0] = wanted.since[1] + now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
	argv += 4;
	if (argc > 6 && argv[0][strspn(argv[0], "0123456789")] == '\0') {
		wanted.after = atoll(argv[0]);
		wanted.ppm_after = atoll(argv[1]);
		argv += 2;
	}
	if (pipe(go) < 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(99);
		close(go[0]);
		execvp(argv[0], argv);
		die(argv[0]);
	}
	close(go[0]);
	if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
		die("ptrace");
	if (write(go[1], &byte, 1) != 1)
		die("pipe");
	close(go[1]);
	status = follow(pid, &wanted);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

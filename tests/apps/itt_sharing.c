/*
 * Programs whose memory others can write to while they trace.
 *
 *	itt_sharing scribble SECONDS	root's: a child drops its rights and scribbles over all
 *shared memory that it has inherited itt_sharing aim SECONDS		the same, but it only makes
 *what looks like a pointer there point to its parent's private memory itt_sharing clone N
 *a child made by clone(CLONE_VM) has the variables of our thread; both make N tasks itt_sharing
 *rawclone N		the same by the system call
 *
 * Private memory is compared with what was stored there.
 */
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "itt_app.h"

#define WORDS (1u << 18)

static __itt_domain *domain;
static __itt_string_handle *task, *of_child;
static uint64_t *words;

static uint64_t word(unsigned i)
{
	return i * 0x9e3779b97f4a7c15ull;
}

/*
 * A word that hurts whoever follows it: a place of the parent's private memory, most of the time.
 */
static uint64_t hurtful(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	switch (*seed >> 60) {
	case 0:
		return *seed >> 20;
	case 1:
		return UINT64_MAX - (*seed >> 40);
	case 2:
		return *seed >> 44;
	case 3:
		return (*seed >> 30) & 0xffff;
	default:
		return (uint64_t)(uintptr_t)(words + (*seed >> 33) % WORDS);
	}
}

struct map {
	char *from, *to;
};

/* What holds an address of shared memory, or of the library, is made to hold one of ours. */
static void aim(const struct map *maps, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		for (volatile uint64_t *at = (uint64_t *)maps[i].from; at < (uint64_t *)maps[i].to;
		     at++)
			for (unsigned k = 0; *at && k < count; k++)
				if (*at >= (uintptr_t)maps[k].from && *at < (uintptr_t)maps[k].to)
					*at = (uintptr_t)words;
}

static void scribble(uint64_t until, bool aimed)
{
	struct map maps[64];
	unsigned count = 0;
	uint64_t seed = 1;
	char line[512];
	FILE *file = fopen("/proc/self/maps", "r");

	while (file && count < ARRAY_SIZE(maps) && fgets(line, sizeof(line), file)) {
		char *from, *to, rights[8];

		if (strstr(line, "/xstrace-") &&
		    sscanf(line, "%p-%p %7s", (void **)&from, (void **)&to, rights) == 3 &&
		    rights[1] == 'w' && rights[3] == 's') {
			maps[count++] = (struct map){ from, to };
		}
	}
	printf("maps: %u\n", count);
	fflush(stdout);
	while (aimed && now_ns() < until)
		aim(maps, count);
	while (now_ns() < until && count) {
		uint64_t what = hurtful(&seed);
		unsigned which = (unsigned)(seed >> 21) % count;
		uint64_t size = (uint64_t)(maps[which].to - maps[which].from), at = seed >> 17;

		/* heads of files and rings more often than what lies behind them */
		at = at % (seed >> 61 ? (size < 65536 ? size : 65536) : size) & ~(uint64_t)7;
		*(volatile uint64_t *)(maps[which].from + at) = what;
		if (!(seed >> 50))
			sched_yield();
	}
	_exit(0);
}

static int scribbled(long seconds, bool aimed)
{
	uint64_t until = now_ns() + (uint64_t)seconds * 1000000000u;
	unsigned changed = 0;
	pid_t child;
	int status;

	for (int i = 0; i < 100; i++)
		finished_task(domain, task);
	child = fork();
	if (!child) {
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			die("setuid");
		scribble(until, aimed);
	}
	while (now_ns() < until) {
		char name[32];

		for (int i = 0; i < 1000; i++)
			finished_task(domain, task);
		sleep_ms(20);
		snprintf(name, sizeof(name), "at %lu", (unsigned long)now_ns());
		finished_task(domain, __itt_string_handle_create(name));
	}
	waitpid(child, &status, 0);
	for (unsigned i = 0; i < WORDS; i++)
		changed += words[i] != word(i);
	printf("child: %d\nchanged: %u\n", status, changed);
	return changed != 0;
}

static unsigned long wanted;
static atomic_ulong at_work;

static void many(__itt_string_handle *name)
{
	at_work++;
	while (at_work < 2)
		; /* both at once */
	for (unsigned long i = 0; i < wanted; i++)
		finished_task(domain, name);
}

static int child_of_clone(void *unused)
{
	(void)unused;
	many(of_child);
	syscall(SYS_exit, 0);
	return 0;
}

#if defined(__x86_64__)
static pid_t raw_clone(char *stack)
{
	pid_t child;

	stack -= 64;
	__asm__ volatile("syscall\n"
			 "	test %%eax, %%eax\n"
			 "	jnz 1f\n"
			 "	xor %%ebp, %%ebp\n"
			 "	xor %%edi, %%edi\n"
			 "	call *%[start]\n"
			 "1:\n"
			 : "=a"(child)
			 : "a"(SYS_clone), "D"(CLONE_VM | SIGCHLD), "S"(stack),
			   "d"(0), [start] "r"((void *)child_of_clone)
			 : "rcx", "r8", "r9", "r10", "r11", "memory");
	return child;
}
#else
static pid_t raw_clone(char *stack)
{
	return clone(child_of_clone, stack, CLONE_VM | SIGCHLD, NULL);
}
#endif

static int cloned(unsigned long count, bool raw)
{
	char *stack =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;

	wanted = count;
	finished_task(domain, task);
	child = raw ? raw_clone(stack + (1 << 20))
		    : clone(child_of_clone, stack + (1 << 20), CLONE_VM | SIGCHLD, NULL);
	if (child < 0)
		die("clone");
	many(task);
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	printf("child: %d\nmade: %lu\n", status, 2 * count + 1);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long number = argc > 2 ? atol(argv[2]) : 0;

	domain = __itt_domain_create("sharing");
	task = __itt_string_handle_create("task");
	of_child = __itt_string_handle_create("of_child");
	words = malloc(WORDS * sizeof(*words));
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = word(i);
	if (!strcmp(what, "scribble"))
		return scribbled(number, false);
	if (!strcmp(what, "aim"))
		return scribbled(number, true);
	if (!strcmp(what, "clone"))
		return cloned((unsigned long)number, false);
	if (!strcmp(what, "rawclone"))
		return cloned((unsigned long)number, true);
	fprintf(stderr, "itt_sharing: what?\n");
	return 2;
}

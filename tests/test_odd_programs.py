"""Programs that look after themselves in ways of their own: stacks that grow page by page, steps that are counted, descriptors that are closed."""

import re

import pytest

from conftest import compile_c
from test_inside import lost

ITT = "--chrome-itt-logging"

HEAD = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "ittnotify.h"
static __itt_domain *domain;
static __itt_string_handle *name;
static void task(void) { __itt_task_begin(domain, __itt_null, __itt_null, name), __itt_task_end(domain); }
static void begin(void) { domain = __itt_domain_create("odd"), name = __itt_string_handle_create("task"), task(); }
static void child(void)
{
	int status;
	if (!fork()) { task(); _exit(0); }
	wait(&status);
	if (status) printf("the child ended with %d\n", status);
}
static void change(void) { __itt_resume(), __itt_pause(), __itt_resume(); }
"""

GROWS = (
    HEAD
    + r"""
enum { SIZE = 1 << 18 };
static char *stack;
static ucontext_t out, in;
static int offset;
static void (*call)(void);
static void grow(int number, siginfo_t *info, void *unused)
{
	char *at = (char *)((long)info->si_addr & ~4095L);
	if (at < stack || at >= stack + SIZE || mprotect(at, 4096, PROT_READ | PROT_WRITE)) _exit(99);
}
static void body(void)
{
	volatile char *room = alloca(offset + 16);
	room[0] = 1, call(), room[1] = 1;
}
static void detach(void) { unsetenv("PTI_ENABLE_COLLECTION"); }
int main(int argc, char **argv)
{
	stack_t own = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_sigaction = grow, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	int step = *argv[1] == 'c' ? 256 : 16;
	call = *argv[1] == 'c' ? child : *argv[1] == 'e' ? detach : *argv[1] == 't' ? task : change;
	sigaltstack(&own, NULL), sigaction(SIGSEGV, &action, NULL);
	stack = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	begin();
	for (; offset < 4096; offset += step) {
		mprotect(stack, SIZE, PROT_NONE), madvise(stack, SIZE, MADV_DONTNEED);
		mprotect(stack + SIZE - 4096, 4096, PROT_READ | PROT_WRITE);
		getcontext(&in);
		in.uc_stack.ss_sp = stack, in.uc_stack.ss_size = SIZE, in.uc_link = &out;
		makecontext(&in, body, 0), swapcontext(&out, &in);
	}
	puts("end");
	return 3;
}
"""
)


@pytest.mark.parametrize("what", ["pause", "environment", "child", "task"])
def test_a_stack_that_a_handler_gives_page_by_page(xstrace, what):
    """The handler of SIGSEGV cannot run where it is blocked: the next page is asked for before."""
    options = "--iterations odd::task:2-9999" if what == "task" else ""
    run = xstrace(f"{ITT} {options}", compile_c(xstrace.home / "grows", GROWS), [what])
    assert (run.status, run.out, run.err) == (3, "end\n", "")
    assert not lost(run)


STEPS = (
    HEAD
    + r"""
static volatile long steps;
static void count(int number) { steps++; }
#define ON "sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
#define OFF "sub $128, %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
static void *first(void *unused)
{
	__asm__ volatile(ON ::: "memory", "cc");
	task();
	__asm__ volatile(OFF ::: "memory", "cc");
	return NULL;
}
static void step(void (*call)(void))
{
	__asm__ volatile(ON ::: "memory", "cc");
	call();
	__asm__ volatile(OFF ::: "memory", "cc");
}
int main(void)
{
	pthread_t thread;
	signal(SIGTRAP, count);
	step(begin), step(change), step(task);
	pthread_create(&thread, NULL, first, NULL), pthread_join(thread, NULL);
	puts(steps > 1000 ? "many" : "few");
	return 3;
}
"""
)


def test_a_program_that_counts_its_own_steps(xstrace):
    """By the trap flag: the kernel ends a process that has blocked SIGTRAP."""
    run = xstrace(ITT, compile_c(xstrace.home / "steps", STEPS))
    assert (run.status, run.out, run.err) == (3, "many\n", "")
    assert run.trace.count("tasks", "odd::task") == 3


CLOSES = (
    HEAD
    + r"""
static volatile int over;
static volatile long wrong;
static void *record(void *unused)
{
	for (int i = 0; i < 20; i++) task();
	usleep(100000);
	return NULL;
}
static void *closes(void *unused)
{
	while (!over) {
		int fd[6];
		char text[16] = "";
		syscall(SYS_close_range, 3, ~0u, 0);
		for (int i = 0; i < 6; i++) fd[i] = open("own", O_RDONLY);
		for (int i = 0; i < 6; i++) wrong += pread(fd[i], text, 10, 0) != 10;
	}
	return NULL;
}
int main(void)
{
	pthread_t closer, thread[300];
	int fd = open("own", O_CREAT | O_RDWR, 0600);
	if (write(fd, "0123456789", 10) != 10) return 9;
	begin();
	pthread_create(&closer, NULL, closes, NULL);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 300; i++) pthread_create(&thread[i], NULL, record, NULL);
		for (int i = 0; i < 300; i++) pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < 200; i++) child();
	over = 1, pthread_join(closer, NULL);
	printf("wrong: %ld\n", wrong);
	return 3;
}
"""
)


def test_descriptors_that_are_not_the_lowest_for_long(xstrace):
    """A thread closes all that it does not know and opens its own: what was ours a moment ago is not closed by us."""
    run = xstrace(ITT, compile_c(xstrace.home / "closes", CLOSES), timeout=60)
    assert (run.status, run.out, run.err) == (3, "wrong: 0\n", "")


SEALED = (
    HEAD
    + r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
int main(void)
{
	struct sock_filter filter[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, filter };
	begin();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
	for (int i = 0; i < 50; i++) child();
	task();
	return 3;
}
"""
)


def test_children_of_a_sandbox_are_counted(xstrace):
    """They cannot join: what they would have recorded is lost, and their parent's trace says so."""
    run = xstrace(ITT, compile_c(xstrace.home / "sealed", SEALED))
    assert (run.status, run.err, len(run.traces)) == (3, "", 1)
    assert run.trace.count("tasks", "odd::task") == 2 and lost(run) == run.trace.other["lost"] == 100
    assert any(re.search(r"sandbox \(seccomp", line) for line in run.said)

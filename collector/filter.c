/*
 * What a seccomp filter would do with our system calls in a program that the process starts: there
 * a new image of this library begins, which cannot know that it lives in a sandbox.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "self.h"

/* All that this library may call (tests/test_inside.py compares). */
static const uint16_t ours[] = {
	SYS_clock_gettime, SYS_close,	   SYS_faccessat,      SYS_fchmod,    SYS_fcntl,
	SYS_fstat,	   SYS_fstatfs,	   SYS_ftruncate,      SYS_futex,     SYS_geteuid,
	SYS_getpid,	   SYS_getppid,	   SYS_getrusage,      SYS_gettid,    SYS_kill,
	SYS_madvise,	   SYS_mmap,	   SYS_munmap,	       SYS_nanosleep, SYS_newfstatat,
	SYS_openat,	   SYS_pidfd_open, SYS_prctl,	       SYS_pread64,   SYS_prlimit64,
	SYS_read,	   SYS_readlinkat, SYS_rt_sigprocmask, SYS_tgkill,
};

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define PATHS 64u    /* that are still to be followed; of one that branches more nothing is known */
#define STEPS 20000u /* likewise, of all paths of a call together */

/* Where a path goes on, and what the accumulator holds there, as far as that is known. */
struct path {
	uint16_t at;
	bool known;
	uint32_t value;
};

/* Of the accumulator alone: what the scratch memory and X hold is not followed. */
static void compute(struct path *path, const struct sock_filter *step)
{
	uint32_t k = step->k;

	path->known &= BPF_SRC(step->code) == BPF_K;
	switch (BPF_OP(step->code)) {
	case BPF_AND:
		path->value &= k;
		break;
	case BPF_OR:
		path->value |= k;
		break;
	case BPF_RSH:
		path->value = k < 32 ? path->value >> k : 0;
		break;
	case BPF_ADD:
		path->value += k;
		break;
	case BPF_SUB:
		path->value -= k;
		break;
	default:
		path->known = false;
	}
}

static void load(struct path *path, const struct sock_filter *step, uint32_t number)
{
	path->known = true;
	path->value = step->k;
	if (BPF_MODE(step->code) == BPF_IMM)
		return;
	if (BPF_MODE(step->code) == BPF_ABS && step->k == offsetof(struct seccomp_data, nr))
		path->value = number;
	else if (BPF_MODE(step->code) == BPF_ABS && step->k == offsetof(struct seccomp_data, arch))
		path->value = ARCHITECTURE;
	else
		path->known = false;
}

static bool is_true(const struct path *path, const struct sock_filter *step)
{
	switch (BPF_OP(step->code)) {
	case BPF_JEQ:
		return path->value == step->k;
	case BPF_JGT:
		return path->value > step->k;
	case BPF_JGE:
		return path->value >= step->k;
	default:
		return path->value & step->k;
	}
}

static bool is_harmless(const struct path *path, const struct sock_filter *step)
{
	uint32_t action = BPF_RVAL(step->code) == BPF_K ? step->k : path->value;

	if (BPF_RVAL(step->code) != BPF_K && !path->known)
		return false;
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_ERRNO ||
	       action == SECCOMP_RET_LOG;
}

/* Nothing is known of arguments: both ways of a branch that depends on them are followed. */
bool xs_filter_may_end(const struct sock_fprog *program, uint32_t number)
{
	struct path paths[PATHS] = { { .at = 0 } };
	uint32_t open = 1;

	for (uint32_t steps = 0; open; steps++) {
		struct path *path = &paths[open - 1];
		const struct sock_filter *step = &program->filter[path->at];

		if (path->at >= program->len || steps == STEPS)
			return true;
		path->at++;
		switch (BPF_CLASS(step->code)) {
		case BPF_LD:
			load(path, step, number);
			break;
		case BPF_ALU:
			compute(path, step);
			break;
		case BPF_MISC:
			path->known &= BPF_MISCOP(step->code) == BPF_TAX;
			break;
		case BPF_RET:
			if (!is_harmless(path, step))
				return true;
			open--;
			break;
		case BPF_JMP:
			if (BPF_OP(step->code) == BPF_JA) {
				path->at = (uint16_t)(path->at + step->k);
			} else if (path->known && BPF_SRC(step->code) == BPF_K) {
				path->at = (uint16_t)(path->at +
						      (is_true(path, step) ? step->jt : step->jf));
			} else if (open == PATHS) {
				return true;
			} else {
				paths[open] = *path;
				paths[open++].at = (uint16_t)(path->at + step->jt);
				path->at = (uint16_t)(path->at + step->jf);
			}
			break;
		default: /* X, and the scratch memory */
			break;
		}
	}
	return false;
}

static bool is_there(const void *from, size_t size)
{
	for (uintptr_t page = (uintptr_t)from & ~(uintptr_t)(XS_PAGE - 1);
	     page < (uintptr_t)from + size; page += XS_PAGE)
		if (!xs_page_readable(page))
			return false;
	return true;
}

bool xs_filter_is_there(const struct sock_fprog *program)
{
	return is_there(program, sizeof(*program)) &&
	       is_there(program->filter, program->len * sizeof(*program->filter));
}

bool xs_filter_may_end_us(const struct sock_fprog *program)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (xs_filter_may_end(program, ours[i]))
			return true;
	return false;
}

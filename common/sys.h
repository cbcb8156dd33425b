/*
 * System calls as the traced program needs them from us: no cancellation point, errno untouched,
 * and none at all once the program has put itself into a sandbox that may end it for a call that it
 * does not make itself.
 *
 * What the C library offers instead (open, read, close, …) ends a thread that is to be cancelled in
 * the middle of our work.
 */
#ifndef XS_SYS_H
#define XS_SYS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
/* Linux 5.14; older kernels say EINVAL, and a full file system is a SIGBUS there */
#define MADV_POPULATE_WRITE 23
#endif

/*
 * The program has sandboxed itself, or is about to: xs_sys() makes no call any more. Only the
 * collector sets it.
 */
enum xs_seal {
	XS_UNSEALED,
	XS_SEALED,
	XS_SEALED_PREPARED, /* the memory of all rings in use was made present before */
};
extern _Atomic uint32_t xs_seal __attribute__((visibility("hidden"))); /* enum xs_seal */
/* 1: and all calls that were made then have ended. Until then the sandbox is not entered. */
extern _Atomic uint32_t xs_seal_complete __attribute__((visibility("hidden")));
/*
 * Calls that have begun: of all threads, and of this one. A thread that seals the process waits for
 * the others' (collector/sandbox.c).
 */
extern _Atomic uint32_t xs_sys_going __attribute__((visibility("hidden")));
extern __thread uint32_t xs_sys_mine
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline bool xs_is_sealed(void)
{
	return __builtin_expect(atomic_load_explicit(&xs_seal, memory_order_relaxed) != XS_UNSEALED,
				0);
}

/*
 * Around calls of ours. False: none may be made. Reading the seal alone is not enough: another
 * thread may seal the process between that and the call. We count first and read then; the sealing
 * thread does the reverse. So either we see the seal, or it waits for our call.
 */
/* another library of ours (collector/companion.h): the words are libxstrace.so's */
#ifdef XS_COMPANION
#define xs_sys_begin xs_companion_sys_begin
#define xs_sys_end   xs_companion_sys_end
bool xs_companion_sys_begin(void);
void xs_companion_sys_end(void);
#else
static inline bool xs_sys_begin(void)
{
	/*
	 * in this order: who leaves by a jump between the two is waited for once, in vain; no call
	 * goes uncounted
	 */
	atomic_fetch_add_explicit(&xs_sys_going, 1, memory_order_seq_cst);
	xs_sys_mine++;
	return atomic_load_explicit(&xs_seal, memory_order_seq_cst) == XS_UNSEALED;
}

static inline void xs_sys_end(void)
{
	if (!xs_sys_mine) /* xs_sys_left() has it */
		return;
	xs_sys_mine--;
	atomic_fetch_sub_explicit(&xs_sys_going, 1, memory_order_release);
}

/*
 * As xs_sys_begin(), for a call that lets another thread end its own, which the sealing thread
 * waits for: it may be made for as long.
 */
static inline bool xs_sys_begin_last(void)
{
	return xs_sys_begin() || !atomic_load_explicit(&xs_seal_complete, memory_order_seq_cst);
}

/* The thread has left its calls by a jump, or by its end. */
static inline void xs_sys_left(void)
{
	uint32_t mine = xs_sys_mine;

	xs_sys_mine = 0;
	if (__builtin_expect(mine != 0, 0))
		atomic_fetch_sub_explicit(&xs_sys_going, mine, memory_order_relaxed);
}
#endif

/* The call's result, or -errno. */
static inline long xs_sys6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
#else
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f); /* no cancellation point, either */

	result = result == -1 ? -errno : result;
	errno = saved;
	return result;
#endif
}

static inline long xs_sys_counted(long number, long a, long b, long c, long d, long e, long f)
{
	long result = xs_sys_begin() ? xs_sys6(number, a, b, c, d, e, f) : -EPERM;

	xs_sys_end();
	return result;
}

#define XS_SYS_PICK(function, n, a, b, c, d, e, f, ...) \
	function((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* -EPERM without a call in a sealed process. */
#define xs_sys(...) XS_SYS_PICK(xs_sys_counted, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
/*
 * Between xs_sys_begin(), which said yes, and xs_sys_end(): what was begun before the process was
 * sealed, and must be undone.
 */
#define xs_sys_always(...) XS_SYS_PICK(xs_sys6, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/*
 * A descriptor that was just opened, by another number if possible. The lowest free one is what the
 * program's next file gets. If another thread of it closes all that it does not know, and opens its
 * own, we would close that; if it writes to stderr, which it has closed, it would write into ours.
 * So ours keeps that number for no longer than it takes to give it another. -errno stays.
 */
long xs_sys_aside(long fd);
/* O_CLOEXEC, and 0600 for a new file. Returns the descriptor or -errno. */
long xs_sys_open(int directory, const char *path, int flags);

#endif

/*
 * System calls as the traced program needs them from us: no cancellation point, errno untouched, and none at all once the program has
 * put itself into a sandbox that may end it for a call that it does not make itself.
 *
 * What the C library offers instead (open, read, close, …) ends a thread that is to be cancelled in the middle of our work.
 */
#ifndef XS_SYS_H
#define XS_SYS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The program has sandboxed itself: xs_sys() makes no call any more. Only the collector sets it. */
enum xs_seal {
	XS_UNSEALED,
	XS_SEALED,
	XS_SEALED_PREPARED, /* the memory of all rings in use was made present before */
};
#ifdef XS_COMPANION /* another library of ours (collector/companion.h): the word is libxstrace.so's */
#define xs_seal (*xs_companion_seal)
extern const _Atomic uint32_t *const xs_companion_seal;
#else
extern _Atomic uint32_t xs_seal __attribute__((visibility("hidden"))); /* enum xs_seal */
#endif

static inline bool xs_is_sealed(void)
{
	return __builtin_expect(atomic_load_explicit(&xs_seal, memory_order_relaxed) != XS_UNSEALED, 0);
}

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

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
	return x0;
#else
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f); /* no cancellation point, either */

	result = result == -1 ? -errno : result;
	errno = saved;
	return result;
#endif
}

#define XS_SYS_PICK(n, a, b, c, d, e, f, ...) xs_sys6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* -EPERM without a call in a sealed process. */
#define xs_sys(...) (xs_is_sealed() ? -(long)EPERM : xs_sys_always(__VA_ARGS__))
/* What was begun before the process was sealed, and must be undone (xs_leave()): whoever seals it waits for that. */
#define xs_sys_always(...) XS_SYS_PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#endif

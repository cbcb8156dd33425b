/*
 * Programs that valgrind runs. It looks at what system calls are given, and reports what it finds,
 * which can be the program's exit status (--error-exitcode).
 */
#ifndef XS_VALGRIND_H
#define XS_VALGRIND_H

#include <stdbool.h>
#include <stdint.h>

/* Its request 0x1001: instructions that it knows in the code, and that do nothing elsewhere. */
static inline bool xs_in_valgrind(void)
{
	uint64_t result = 0;
#if defined(__x86_64__)
	const uint64_t request[6] = { 0x1001 };

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(result)
			 : "a"(request)
			 : "cc", "memory");
#endif
	return result;
}

#endif

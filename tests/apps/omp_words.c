/* Regions of OpenMP as words say (words.h): each is in a function of its name, a to f. Built by
 * clang in the tests. */
#include "words.h"

#define REGION(name)                                                \
	static __attribute__((noinline)) void name(void)            \
	{                                                           \
		_Pragma("omp parallel num_threads(2)") __asm__(""); \
	}
REGION(a)
REGION(b)
REGION(c)
REGION(d)
REGION(e)
REGION(f)

static void work(const char *name)
{
	void (*const regions[])(void) = { a, b, c, d, e, f };

	regions[(unsigned)(*name - 'a') % 6]();
}

int main(int argc, char **argv)
{
	(void)argc;
	do_words(argv + 1, work);
	return 0;
}

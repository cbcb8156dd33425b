/*
 * Limits of resources (ulimit): what the application may use is not meant for the launcher and the
 * drain process, so these lift their own soft limits. The application gets its own back. Where a
 * limit leaves no room for tracing, the application runs as it would without us.
 */
#include <sys/resource.h>

#include "launcher.h"

#define MIB (1ull << 20)

static const struct {
	int kind;
	const char *name;
	/*
	 * least: of the application, by its soft limit, beside what it needs itself; of the
	 * launcher and the drain process, by the hard one
	 */
	uint64_t application, own;
} rows[] = {
	{ RLIMIT_AS, "address space (ulimit -v)", 100 * MIB, 100 * MIB },
	{ RLIMIT_DATA, "data (ulimit -d)", 1 * MIB, 16 * MIB },
	{ RLIMIT_STACK, "stack (ulimit -s)", MIB / 8, MIB / 8 },
	{ RLIMIT_NOFILE, "open files (ulimit -n)", 6, 10 },
	{ RLIMIT_FSIZE, "file size (ulimit -f)", 0, 24 * MIB },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct rlimit before[ROWS];
static const char *scarce;

void xs_limits_lift(void)
{
	for (size_t i = 0; i < ROWS; i++) {
		struct rlimit lifted;

		if (getrlimit(rows[i].kind, &before[i]) < 0)
			before[i].rlim_cur = before[i].rlim_max = RLIM_INFINITY;
		lifted = before[i];
		lifted.rlim_cur = lifted.rlim_max;
		if (before[i].rlim_cur < rows[i].application || before[i].rlim_max < rows[i].own)
			scarce = rows[i].name;
		if (before[i].rlim_cur != before[i].rlim_max)
			(void)setrlimit(rows[i].kind, &lifted);
	}
}

const char *xs_limits_scarce(void)
{
	return scarce;
}

void xs_limits_restore(void)
{
	for (size_t i = 0; i < ROWS; i++)
		if (before[i].rlim_cur != before[i].rlim_max)
			(void)setrlimit(rows[i].kind, &before[i]);
}

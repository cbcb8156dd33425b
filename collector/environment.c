/*
 * The program's environment, where another thread may be changing it. The C library guards its own
 * changes, but not those who read: getenv() would follow pointers into memory that has been freed.
 * Here the kernel copies, and only fails.
 */
#include "environment.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "self.h"
#include "sys.h"

#define VARIABLES 65536u /* are looked at */
#define CHUNK	  32u
#define TEXT	  512u
#define ROOM	  65536u /* bytes, for the list and its texts */
#define LISTED	  512u

extern char **environ;

static bool quiet;

void xs_environment_is_quiet(bool now)
{
	quiet = now;
}

/* In a sealed process, and where the kernel does not copy for us, it is read as getenv() does. */
static bool can_copy(void)
{
	char **now;

	return xs_copy_readable(&now, &environ, sizeof(now)) == sizeof(now);
}

/* Called for each variable: where it is, and its first bytes. True: this was the last one. */
typedef bool variable_use(void *of, char *place, const char *text);

static void each_variable(variable_use *use, void *of)
{
	char **list = __atomic_load_n(&environ, __ATOMIC_ACQUIRE), *chunk[CHUNK], text[TEXT];

	for (uint32_t i = 0; list && i < VARIABLES; i += CHUNK) {
		size_t count = xs_copy_readable(chunk, list + i, sizeof(chunk)) / sizeof(*chunk);

		for (size_t k = 0; k < count; k++) {
			if (!chunk[k])
				return;
			text[xs_copy_readable(text, chunk[k], TEXT - 1)] = '\0';
			if (use(of, chunk[k], text))
				return;
		}
		if (count < CHUNK)
			return;
	}
}

/* The value, if it is this variable. */
static const char *value_in(const char *text, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(text, name, n) && text[n] == '=' ? text + n + 1 : NULL;
}

/* ---- the list ---- */

static bool is_of_interest(const char *text)
{
	static const char *const begins[] = { "PMI_RANK=",
					      "PMI_SIZE=",
					      "PMIX_RANK=",
					      "OMPI_COMM_",
					      "SLURM_PROCID=",
					      "SLURM_NTASKS=",
					      "PALS_RANKID=",
					      "RANK=",
					      "WORLD_SIZE=",
					      "XSTRACE_RUN=",
					      "PTI_ENABLE_COLLECTION=" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(text, begins[i], strlen(begins[i])))
			return true;
	return false;
}

struct copied {
	char *list[LISTED];
	uint32_t count, used; /* used: bytes of text */
	char text[ROOM - (LISTED + 1) * sizeof(char *)];
};
_Static_assert(sizeof(struct copied) <= ROOM, "it is what is mapped");

static bool keep(void *of, char *place, const char *text)
{
	struct copied *copied = of;
	size_t n = strlen(text) + 1;

	(void)place;
	if (!is_of_interest(text))
		return false;
	if (copied->count == LISTED - 1 || n > sizeof(copied->text) - copied->used)
		return true;
	copied->list[copied->count++] = memcpy(copied->text + copied->used, text, n);
	copied->used += (uint32_t)n;
	return false;
}

char *const *xs_environment_begin(void **ret_map)
{
	static char *const none[] = { NULL };
	struct copied *copied;

	*ret_map = NULL;
	if (quiet || !can_copy())
		return environ ? environ : none;
	copied = *ret_map = xs_map_memory(ROOM);
	if (!copied)
		return none;
	each_variable(keep, copied);
	return copied->list;
}

void xs_environment_end(void *map)
{
	if (map)
		(void)xs_sys(SYS_munmap, map, ROOM);
}

const char *xs_environment_value(char *const *list, const char *name)
{
	for (; *list; list++)
		if (value_in(*list, name))
			return value_in(*list, name);
	return NULL;
}

/* ---- one variable ---- */

struct wanted {
	const char *name;
	char *place;
};

static bool is_wanted(void *of, char *place, const char *text)
{
	struct wanted *wanted = of;
	const char *value = value_in(text, wanted->name);

	if (value)
		wanted->place = place + (value - text);
	return value;
}

char *xs_environment_place(const char *name)
{
	struct wanted wanted = { .name = name };

	if (!can_copy())
		return environ ? (char *)xs_environment_value(environ, name) : NULL;
	each_variable(is_wanted, &wanted);
	return wanted.place;
}

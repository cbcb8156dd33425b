/*
 * What GPUs have in common, whichever library tells of them: names, rates, and what to do when a
 * GPU does not tell any more.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xstrace/xstrace.h>

#include "sampler.h"

#define SECOND_US 1000000u

void xs_gpu_name(struct xs_gpu *gpu, const char *name, const uint32_t pci[4])
{
	(void)snprintf(gpu->name, sizeof(gpu->name), "%.48s %x:%x:%x:%x", name, pci[0], pci[1],
		       pci[2], pci[3]);
	for (char *at = gpu->name; *at; at++)
		if (*at < ' ' || *at > '~') /* it goes to terminals, too */
			*at = '?';
}

struct xs_source *xs_gpu_source(struct xs_sources *sources, struct xs_gpu *gpu, const char *what,
				void *handle, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t))
{
	struct xs_source *source = gpu->gone ? NULL : xs_source_new(sources, every, look);

	if (!source)
		return NULL;
	source->gpu = gpu;
	source->what = what;
	source->handle = handle;
	return source;
}

void xs_gpu_counter(struct xs_source *source, int which, const char *format, ...)
{
	char *name = source->name[which];
	size_t length = strlen(source->gpu->name);
	va_list arguments;

	memcpy(name, source->gpu->name, length);
	name[length++] = ' ';
	va_start(arguments, format);
	(void)vsnprintf(name + length, XS_COUNTER_NAME - length, format, arguments);
	va_end(arguments);
}

/*
 * A GPU that is switched on always uses energy. So a counter that stands has not been written
 * since, and what it rises by next is of all that time.
 */
void xs_gpu_energy(struct xs_source *source, uint64_t energy, uint64_t us)
{
	if (source->own && us >= source->own && energy == source->seen[0] &&
	    us - source->own < SECOND_US)
		return;
	xs_source_tell_energy(source, energy, us, source->own);
	source->own = us;
}

void xs_gpu_rates(struct xs_source *source, const uint64_t *values, int count, uint64_t us)
{
	if (source->own && us == source->own)
		return; /* the same as before: it has not been written since */
	for (int i = 0; i < count; i++)
		(void)xs_source_tell_rate(source, i, values[i], us, source->own);
	source->own = us;
}

void xs_gpu_reasons(struct xs_source *source, int which, uint64_t reasons, const char *const *names,
		    uint32_t count)
{
	uint64_t changed = reasons ^ source->seen[which];
	char name[2 * XS_COUNTER_NAME];

	source->seen[which] = reasons;
	for (uint32_t bit = 0; bit < count; bit++) {
		if (!(changed >> bit & 1) || !names[bit])
			continue;
		(void)snprintf(name, sizeof(name), "%s %s", source->name[which], names[bit]);
		xstrace_counter(name, (double)(reasons >> bit & 1));
	}
}

/* One line for each thing of a GPU; 64 of them are told apart. */
static bool is_first(struct xs_gpu *gpu, const char *what)
{
	uint32_t hash = 0;
	uint64_t bit;

	while (*what)
		hash = hash * 31 + (unsigned char)*what++;
	bit = (uint64_t)1 << hash % 64;
	if (gpu->failed & bit)
		return false;
	gpu->failed |= bit;
	return true;
}

static void note_denied(struct xs_gpu *gpu, const char *what)
{
	size_t length = strlen(gpu->denied);

	if (!strstr(gpu->denied, what) && length + strlen(what) + 3 < sizeof(gpu->denied))
		(void)snprintf(gpu->denied + length, sizeof(gpu->denied) - length, "%s%s",
			       length ? ", " : "", what);
}

void xs_gpu_fault(struct xs_source *source, enum xs_gpu_fault fault, const char *function,
		  uint32_t result)
{
	struct xs_gpu *gpu = source->gpu;

	if (fault == XS_GPU_LATER)
		return;
	source->off = true;
	if (fault == XS_GPU_LOST && !gpu->gone)
		fprintf(stderr, "[WARNING] %s is lost (%s): --system-metrics goes on without it\n",
			gpu->name, function);
	else if (fault == XS_GPU_DENIED && !source->last)
		note_denied(gpu, source->what);
	else if ((fault == XS_GPU_FAILED || fault == XS_GPU_DENIED) && is_first(gpu, source->what))
		fprintf(stderr,
			"[WARNING] %s does not tell its %s (%s gives 0x%x): it is left out\n",
			gpu->name, source->what, function, result);
	gpu->gone |= fault == XS_GPU_LOST;
}

void xs_gpu_added(const struct xs_gpu *gpu, const char *how)
{
	if (gpu->denied[0])
		fprintf(stderr, "[WARNING] %s: this user may not read its %s (%s)\n", gpu->name,
			gpu->denied, how);
}

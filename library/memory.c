/*
 * A profile of memory, as the program reports it: kept in this process, written when it is asked
 * for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"
#include "text.h"

#define CATEGORY_MAX 40u

struct change {
	int64_t time, bytes;
	uint64_t address, total_allocated, total_reserved;
	int32_t device_type, device;
	char category[CATEGORY_MAX];
};

static struct {
	struct xs_api_lock lock;
	_Atomic bool on;
	bool stopped; /* there is a profile to be written */
	struct change *changes;
	size_t count, room;
	uint64_t dropped; /* for want of memory */
} profile = { .lock = { .mutex = PTHREAD_MUTEX_INITIALIZER } };

int xs_memory_start(void)
{
	int result = xs_lock(&profile.lock);

	if (result)
		return result;
	if (profile.on)
		return xs_unlock(&profile.lock,
				 xs_refuse(XSTRACE_BAD_STATE, "memory is being profiled already"));
	profile.count = 0;
	profile.dropped = 0;
	profile.stopped = false;
	profile.on = true;
	return xs_unlock(&profile.lock, XSTRACE_OK);
}

int xstrace_memory_start(void)
{
	int result = xstrace_register();

	return result ? result : xs_memory_start();
}

int xstrace_memory_stop(void)
{
	int result = xs_lock(&profile.lock);

	if (result)
		return result;
	if (!profile.on)
		return xs_unlock(&profile.lock,
				 xs_refuse(XSTRACE_BAD_STATE, "memory is not being profiled"));
	profile.on = false;
	profile.stopped = true;
	return xs_unlock(&profile.lock, XSTRACE_OK);
}

static struct change *new_change(void)
{
	if (profile.count == profile.room) {
		size_t room = profile.room ? 2 * profile.room : 1024;
		struct change *grown = realloc(profile.changes, room * sizeof(*grown));

		if (!grown) {
			profile.dropped++;
			return NULL;
		}
		profile.changes = grown;
		profile.room = room;
	}
	return &profile.changes[profile.count++];
}

/*
 * In Kineto's format a change is an event, too. It is not in Chrome's, where the counter shows it.
 */
static void record_event(const struct change *change)
{
	const struct xs_control *control = xs_library.collector.control();
	char metadata[320], *at = metadata;
	const struct {
		const char *key;
		uint64_t value;
		bool negative;
	} rows[] = {
		{ "Addr", change->address, false },
		{ "Bytes", (uint64_t)change->bytes, change->bytes < 0 },
		{ "Device Type", (uint64_t)change->device_type, false },
		{ "Device Id", (uint64_t)(int64_t)change->device, change->device < 0 },
		{ "Total Allocated", change->total_allocated, false },
		{ "Total Reserved", change->total_reserved, false },
	};
	struct xs_own_text name = { "[memory]", sizeof("[memory]") - 1, 0 },
			   row = { "memory", sizeof("memory") - 1, 0 };
	const struct xs_own_metadata known = { metadata, 0, sizeof(rows) / sizeof(rows[0]) };
	struct xs_own_activity event = { .type = XSTRACE_CPU_INSTANT_EVENT,
					 .resource = (int64_t)syscall(SYS_gettid),
					 .device = getpid() };
	const struct xs_own_list list = { .activities = &event,
					  .count = 1,
					  .names = &name,
					  .rows = &row,
					  .metadata = &known,
					  .metadata_count = 1 };

	if (!control || (!control->options.format && !control->options.on_demand))
		return;
	event.start = event.end = xs_clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		at = stpcpy(at, rows[i].key) + 1;
		*at++ = (char)XS_OWN_JSON;
		at += 1 + sprintf(at, rows[i].negative ? "%lld" : "%llu",
				  (unsigned long long)rows[i].value);
	}
	xs_table_of_library()->activities(&list);
}

void xstrace_memory(const void *address, int64_t bytes, uint64_t total_allocated,
		    uint64_t total_reserved, enum xstrace_device_type device_type, int device,
		    const char *category)
{
	struct change now = { .bytes = bytes,
			      .address = (uintptr_t)address,
			      .total_allocated = total_allocated,
			      .total_reserved = total_reserved,
			      .device_type = (int32_t)device_type,
			      .device = device };
	struct change *change;
	char name[48];

	if (!atomic_load_explicit(&profile.on, memory_order_relaxed) || xs_is_child())
		return;
	now.time = xstrace_now();
	if (!category)
		category = "unknown";
	*xs_plain(now.category, category, strnlen(category, CATEGORY_MAX - 1)) = '\0';
	(void)snprintf(name, sizeof(name), "memory of device type %d, %d", (int)device_type,
		       device);
	xstrace_counter(name, (double)total_allocated);
	record_event(&now);
	if (xs_lock(&profile.lock))
		return;
	change = profile.on ? new_change() : NULL;
	if (change)
		*change = now;
	(void)xs_unlock(&profile.lock, 0);
}

/* ---- export ---- */

/* Plain text (xs_plain()): UTF-8 without control characters. */
static void put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static int by_address(const void *a, const void *b)
{
	const struct change *const *x = a, *const *y = b;

	if ((*x)->device_type != (*y)->device_type)
		return (*x)->device_type < (*y)->device_type ? -1 : 1;
	if ((*x)->device != (*y)->device)
		return (*x)->device < (*y)->device ? -1 : 1;
	if ((*x)->address != (*y)->address)
		return (*x)->address < (*y)->address ? -1 : 1;
	return *x < *y ? -1 : 1; /* in the order of time */
}

static int by_category(const void *a, const void *b)
{
	const struct change *const *x = a, *const *y = b;
	int order;

	if ((*x)->device_type != (*y)->device_type)
		return (*x)->device_type < (*y)->device_type ? -1 : 1;
	if ((*x)->device != (*y)->device)
		return (*x)->device < (*y)->device ? -1 : 1;
	order = strcmp((*x)->category, (*y)->category);
	return order ? order : *x < *y ? -1 : 1;
}

/* Those that no later change of the same block takes back. Their number; they come first. */
static size_t keep_living(const struct change **changes, size_t count)
{
	size_t living = 0;

	qsort(changes, count, sizeof(*changes), by_address);
	for (size_t i = 0; i < count; i++) {
		const struct change *next = i + 1 < count ? changes[i + 1] : NULL;
		bool last = !next || next->address != changes[i]->address ||
			    next->device != changes[i]->device ||
			    next->device_type != changes[i]->device_type;

		if (last && changes[i]->bytes > 0)
			changes[living++] = changes[i];
	}
	qsort(changes, living, sizeof(*changes), by_category);
	return living;
}

static bool alike(const struct change *a, const struct change *b)
{
	return a->device_type == b->device_type && a->device == b->device &&
	       !strcmp(a->category, b->category);
}

static void put_snapshot(FILE *out, const struct change **living, size_t count)
{
	bool first = true;

	for (size_t i = 0; i < count;) {
		const struct change *change = living[i];
		uint64_t bytes = 0, blocks = 0;

		for (; i < count && alike(living[i], change); i++, blocks++)
			bytes += (uint64_t)living[i]->bytes;
		(void)fprintf(out, "%s\n{\"device_type\": %d, \"device\": %d, \"category\": ",
			      first ? "" : ",", change->device_type, change->device);
		put_text(out, change->category);
		(void)fprintf(out, ", \"bytes\": %llu, \"blocks\": %llu}",
			      (unsigned long long)bytes, (unsigned long long)blocks);
		first = false;
	}
}

static void put_timeline(FILE *out)
{
	for (size_t i = 0; i < profile.count; i++) {
		const struct change *change = &profile.changes[i];

		(void)fprintf(out, "%s\n[%lld, %d, %d, %lld, %llu, %llu]", i ? "," : "",
			      (long long)change->time, change->device_type, change->device,
			      (long long)change->bytes, (unsigned long long)change->total_allocated,
			      (unsigned long long)change->total_reserved);
	}
}

static int export(FILE *out)
{
	const struct change **living = malloc((profile.count + 1) * sizeof(*living));

	if (!living)
		return -ENOMEM;
	for (size_t i = 0; i < profile.count; i++)
		living[i] = &profile.changes[i];
	(void)fputs("{\"timeline\": [", out);
	put_timeline(out);
	(void)fputs("\n], \"snapshot\": [", out);
	put_snapshot(out, living, keep_living(living, profile.count));
	(void)fprintf(out, "\n], \"dropped\": %llu}\n", (unsigned long long)profile.dropped);
	free(living);
	return ferror(out) ? -EIO : 0;
}

int xstrace_memory_export(const char *path)
{
	int error = 0, result;
	struct xs_calm calm;
	bool made;
	FILE *out;

	if (!path)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "xstrace_memory_export: a path");
	result = xs_lock(&profile.lock);
	if (result)
		return result;
	if (!profile.stopped)
		return xs_unlock(&profile.lock,
				 xs_refuse(XSTRACE_BAD_STATE, "no profile of memory was stopped"));
	xs_calm_begin(&calm);
	out = fopen(path, "we");
	made = out && xs_is_file(fileno(out));
	if (out)
		error = export(out);
	if (!out || (fclose(out) && !error))
		error = -errno;
	if (error && made) /* what is cut does not stay */
		(void)unlink(path);
	xs_calm_end(&calm);
	(void)xs_unlock(&profile.lock, 0);
	return error ? xs_refuse(error == -ENOMEM ? XSTRACE_NO_MEMORY : XSTRACE_IO, "%s: %s", path,
				 strerror(-error))
		     : XSTRACE_OK;
}

/*
 * The file of --metric-sampling, as unitrace has it: the samples of each execution of a kernel,
 * those that began while it ran. Each group of metrics has a section of its own, as its samples
 * have times of their own.
 *
 * Times are compared as ticks of the device's clock. Records of kernels have the last bits of these
 * alone; which of the times with these bits is meant, the time of the trace says.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device_record.h"
#include "files.h"
#include "metrics_file.h"
#include "metrics_text.h"
#include "output.h"
#include "put.h"
#include "samples.h"
#include "text.h"

/* Where kernels overlap, a sample belongs to each: so many rows are written for a sample at most.
 */
#define OVERLAP_MAX 16u

struct joined {
	struct xs_process *process;
	struct xs_sampled_device *device;
	const struct xs_sampled_group *group;
	struct xs_output *out;
	struct xs_sampled_kernel *kernels;
	unsigned char *samples; /* of `stride` bytes */
	size_t stride;
	const char *names;
	uint64_t names_length, rows, rows_max; /* rows: of the group */
	uint64_t looked_at;		       /* samples of all groups */
	uint32_t id;			       /* the greatest */
	bool some, cut;			       /* rows of any group; not all of them */
};

/* ---- files as arrays ---- */

void *xs_samples_map(FILE *file, size_t size)
{
	struct stat status;
	void *map;

	if (!file || !size || fflush(file) || fstat(fileno(file), &status) < 0 ||
	    (uint64_t)status.st_size < size)
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	return map == MAP_FAILED ? NULL : map;
}

/* Their first two words decide. */
static bool less(const unsigned char *a, const unsigned char *b)
{
	uint64_t one[2], other[2];

	memcpy(one, a, sizeof(one));
	memcpy(other, b, sizeof(other));
	return one[0] != other[0] ? one[0] < other[0] : one[1] < other[1];
}

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
	unsigned char kept[sizeof(struct xs_sample) + 8 * XS_METRICS_MAX];

	memcpy(kept, a, size);
	memcpy(a, b, size);
	memcpy(b, kept, size);
}

static void sift(unsigned char *of, size_t at, size_t count, size_t size)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && less(of + child * size, of + (child + 1) * size))
			child++;
		if (!less(of + at * size, of + child * size))
			return;
		swap(of + at * size, of + child * size, size);
	}
}

void xs_samples_sort(void *array, size_t count, size_t size)
{
	unsigned char *of = array;
	bool sorted = true;

	for (size_t i = 1; i < count && sorted; i++)
		sorted = !less(of + i * size, of + (i - 1) * size);
	if (sorted)
		return;
	for (size_t i = count / 2; i--;)
		sift(of, i, count, size);
	for (size_t i = count; i-- > 1;) {
		swap(of, of + i * size, size);
		sift(of, 0, i, size);
	}
}

/* ---- rows ---- */

static const struct xs_sample *sample_at(const struct joined *joined, uint64_t i)
{
	return (const void *)(joined->samples + i * joined->stride);
}

static const char *name_of(const struct joined *joined, const struct xs_sampled_kernel *kernel)
{
	return kernel->name < joined->names_length ? joined->names + kernel->name : "\"\"";
}

static void put_line(struct joined *joined, char *o)
{
	xs_output_put_end(joined->out, o);
	if (xs_output_full(joined->out))
		(void)xs_output_flush(joined->out);
}

static void put_row(struct joined *joined, const char *name, size_t length, uint64_t id,
		    const struct xs_sample *sample)
{
	char *o = xs_output_put(joined->out);

	memcpy(o, name, length);
	o = xs_put_count(o + length, ",", id);
	if (joined->group->parts)
		o = xs_put_count(o, ",", sample->part);
	for (uint32_t i = 0; i < joined->group->count; i++) {
		*o++ = ',';
		o = xs_metrics_put_value(o, sample->value[i], joined->group->type[i]);
	}
	*o++ = '\n';
	put_line(joined, o);
	joined->rows++;
}

static void put_header(struct joined *joined)
{
	const struct xs_sampled_group *group = joined->group;
	char *o = xs_output_put(joined->out);

	if (!joined->process->run->options->result_dir[0])
		o = xs_put(xs_put_count(o, "\n=== Device #", joined->device->number),
			   " Metrics ===\n");
	o = xs_put(o, group->parts ? "\nKernel,GlobalInstanceId,SubDeviceId"
				   : "\nKernel,GlobalInstanceId");
	o = xs_metrics_put_names(o, group->names, group->names_length, group->count);
	put_line(joined, xs_put(o, "\n"));
}

/* The samples from `from` on that begin by `until`, and no kernel ran: NoKernel(Before NAME). */
static void put_idle(struct joined *joined, uint64_t from, uint64_t until, uint64_t id,
		     const struct xs_sampled_kernel *before)
{
	const char *name = before ? name_of(joined, before) : NULL;
	char idle[2 * 8192 + 64], *o = xs_put(idle, name ? "\"NoKernel(Before " : "\"NoKernel");
	size_t length = name ? strlen(name) : 0;

	if (from >= until)
		return;
	if (length >= 2 && length < sizeof(idle) - 64)
		o = (char *)memcpy(o, name + 1, length - 2) + (length - 2);
	o = xs_put(o, name ? ")\"" : "\"");
	for (uint64_t i = from; i < until; i++)
		put_row(joined, idle, (size_t)(o - idle), id, sample_at(joined, i));
	put_line(joined, xs_put(xs_output_put(joined->out), "\n"));
}

static void put_kernel(struct joined *joined, const struct xs_sampled_kernel *kernel, uint64_t from)
{
	const char *name = name_of(joined, kernel);
	size_t length = strlen(name);
	uint64_t i = from;

	for (; i < joined->group->sample_count && joined->rows < joined->rows_max; i++) {
		const struct xs_sample *sample = sample_at(joined, i);

		if (sample->ticks - kernel->ticks > kernel->length)
			break;
		put_row(joined, name, length, kernel->id, sample);
	}
	if (i > from)
		put_line(joined, xs_put(xs_output_put(joined->out), "\n"));
}

static void put_rows(struct joined *joined)
{
	const struct xs_sampled_device *device = joined->device;
	bool idle = joined->process->run->options->idle_sampling;
	uint64_t at = 0, idle_at = 0, id = joined->id + 1ull, covered = 0;

	for (uint64_t k = 0; k < device->kernel_count; k++) {
		const struct xs_sampled_kernel *kernel = &joined->kernels[k];

		while (at < joined->group->sample_count &&
		       sample_at(joined, at)->ticks < kernel->ticks)
			at++;
		while (k && idle_at < at && sample_at(joined, idle_at)->ticks <= covered)
			idle_at++;
		if (idle)
			put_idle(joined, idle_at, at, id + k, kernel);
		idle_at = at > idle_at ? at : idle_at;
		put_kernel(joined, kernel, at);
		if (kernel->ticks + kernel->length > covered)
			covered = kernel->ticks + kernel->length;
	}
	while (device->kernel_count && idle_at < joined->group->sample_count &&
	       sample_at(joined, idle_at)->ticks <= covered)
		idle_at++;
	if (idle)
		put_idle(joined, idle_at, joined->group->sample_count, id + device->kernel_count,
			 NULL);
}

/* ---- a device ---- */

/* All bits of the time at which each kernel began. */
static void unwrap(struct joined *joined)
{
	const struct xs_sampled_device *device = joined->device;

	for (uint64_t k = 0; k < device->kernel_count; k++) {
		struct xs_sampled_kernel *kernel = &joined->kernels[k];
		__int128 passed = (__int128)kernel->ns - (__int128)joined->group->ns;
		uint64_t about =
			joined->group->ticks +
			(uint64_t)(passed * (__int128)joined->group->frequency / 1000000000);
		uint32_t spare = 64 - kernel->bits % 64;

		if (kernel->bits < 64)
			kernel->ticks =
				about +
				(uint64_t)((int64_t)((kernel->ticks - about) << spare) >> spare);
		if (kernel->id > joined->id)
			joined->id = kernel->id;
	}
}

static void unmap(struct joined *joined)
{
	if (joined->kernels)
		(void)munmap(joined->kernels,
			     joined->device->kernel_count * sizeof(*joined->kernels));
	if (joined->samples)
		(void)munmap(joined->samples, joined->group->sample_count * joined->stride);
}

static bool map(struct joined *joined)
{
	const struct xs_sampled_device *device = joined->device;
	const struct xs_sampled_group *group = joined->group;

	joined->stride = sizeof(struct xs_sample) + 8u * group->count;
	joined->samples = xs_samples_map(group->samples, group->sample_count * joined->stride);
	joined->kernels =
		xs_samples_map(device->kernels, device->kernel_count * sizeof(*joined->kernels));
	return joined->samples && (joined->kernels || !device->kernel_count);
}

/* What is wrong with a device's samples, in a line. */
static void tell(const struct joined *joined)
{
	const struct xs_sampled_device *device = joined->device;

	if (!joined->some && device->kernel_count)
		xs_tell("[WARNING] --metric-sampling: none of %llu samples of device #%u falls "
			"into one of its %llu kernels; -i with fewer microseconds finds shorter "
			"kernels\n",
			(unsigned long long)joined->looked_at, device->number,
			(unsigned long long)device->kernel_count);
	if (joined->cut)
		xs_tell("[WARNING] --metric-sampling: too many kernels of device #%u overlap: the "
			"rest of its samples is not written\n",
			device->number);
	if (device->odd)
		xs_tell("[WARNING] --metric-sampling: %llu samples of device #%u have other "
			"metrics than its first, and are left out\n",
			(unsigned long long)device->odd, device->number);
}

static void write_group(struct joined *joined)
{
	const struct xs_sampled_device *device = joined->device;
	const struct xs_sampled_group *group = joined->group;

	if (map(joined)) {
		joined->rows = 0;
		joined->rows_max = OVERLAP_MAX * (group->sample_count + 1);
		unwrap(joined);
		xs_samples_sort(joined->kernels, device->kernel_count, sizeof(*joined->kernels));
		xs_samples_sort(joined->samples, group->sample_count, joined->stride);
		put_header(joined);
		put_rows(joined);
		joined->looked_at += group->sample_count;
		joined->some |= joined->rows;
		joined->cut |= joined->rows >= joined->rows_max;
	}
	unmap(joined);
}

/* ---- files ---- */

struct file {
	struct xs_output out;
	char path[PATH_MAX];
	bool open, some; /* some: or it was open once */
};

/* Unless it is open. False: it cannot be written. */
static bool open_file(struct file *file, struct xs_process *process,
		      const struct xs_sampled_device *device)
{
	if (!file->open)
		file->open = xs_metrics_open(process, device->number, &file->out, file->path) >= 0;
	file->some |= file->open;
	return file->open;
}

static void close_file(struct file *file)
{
	if (file->open)
		xs_metrics_close(&file->out, file->path);
	file->open = false;
}

/* With --result-dir each group has a file of its own. */
static void write_device(struct joined *joined, struct file *file)
{
	const struct xs_sampled_device *device = joined->device;
	const struct xs_options *options = joined->process->run->options;

	for (uint32_t i = 0; i < device->group_count; i++) {
		joined->group = &device->group[i];
		/* of a device that nobody used there is nothing to say */
		if (!joined->group->sample_count ||
		    (!device->kernel_count && !options->idle_sampling) ||
		    !open_file(file, joined->process, device))
			continue;
		write_group(joined);
		if (options->result_dir[0])
			close_file(file);
	}
	if (joined->looked_at)
		tell(joined);
}

/* Level Zero and CUDA count their devices from 0, each its own: files have a number once. */
static void number_apart(struct xs_samples *samples)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < samples->device_count; i++)
		if (samples->device[i].group_count && samples->device[i].number >= next)
			next = samples->device[i].number + 1;
	for (uint32_t i = 0; i < samples->device_count; i++) {
		struct xs_sampled_device *device = &samples->device[i];
		bool taken = false;

		for (uint32_t k = 0; k < samples->device_count; k++)
			taken |= k != i && samples->device[k].group_count &&
				 samples->device[k].number == device->number;
		/* it is CUDA's devices that have UUIDs here: they get the other numbers */
		if (!taken || !device->group_count || !(device->uuid[0] | device->uuid[1]))
			continue;
		xs_tell("[INFO] --metric-sampling: CUDA device #%u is device #%u in files of "
			"metrics: Level Zero has a device #%u, too\n",
			device->number, next, device->number);
		device->number = next++;
	}
}

bool xs_samples_write(struct xs_process *process, struct xs_samples *samples)
{
	struct file file = { .out = { .fd = -1 } };
	const char *names = xs_samples_map(samples->names, samples->names_length);

	number_apart(samples);
	for (uint32_t i = 0; i < samples->device_count; i++) {
		struct joined joined = { .process = process,
					 .device = &samples->device[i],
					 .out = &file.out,
					 .names = names,
					 .names_length = names ? samples->names_length : 0 };

		if (!joined.device->stalls)
			write_device(&joined, &file);
		else if (xs_stalls_some(joined.device) && open_file(&file, process, joined.device))
			xs_stalls_put(process, joined.device, &file.out);
		if (process->run->options->result_dir[0])
			close_file(&file);
	}
	close_file(&file);
	if (names)
		(void)munmap((void *)(uintptr_t)names, samples->names_length);
	return file.some;
}

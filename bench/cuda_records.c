/*
 * How fast the drain process reads CUDA's activity: buffers full of kernels' records and a ring
 *with the calls that launched them, again and again, as a traced process would have left them.
 *	cuda_records reports|trace RECORDS
 * Prints the records, the CPU time of reading and writing them out, and the memory that this took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "activity.h"
#include "activity_layout.h"
#include "cuda_activity.h"
#include "device_record.h"
#include "rundir.h"

#define PID	    4000000 /* nobody's */
#define RECORD	    208u    /* bytes of a kernel's, of CUPTI 12 */
#define BUFFERS	    4u
#define PER_BUFFER  (XS_ACTIVITY_BYTES / RECORD)
#define CALL_TICKS  200u
#define KERNEL_NAME 0x7f0000001000ull

static struct rundir dir;
static struct xs_process_file *file;
static struct xs_activity_file *activity;
static struct xs_activity_buffer *buffers[BUFFERS];
static uint32_t correlation, turns;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *make(uint32_t number, uint64_t size)
{
	char name[XS_NAME_MAX];
	void *map;

	xs_activity_name(name, PID, 0, number);
	if (xs_shm_map(dir.launch.dir, name, XS_SHM_CREATE, size, &map, NULL) < 0)
		abort();
	return map;
}

static void make_activity(void)
{
	uint32_t place = xs_activity_place(KERNEL_NAME, 0) & (XS_ACTIVITY_NAMES - 1);

	activity = make(0, sizeof(*activity));
	for (uint32_t i = 0; i < BUFFERS; i++)
		buffers[i] = make(i + 1, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES);
	activity->version = 28;
	activity->source = XS_SOURCE_CUDA;
	atomic_store(&activity->size[XS_KIND_CONCURRENT_KERNEL], RECORD);
	activity->text[XS_TEXT_DEVICE] = rundir_name(&dir, "NVIDIA H200", 0);
	activity->name[place].name = rundir_name(&dir, "_Z6kernelPii", 0);
	activity->name[place].pointer = KERNEL_NAME;
	atomic_store(&activity->made, (1ull << BUFFERS) - 1);
	atomic_store(&activity->magic, XS_MAGIC);
	atomic_store(&file->activity, 1);
}

static void put(unsigned char *record, uint32_t at, uint64_t value, uint32_t bytes)
{
	memcpy(record + at, &value, bytes);
}
#define PUT(record, member, value) \
	put(record, xs_at_KERNEL_##member, value, xs_bytes_KERNEL_##member)

static void put_kernel(unsigned char *record, uint64_t start)
{
	put(record, 0, XS_KIND_CONCURRENT_KERNEL, 4);
	PUT(record, start, start);
	PUT(record, end, start + 1500);
	PUT(record, contextId, 1);
	PUT(record, streamId, 7 + correlation % 4);
	PUT(record, gridX, 128);
	PUT(record, gridY, 1);
	PUT(record, gridZ, 1);
	PUT(record, blockX, 256);
	PUT(record, blockY, 1);
	PUT(record, blockZ, 1);
	PUT(record, registersPerThread, 32);
	PUT(record, correlationId, correlation);
	PUT(record, name, KERNEL_NAME);
}

/* A launch, and that CUPTI's callback told of it. */
static void put_launch(struct xs_ring *ring, uint32_t name)
{
	struct xs_enqueued_record *record = (void *)put_space(&dir, ring, sizeof(*record));

	if (!record)
		abort();
	record->event = (struct xs_event){ .tick = xs_tick(dir.run.use_tsc) - CALL_TICKS,
					   .name = name,
					   .kind = XS_ENQUEUED,
					   .words = sizeof(*record) / 8,
					   .source = XS_SOURCE_CUDA,
					   .flags = XS_ENQUEUED_FLAG_LAUNCH };
	record->correlation = correlation;
	record->host_ticks = CALL_TICKS;
	xs_ring_commit(rundir_producer(ring), sizeof(*record));
}

/* Fills a buffer; returns how many records it has. */
static uint64_t fill(struct xs_activity_buffer *buffer, struct xs_ring *ring, uint64_t most)
{
	unsigned char *data = (unsigned char *)buffer + XS_ACTIVITY_HEADER;
	uint32_t name = rundir_name(&dir, "_Z6kernelPii", 0);
	uint64_t count = most < PER_BUFFER ? most : PER_BUFFER;

	for (uint64_t i = 0; i < count; i++) {
		correlation++;
		put_launch(ring, name);
		put_kernel(data + i * RECORD, xs_clock_ns(CLOCK_MONOTONIC));
	}
	buffer->turn = ++turns;
	atomic_store(&buffer->valid, count * RECORD);
	atomic_store(&buffer->state, XS_BUFFER_FULL);
	return count;
}

static void choose(struct xs_options *options, bool trace)
{
	memset(options, 0, sizeof(*options));
	options->ring_size = 4u << 20;
	options->cuda_devices = UINT64_MAX; /* none would be wanted */
	options->chrome_device = trace;
	options->host_timing = options->device_timing = !trace;
	if (!trace)
		memcpy(options->output, "report", 7);
}

int main(int argc, char **argv)
{
	uint64_t left = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000, records = left, ns = 0;
	struct xs_options options;
	struct xs_process *process;
	struct rusage usage, before;
	char name[XS_NAME_MAX];

	if (argc < 2)
		return 2;
	choose(&options, !strcmp(argv[1], "trace"));
	rundir_open(&dir, &options);
	file = rundir_process(&dir, PID, 0, 1, options.ring_size);
	make_activity();
	xs_process_file_name(name, PID, 0, 0);
	process = xs_process_adopt(&dir.run, name);
	if (!process)
		return 1;
	(void)getrusage(RUSAGE_SELF, &before);
	for (uint32_t i = 0; left; i++) {
		uint64_t start;

		left -= fill(buffers[i % BUFFERS], rundir_ring(file, 0), left);
		start = cpu_ns();
		xs_timeline_update(&dir.run.clock);
		(void)xs_process_read(process, false);
		xs_process_commit(process);
		ns += cpu_ns() - start;
	}
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("{\"records\": %llu, \"cpu_ns\": %llu, \"corrupt\": %llu, \"missing\": %llu, "
	       "\"grown_kib\": %ld}\n",
	       (unsigned long long)records, (unsigned long long)ns,
	       (unsigned long long)process->corrupt,
	       (unsigned long long)(records - process->cuda->joined),
	       usage.ru_maxrss - before.ru_maxrss);
	xs_process_finish(process, XS_END_EXITED, 0);
	rundir_close(&dir);
	return 0;
}

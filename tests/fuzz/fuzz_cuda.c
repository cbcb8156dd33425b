/*
 * Hostile or torn buffers of CUDA's activity: lengths of records, records, states and names are
 * whatever the input says, and change between two looks. The drain side must neither crash, nor
 * hang, nor write anything but JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "activity_layout.h"
#include "device_record.h"
#include "keep.h"
#include "rundir.h"
#include "verdict.h"

#define PID	    4000000 /* nobody's */
#define BUFFERS	    3u
#define NAMES_FIRST (sizeof(struct xs_strings) / 8)
#define DATA	    16384u /* bytes of a buffer that are ever written */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct rundir dir;
static struct xs_process_file *file;
static struct xs_activity_file *activity;
static struct xs_activity_buffer *buffers[BUFFERS];
static uint32_t at[BUFFERS]; /* where the next record goes */

static void at_exit(void)
{
	keep_files(false);
	rundir_close(&dir);
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

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	rundir_open(&dir, NULL);
	(void)atexit(at_exit);
	file = rundir_process(&dir, PID, 0, 1, XS_RING_MIN);
	activity = make(0, sizeof(*activity));
	for (uint32_t i = 0; i < BUFFERS; i++)
		buffers[i] = make(i + 1, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES);
	keep_files(true);
	(void)rundir_name(&dir, "_Z6kernelPi", 0);
	(void)rundir_name(&dir, "\"\\\x01\xff\xc3\xa4", 0);
	return 0;
}

static const unsigned char *input;
static size_t left;

static uint64_t take(size_t bytes)
{
	uint64_t value = 0;

	if (bytes > left)
		bytes = left;
	memcpy(&value, input, bytes);
	input += bytes;
	left -= bytes;
	return value;
}

static uint32_t take_name(void)
{
	uint32_t value = (uint32_t)take(1);

	return value < 250 ? NAMES_FIRST + value % 8 : (uint32_t)take(4);
}

static unsigned char *data_of(uint32_t number)
{
	return (unsigned char *)buffers[number] + XS_ACTIVITY_HEADER;
}

/* The lengths that CUPTI 12 has. */
static void reset(void)
{
	static const uint16_t sizes[XS_ACTIVITY_KINDS] = {
		[XS_KIND_MEMCPY] = 96,
		[XS_KIND_MEMSET] = 88,
		[XS_KIND_KERNEL] = 208,
		[XS_KIND_DEVICE] = 184,
		[XS_KIND_CONCURRENT_KERNEL] = 208,
		[XS_KIND_OVERHEAD] = 56,
		[XS_KIND_MEMCPY2] = 96,
		[XS_KIND_UNIFIED_MEMORY] = 104,
		[XS_KIND_SYNCHRONIZATION] = 56,
		[XS_KIND_EXTERNAL] = 24,
		[XS_KIND_MEMORY2] = 128,
		[XS_KIND_MEMORY_POOL] = 72,
		[XS_KIND_GRAPH_TRACE] = 56,
		[XS_KIND_JIT] = 72,
		[XS_KIND_DECOMPRESS] = 64,
	};
	struct xs_ring *ring = rundir_ring(file, 0);

	atomic_store(&file->used, 1);
	atomic_store(&file->activity, 1);
	memset(ring, 0, XS_RING_HEADER);
	rundir_ring_init(ring, XS_RING_MIN, (enum xs_on_full)dir.run.options->on_full);
	atomic_store(&ring->state, XS_RING_LIVE);
	memset(activity, 0, sizeof(*activity));
	activity->version = 28;
	activity->source = XS_SOURCE_CUDA;
	for (uint32_t i = 0; i < XS_ACTIVITY_KINDS; i++)
		atomic_store(&activity->size[i], sizes[i]);
	for (uint32_t i = 0; i < XS_ACTIVITY_TEXTS; i++)
		activity->text[i] = NAMES_FIRST;
	atomic_store(&activity->made, (1ull << BUFFERS) - 1);
	atomic_store(&activity->magic, XS_MAGIC);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		memset(buffers[i], 0, XS_ACTIVITY_HEADER);
		memset(data_of(i), 0, DATA);
		at[i] = 0;
	}
}

static uint64_t take_time(void)
{
	uint64_t word = take(2);

	return word < 65000 ? dir.launch.control->mono0 + word * 64 : take(8);
}

/* A record of some kind, with times and numbers that are possible for the most part. */
static void put_record(uint32_t number)
{
	static const uint8_t kinds[] = {
		XS_KIND_CONCURRENT_KERNEL, XS_KIND_MEMCPY,	XS_KIND_MEMSET,
		XS_KIND_MEMCPY2,	   XS_KIND_OVERHEAD,	XS_KIND_SYNCHRONIZATION,
		XS_KIND_EXTERNAL,	   XS_KIND_MEMORY2,	XS_KIND_MEMORY_POOL,
		XS_KIND_UNIFIED_MEMORY,	   XS_KIND_GRAPH_TRACE, XS_KIND_JIT,
		XS_KIND_DECOMPRESS,	   XS_KIND_DEVICE
	};
	uint32_t what = (uint32_t)take(1), size;
	uint64_t start = take_time(), end = start + take(2);
	uint32_t kind = what & 128 ? (uint32_t)take(1) : kinds[what % sizeof(kinds)];
	unsigned char *place;

	if (at[number] + 512 > DATA)
		return;
	place = data_of(number) + at[number];
	size = kind < XS_ACTIVITY_KINDS ? atomic_load(&activity->size[kind]) : 8;
	for (uint32_t i = 4; i < size && i < 512; i++)
		place[i] = what & 64 ? (unsigned char)take(1) : (unsigned char)(i % 4 ? 0 : 1);
	memcpy(place, &kind, sizeof(kind));
	/* where most kinds have them */
	memcpy(place + 16, &start, 8);
	memcpy(place + 24, &end, 8);
	if (what & 32)
		memcpy(place + 8, &start, 8);
	at[number] += size < 512 ? size & ~7u : 512;
}

static void put_enqueued(void)
{
	struct xs_ring *ring = rundir_ring(file, 0);
	struct xs_enqueued_record record = { .event = { .kind = XS_ENQUEUED,
							.words = sizeof(record) / 8,
							.source = XS_SOURCE_CUDA } };
	uint64_t head = atomic_load(&ring->head);

	record.event.tick = dir.launch.control->tick0 + take(3);
	record.event.flags = (uint8_t)take(1);
	record.event.name = take_name();
	record.correlation = (uint32_t)take(1) | (uint32_t)take(1) << 24;
	record.host_ticks = (uint32_t)take(2);
	if (XS_RING_MIN - (head & (XS_RING_MIN - 1)) < sizeof(record))
		return;
	memcpy((char *)ring + XS_RING_HEADER + (head & (XS_RING_MIN - 1)), &record, sizeof(record));
	atomic_store(&ring->head, head + sizeof(record));
}

static void step(struct xs_process *process)
{
	uint32_t what = (uint32_t)take(1), number = what >> 4 & 3;
	struct xs_activity_buffer *buffer;

	number = number < BUFFERS ? number : 0;
	buffer = buffers[number];
	switch (what & 15) {
	case 0:
		(void)xs_process_read(process, what & 128);
		break;
	case 1:
		xs_process_commit(process);
		break;
	case 2:
		atomic_store(&buffer->valid, what & 128 ? take(8) : at[number]);
		atomic_store(&buffer->state, XS_BUFFER_FULL);
		break;
	case 3:
		atomic_store(&buffer->state, (uint32_t)take(1));
		buffer->turn = (uint32_t)take(4);
		break;
	case 4:
		atomic_store(&activity->size[take(1) % XS_ACTIVITY_KINDS], (uint16_t)take(2));
		break;
	case 5:
		buffer->pair = (struct xs_activity_pair){ take(8), take(8), take(8) };
		activity->clock = (uint8_t)take(1);
		break;
	case 6: {
		uint64_t pointer = take(1);

		atomic_store(
			&activity->name[xs_activity_place(pointer, 0) & (XS_ACTIVITY_NAMES - 1)]
				 .name,
			take_name());
		atomic_store(
			&activity->name[xs_activity_place(pointer, 0) & (XS_ACTIVITY_NAMES - 1)]
				 .pointer,
			pointer);
		break;
	}
	case 7:
		atomic_store(&activity->dropped, take(8));
		atomic_store(&activity->made, take(8));
		break;
	case 8:
		activity->source = (uint8_t)take(1);
		activity->off = take_name();
		activity->text[take(1) % XS_ACTIVITY_TEXTS] = take_name();
		atomic_store(&activity->device[take(1) % XS_ACTIVITY_DEVICES].name, take_name());
		break;
	case 9:
		put_enqueued();
		break;
	default:
		put_record(number);
		break;
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct xs_process *process;
	char name[XS_NAME_MAX];
	unsigned wishes;

	input = data;
	left = size;
	wishes = (unsigned)take(1);
	verdict_options(&dir.run.copied_options, wishes, (unsigned)take(1));
	reset();
	xs_process_file_name(name, PID, 0, 0);
	for (unsigned early = (unsigned)take(1) & 3; early--;) /* before the drain process looks */
		switch (take(1) & 1) {
		case 0:
			activity->source = (uint8_t)take(1);
			break;
		default:
			atomic_store(&activity->size[take(1) % XS_ACTIVITY_KINDS],
				     (uint16_t)take(2));
		}
	process = xs_process_adopt(&dir.run, name);
	if (!process)
		return 0;
	while (left)
		step(process);
	(void)xs_process_read(process, true);
	xs_process_finish(process, XS_END_EXITED, 0);
	verdict(&dir);
	return 0;
}

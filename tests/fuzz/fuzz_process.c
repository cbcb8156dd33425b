/*
 * A hostile or torn process: its file, rings and names hold whatever the input says. The drain side
 * must neither crash, nor hang, nor write anything but JSON.
 *
 * Fields of the shared memory are set one by one: what lies in a ring or a file, whatever it is
 * called. Records of every kind, names of every length and memory that changes while it is read are
 * fuzz_kinds.c's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backlog.h"
#include "device_record.h"
#include "keep.h"
#include "kept.h"
#include "rundir.h"
#include "verdict.h"

#define PID	    4000000 /* nobody's */
#define SLOTS	    2u
#define NAMES_FIRST (sizeof(struct xs_strings) / 8)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct rundir dir;
static struct xs_process_file *file;
static struct xs_segment_file *segment;

static void at_exit(void)
{
	keep_files(false);
	rundir_close(&dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char second[XS_NAME_MAX];
	void *map;

	(void)argc, (void)argv;
	rundir_open(&dir, NULL);
	(void)atexit(at_exit);
	file = rundir_process(&dir, PID, 0, SLOTS, XS_RING_MIN);
	xs_process_file_name(second, PID, 0, 1);
	if (xs_shm_map(dir.launch.dir, second, XS_SHM_CREATE, xs_slot_offset(1, XS_RING_MIN), &map,
		       NULL) < 0)
		abort();
	segment = map;
	keep_files(true);
	/* names that records can have: short, long, with all that JSON must escape */
	(void)rundir_name(&dir, "domain", 0);
	(void)rundir_name(&dir, "domain::a task", NAMES_FIRST);
	(void)rundir_name(&dir, "\"\\\x01\xff\xc3\xa4", NAMES_FIRST);
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

static void take_into(void *place, size_t bytes)
{
	if (bytes > left)
		bytes = left;
	memcpy(place, input, bytes);
	input += bytes;
	left -= bytes;
}

/* An id: mostly a name that there is. */
static uint32_t take_name(void)
{
	uint32_t value = (uint32_t)take(1);

	return value < 250 ? NAMES_FIRST + value % 16 : value < 253 ? 0 : (uint32_t)take(4);
}

/* Records of good form with any content, at the ring's head; the ring need not have room. */
static void put_records(struct xs_ring *ring, unsigned count)
{
	static const uint8_t kinds[] = { 0,	     XS_PAD,	     XS_THREAD,	  XS_BEGIN,
					 XS_END,     XS_CALL,	     XS_DEVICE,	  XS_LOST_ENDS,
					 XS_CALL_IN, XS_CALL,	     XS_CALL_OUT, XS_COMMANDS,
					 XS_KERNEL,  XS_DEVICE_USED, XS_CALL_IN,  XS_CALL };
	static const uint8_t words[] = { 2, 2, 4, 2, 2, 4, 18, 2, 10, 4, 18, 12, 6, 2, 2, 4 };
	unsigned char *data = (unsigned char *)ring + XS_RING_HEADER;
	uint64_t head = atomic_load(&ring->head);

	while (count-- && left) {
		uint8_t kind = (uint8_t)take(1), size = words[kind % 16];
		unsigned char *place = data + (head & (XS_RING_MIN - 1));
		uint64_t room = XS_RING_MIN - (head & (XS_RING_MIN - 1));
		struct xs_device_record record;

		memset(&record, 0, sizeof(record));
		if (kind & 128)
			size = (uint8_t)take(1);
		record.event.tick = dir.launch.control->tick0 + take(kind & 64 ? 8 : 3);
		/* of calls: a number of a function */
		record.event.name = kind & 8 && kind % 16 < 12 ? (uint32_t)take(1) % 5
							       : take_name();
		record.event.kind = kind % 32 == 23 ? XS_LOST_BEGINS : kinds[kind % 16];
		record.event.words = size;
		record.event.source = kind & 64	 ? (uint8_t)take(1)
				      : kind & 8 ? XS_SOURCE_OPENCL + (kind >> 5 & 1)
						 : kind % 2 + 1;
		record.event.flags = (uint8_t)take(1);
		if (size > 2)
			take_into(&record.event + 1,
				  kind & 32 ? sizeof(record) - sizeof(record.event) : 8);
		if (head % 16 || room < sizeof(record))
			place = data, head = (head | (XS_RING_MIN - 1)) + 1;
		memcpy(place, &record, sizeof(record));
		head += size * 8u;
	}
	atomic_store(&ring->head, head);
}

static void put_raw(struct xs_ring *ring, size_t bytes)
{
	unsigned char *data = (unsigned char *)ring + XS_RING_HEADER;

	take_into(data + (atomic_load(&ring->head) & (XS_RING_MIN - 1)) % (XS_RING_MIN - 4096),
		  bytes < 4096 ? bytes : 4096);
	atomic_fetch_add(&ring->head, bytes);
}

static struct xs_ring *ring_at(unsigned number)
{
	return number < SLOTS
		       ? rundir_ring(file, number)
		       : (struct xs_ring *)((char *)segment + xs_slot_offset(0, XS_RING_MIN));
}

static void reset(void)
{
	memset(file, 0, sizeof(*file));
	file->pid = PID;
	file->ppid = 1;
	file->join_tick = dir.launch.control->tick0;
	file->slots = SLOTS;
	atomic_store(&file->used, SLOTS);
	file->ring_size = XS_RING_MIN;
	memcpy(file->comm, "app", 4);
	memset(segment, 0, sizeof(*segment));
	segment->slots = 1;
	segment->ring_size = XS_RING_MIN;
	atomic_store(&segment->magic, XS_MAGIC);
	atomic_store(&segment->used, 1);
	for (unsigned i = 0; i <= SLOTS; i++) {
		struct xs_ring *ring = ring_at(i);

		memset(ring, 0, sizeof(*ring));
		memset((char *)ring + XS_RING_HEADER, 0, 8192);
		atomic_store(&ring->state, XS_RING_LIVE);
	}
	atomic_store(&file->magic, XS_MAGIC);
}

/* One thing that a process, or who scribbles in its memory, may do. */
static void step(struct xs_process *process)
{
	unsigned what = (unsigned)take(1);
	struct xs_ring *ring = ring_at(what >> 4 & 3 ? (what >> 4 & 3) - 1u : 0);

	switch (what & 15) {
	case 0:
		(void)xs_process_read(process, what & 64);
		break;
	case 1:
		xs_process_commit(process);
		break;
	case 2:
		put_raw(ring, take(1) * 16 + (what & 128 ? take(1) : 0));
		break;
	case 3:
		atomic_store(&ring->head, take(8));
		break;
	case 4:
		atomic_store(&ring->tail, take(8));
		atomic_store(&ring->tail_lost, take(8));
		atomic_store(&ring->tail_tid, (uint32_t)take(4));
		atomic_store(&ring->tail_losses, take(8));
		take_into(&ring->given_up[take(1) % XS_GIVEN_UP], sizeof(ring->given_up[0]));
		break;
	case 5:
		atomic_store(&ring->call, (uint32_t)take(4));
		atomic_store(&ring->call_tick, take(8));
		atomic_store(&ring->state, (uint32_t)take(1));
		atomic_store(&ring->waiting, (uint32_t)take(1));
		break;
	case 6:
		atomic_store(&ring->lost, take(8));
		break;
	case 7:
		take_into(ring, 64);
		break;
	case 8:
		atomic_store(&file->segments, (uint32_t)take(what & 128 ? 4 : 1));
		segment->slots = (uint32_t)take(what & 64 ? 4 : 1);
		if (what & 128)
			segment->ring_size = take(8);
		atomic_store(&segment->used, (uint32_t)take(what & 64 ? 4 : 1));
		atomic_store(&file->used, (uint32_t)take(1));
		break;
	default:
		put_records(ring, what >> 6 ? 8 : 2);
	}
}

/*
 * What a killed drain process may have left; nobody else can write it, but it may be of a machine
 * that has gone down.
 */
static void put_kept(void)
{
	struct xs_kept_ring *ring;
	struct xs_kept_file *kept;
	char text[XS_NAME_MAX];
	uint64_t turn = 0;
	void *map;

	xs_kept_name(text, PID, 0, 0);
	(void)unlinkat(dir.run.directory, text, 0);
	if (xs_shm_map(dir.launch.dir, text, XS_SHM_CREATE, xs_kept_offset(SLOTS), &map, NULL) < 0)
		abort();
	kept = map;
	kept->pid = PID;
	xs_kept_commit(kept, &turn, 0, 0);
	xs_kept_commit(kept, &turn, 0, 0);
	atomic_store(&kept->magic, XS_MAGIC);
	ring = rundir_kept_ring(map, 0);
	for (unsigned i = 0; i < 2; i++) {
		take_into(&ring->saved[i].tail, 88);
		ring->saved[i].turn = i + 1;
	}
	ring->saved[0].turn += (take(1) & 3);
	for (unsigned i = 0; i < 2; i++)
		xs_kept_end_ring(&ring->saved[i]);
	munmap(map, xs_kept_offset(SLOTS));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct xs_options *options = &dir.run.copied_options;
	struct xs_process *process, *list = NULL;
	unsigned wishes, mode, reports;
	char name[XS_NAME_MAX];

	input = data;
	left = size;
	reset();
	wishes = (unsigned)take(1);
	mode = (unsigned)take(1);
	reports = (unsigned)take(1);
	verdict_options(options, wishes, reports);
	options->compress = mode & 1 ? XS_COMPRESS_ZSTD : XS_COMPRESS_NONE;
	options->on_full = mode & 2 ? XS_FULL_OVERWRITE : XS_FULL_BLOCK;
	/* or so little memory that some of it is on disk */
	options->backlog = reports & 1 ? XS_RING_MIN / 2 : 8 * XS_RING_MIN;
	options->backlog_disk = 8 * XS_RING_MIN;
	dir.run.recovering = mode & 4;
	xs_backlog_open(&dir.run, &list);
	if (mode & 8)
		take_into(file, 96);
	if (mode & 16)
		take_into((char *)dir.strings + sizeof(struct xs_strings), 48);
	if (mode & 32)
		put_records(ring_at(0), 8);
	if (mode & 64)
		put_kept();
	xs_process_file_name(name, PID, 0, 0);
	process = xs_process_adopt(&dir.run, name);
	if (process) {
		list = process;
		for (unsigned i = 0; i < 40 && left; i++)
			step(process);
		(void)xs_process_read(process, true);
		xs_process_finish(process, (enum xs_end)(mode >> 7), (int)take(1));
	}
	xs_backlog_close(&dir.run);
	(void)unlinkat(dir.run.directory, "backlog", 0);
	verdict(&dir);
	return 0;
}

/*
 * Rings and files that are not as they should be, as a dying or hostile process may leave them.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backlog.h"
#include "drained.h"
#include "kept.h"

static void spoilt_rings(void)
{
	unsigned long long seed = 3;

	for (int round = 0; round < 300; round++) {
		struct xs_ring *ring;
		struct trace trace;
		unsigned spoil = 1u + tap_random(&seed) % 4;

		open_all(NULL, 2);
		ring = rundir_ring(file, 0);
		put_thread(&dir, ring, 77, "t");
		for (int i = 0; i < 500; i++)
			put_begin(&dir, ring, tick(), task("x")),
				put_end(&dir, ring, tick(), domain);
		for (unsigned i = 0; i < spoil; i++)
			((unsigned char *)ring + XS_RING_HEADER)[tap_random(&seed) % 16000] =
				(unsigned char)tap_random(&seed);
		if (round % 3 == 0)
			atomic_store(&ring->head,
				     (uint64_t)tap_random(&seed) << 33 ^ tap_random(&seed));
		if (round % 5 == 0)
			atomic_store(&ring->tail_lost,
				     (uint64_t)tap_random(&seed) << 33 ^ tap_random(&seed));
		if (round % 7 == 0)
			atomic_store(&ring->call, tap_random(&seed) << 1);
		finish(adopt());
		if (round % 3) { /* with nothing that can be believed there is no trace at all */
			trace = load();
			drop(&trace);
		}
		close_all();
	}
}

/*
 * What was moved is checked when it is read. A record that cannot be one costs the rest of its
 * step, and what happens to the ring later nothing.
 */
static void spoilt_backlog(void)
{
	static const struct xs_options options = { .chrome_itt = true,
						   .ring_size = XS_RING_MIN,
						   .backlog = 8 * XS_RING_MIN };
	const uint32_t step = XS_RING_MIN / XS_RING_STEPS, tasks = 5 * step / 32;
	unsigned long long seed = 5;

	for (uint32_t round = 0; round < 40; round++) {
		struct xs_process *process, *list;
		unsigned char *data;
		struct trace trace;

		open_all(&options, 1);
		data = (unsigned char *)rundir_ring(file, 0) + XS_RING_HEADER;
		put_thread(&dir, rundir_ring(file, 0), 77, "t");
		for (uint32_t i = 0; i < tasks; i++) {
			put_begin(&dir, rundir_ring(file, 0), tick(), task("x"));
			put_end(&dir, rundir_ring(file, 0), tick(), domain);
		}
		if (round) /* the words of a record in the second step, or anything */
			data[step + tap_random(&seed) % step] = (unsigned char)tap_random(&seed);
		else
			data[step + step / 2 + offsetof(struct xs_event, words)] = 1;
		list = process = adopt();
		xs_backlog_open(&dir.run, &list);
		xs_process_find_tracks(process, false);
		CHECK(xs_backlog_relieve(&dir.run, UINT64_MAX) == 5 * step, "not moved");
		memset(data, 0xff, 5 * step);
		finish(process);
		xs_backlog_close(&dir.run);
		trace = load();
		if (!round)
			CHECK(trace_named(&trace, "d::x") == tasks - step / 2 / 32,
			      "%zu of %u tasks", trace_named(&trace, "d::x"), tasks);
		else
			CHECK(trace_named(&trace, "d::x") >= tasks - step / 32 - 1,
			      "%zu of %u tasks", trace_named(&trace, "d::x"), tasks);
		drop(&trace);
		close_all();
	}
}

/* A record's place is a multiple of 16, whatever the ring says. */
static void crooked_head(void)
{
	struct xs_ring *ring;
	struct xs_process *process;
	struct trace trace;

	open_all(NULL, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	put_begin(&dir, ring, tick(), task("x"));
	atomic_store(&ring->head, atomic_load(&ring->head) + 7);
	process = adopt();
	xs_process_read(process, true);
	atomic_store(&ring->head, atomic_load(&ring->head) + 160);
	for (uint32_t i = 0; i < 4096; i++)
		((unsigned char *)ring + XS_RING_HEADER)[48 + i] =
			2; /* two words wherever one looks */
	finish(process);
	trace = load();
	drop(&trace);
	close_all();
}

/* A slot of a later file that is used before the first file is full: each ring is read once. */
static void segments(void)
{
	struct xs_segment_file *segment;
	struct xs_process *process;
	struct xs_ring *ring;
	struct trace trace;
	char name[XS_NAME_MAX];
	void *map;

	open_all(NULL, 4);
	atomic_store(&file->used, 1);
	xs_process_file_name(name, PID, 0, 1);
	if (!CHECK(!xs_shm_map(dir.launch.dir, name, XS_SHM_CREATE,
			       xs_slot_offset(2, file->ring_size), &map, NULL),
		   "segment"))
		return;
	segment = map;
	segment->slots = 2;
	segment->ring_size = file->ring_size;
	for (uint32_t i = 0; i < 2; i++) {
		ring = (struct xs_ring *)((char *)map + xs_slot_offset(i, file->ring_size));
		rundir_ring_init(ring, file->ring_size, XS_FULL_BLOCK);
		put_thread(&dir, ring, 80 + i, "s");
		put_begin(&dir, ring, tick(), task("s"));
		put_end(&dir, ring, tick(), domain);
	}
	atomic_store(&segment->used, 2);
	atomic_store(&segment->magic, XS_MAGIC);
	atomic_store(&file->segments, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	process = adopt();
	for (int i = 0; i < 5; i++)
		xs_process_read(process, true);
	ring = rundir_ring(file, 1);
	put_thread(&dir, ring, 78, "late");
	put_begin(&dir, ring, tick(), task("late"));
	put_end(&dir, ring, tick(), domain);
	atomic_store(&file->used, 2);
	finish(process);
	trace = load();
	CHECK(trace_named(&trace, "d::s") == 2, "%zu of 2", trace_named(&trace, "d::s"));
	CHECK(trace_named(&trace, "d::late") == 1, "%zu of 1", trace_named(&trace, "d::late"));
	drop(&trace);
	munmap(map, xs_slot_offset(2, file->ring_size));
	close_all();
}

/* The file's length says how many rings it has. */
static void wrong_slots(void)
{
	static const uint32_t wrong[] = { 0, 2, 65536, 0xffffffff };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct xs_process *process;

		open_all(NULL, 1);
		file->slots = wrong[i];
		process = adopt();
		CHECK(process->first.slots == 1 && process->corrupt == 1, "%u rings", wrong[i]);
		finish(process);
		file->slots = 1;
		close_all();
	}
}

static void hostile_headers(void)
{
	static const struct {
		size_t offset;
		uint64_t value;
		size_t size;
	} faults[] = {
#define FAULT(field, value)                               \
	{ offsetof(struct xs_process_file, field), value, \
	  sizeof(((struct xs_process_file *)0)->field) }
		FAULT(pid, 0),
		FAULT(pid, 0xffffffff),
		FAULT(ring_size, 0),
		FAULT(ring_size, XS_RING_MIN - 16),
		FAULT(ring_size, 3ull << 20),
		FAULT(ring_size, 1ull << 31),
		FAULT(ring_size, 1ull << 63),
		FAULT(magic, 0),
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char name[XS_NAME_MAX];

		open_all(NULL, 1);
		memcpy((char *)file + faults[i].offset, &faults[i].value, faults[i].size);
		xs_process_file_name(name, PID, 0, 0);
		CHECK(!xs_process_adopt(&dir.run, name), "fault %zu", i);
		file->slots = 1;
		file->ring_size = XS_RING_MIN;
		close_all();
	}
	for (uint64_t size = 0; size < 20000; size += 4000) {
		char name[XS_NAME_MAX];
		void *map;

		rundir_open(&dir, NULL);
		xs_process_file_name(name, PID, 0, 0);
		if (size && !xs_shm_map(dir.launch.dir, name, XS_SHM_CREATE, size, &map, NULL)) {
			((struct xs_process_file *)map)->magic = XS_MAGIC;
			((struct xs_process_file *)map)->pid = PID;
			munmap(map, size);
		}
		CHECK(!xs_process_adopt(&dir.run, name), "a file of %" PRIu64 " bytes", size);
		rundir_close(&dir);
	}
}

/* What was kept of two rings cannot be: they are not read, and nothing worse. */
static void spoilt_kept(void)
{
	struct xs_kept_file *kept;
	struct xs_process *process;
	struct trace trace;
	pid_t pid;

	open_all(NULL, 2);
	for (uint32_t i = 0; i < 2; i++) {
		put_thread(&dir, rundir_ring(file, i), 77 + i, "t");
		put_begin(&dir, rundir_ring(file, i), tick(), task("x"));
	}
	pid = fork();
	if (!pid) {
		process = adopt();
		xs_process_read(process, false);
		xs_process_commit(process);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	kept = rundir_kept(&dir, file);
	for (uint32_t i = 0; i < 2; i++) {
		struct xs_kept_ring *ring = rundir_kept_ring(kept, i);

		CHECK(ring->saved[0].turn && !ring->saved[1].turn, "ring %u", i);
		ring->saved[0].tail = i ? 7 : 1u << 20;
		ring->saved[0].records = i ? 0 : 1u << 30;
		ring->saved[0].depth = i ? 1u << 30 : 1;
		if (!i)
			xs_kept_end_ring(&ring->saved[0]);
	}
	dir.run.recovering = true;
	finish(adopt());
	trace = load();
	CHECK(trace_other(&trace, "corrupt_rings") == 2, "%" PRIu64,
	      trace_other(&trace, "corrupt_rings"));
	CHECK(trace.count <= 2 * XS_RING_SAVED, "%zu slices", trace.count);
	drop(&trace);
	close_all();
}

/* --recover of a flight recorder goes back from the head: not if that cannot be one. */
static void no_way_back(void)
{
	static const struct xs_options options = { .chrome_itt = true,
						   .ring_size = XS_RING_MIN,
						   .flight = 1000000000 };
	static const uint64_t heads[] = { UINT64_MAX,	   UINT64_MAX - 15, 0xfffffffffffe0000,
					  1ull << 63,	   0x12bd76613d50,  0x12bd76613d52,
					  2 * XS_RING_MIN, XS_RING_MIN + 16 };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct xs_ring *ring;
		struct xs_process *process;
		struct xs_event *data;

		open_all(&options, 1);
		ring = rundir_ring(file, 0);
		put_thread(&dir, ring, 77, "t");
		data = (void *)((unsigned char *)ring + XS_RING_HEADER);
		for (uint32_t at = 0; at < XS_RING_MIN / sizeof(*data); at++)
			data[at] = (struct xs_event){
				.tick = tick(), .kind = XS_END, .words = 2, .name = domain
			};
		atomic_store(&ring->head, heads[i]);
		dir.run.recovering = true;
		process = adopt();
		xs_process_find_tracks(process, false);
		xs_process_read(process, true);
		CHECK(process->corrupt, "head %" PRIx64, heads[i]);
		finish(process);
		rundir_clear(&dir);
		close_all();
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("a spoilt backlog costs a step at most", spoilt_backlog);
	tap_run("spoilt rings", spoilt_rings);
	tap_run("a head between records", crooked_head);
	tap_run("rings in several files", segments);
	tap_run("how many rings a file has", wrong_slots);
	tap_run("hostile headers", hostile_headers);
	tap_run("what was kept is spoilt", spoilt_kept);
	tap_run("a head from which there is no way back", no_way_back);
	return tap_done();
}

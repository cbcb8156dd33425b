#include "below.h"
#include "device_record.h"
#include "rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_NS 86400000000000ull

static void die(const char *what, int error)
{
	printf("Bail out! %s: %s\n", what, strerror(error));
	exit(99);
}

void rundir_open(struct rundir *dir, const struct xs_options *options)
{
	static FILE *quiet;
	static char *argv[] = { "test", "\"\x01\xff", NULL };
	struct xs_options all = { .chrome_call = true,
				  .chrome_kernel = true,
				  .chrome_itt = true,
				  .ring_size = XS_RING_MIN };
	struct xs_clock_pair first;
	struct xs_control *control;
	struct xs_options mine;
	struct xs_shm_file strings;
	void *map;
	int error;

	/* what is told to the user; the descriptor stays, for sanitizers */
	if (stderr != quiet && (quiet = fopen("/dev/null", "we")))
		stderr = quiet;
	memset(dir, 0, sizeof(*dir));
	mine = options ? *options : all;
	mine.follow_children = 1;
	error = xs_launch_create(&dir->launch, &mine, argv, argv);
	if (error < 0)
		die("run directory", -error);
	control = dir->launch.control;
	(void)snprintf(dir->out, sizeof(dir->out), "%s", dir->launch.dir);
	(void)strncat(dir->out, ".out", sizeof(dir->out) - strlen(dir->out) - 1);
	if (mkdir(dir->out, 0700) < 0)
		die(dir->out, errno);
	if (!control->options.output_dir[0])
		memcpy(control->options.output_dir, dir->out, sizeof(control->options.output_dir));
	if (control->options.output[0]) { /* nothing of a test goes to where it was started */
		char name[64];

		(void)snprintf(name, sizeof(name), "%.60s", control->options.output);
		(void)snprintf(control->options.output, sizeof(control->options.output),
			       "%.900s/%s", dir->out, name);
	}
	control->options_sum = xs_options_sum(&control->options);
	dir->run.directory = xs_shm_open_directory(dir->launch.dir);
	dir->run.mailbox = dir->launch.mailbox;
	error = xs_shm_map(dir->launch.dir, "strings", XS_SHM_OPEN, XS_STRINGS_SIZE, &map,
			   &strings);
	if (error < 0)
		die("strings", -error);
	/* as drain.c's open_run() */
	dir->run.strings = dir->strings = map;
	dir->run.strings_size = strings.size;
	dir->run.control = control;
	dir->run.options = &dir->run.copied_options;
	dir->run.rank = -1;
	dir->run.copied_options = control->options;
	dir->run.use_tsc = control->use_tsc;
	memcpy(dir->run.run_id, control->run_id, sizeof(dir->run.run_id));
	memcpy(dir->run.command, control->command, sizeof(dir->run.command));
	dir->run.command_length = control->command_length;
	memcpy(dir->run.dir, dir->launch.dir, sizeof(dir->run.dir));
	memcpy(dir->run.host, "testhost", 9);
	dir->run.date_offset = (int64_t)(control->real0 - control->mono0);
	dir->run.base = control->real0 / DAY_NS * DAY_NS;
	first.tick = dir->run.began = control->tick0;
	first.mono = control->mono0;
	if (xs_timeline_init(&dir->run.clock, control->use_tsc ? XS_CLOCK_TSC : XS_CLOCK_MONOTONIC,
			     first,
			     (int64_t)(control->real0 - control->mono0 - dir->run.base)) < 0 ||
	    xs_timeline_init(&dir->run.raw, XS_CLOCK_RAW, xs_clock_pair(XS_CLOCK_RAW),
			     dir->run.clock.offset) < 0)
		die("clock", ENOMEM);
}

static void empty(DIR *list)
{
	struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (entry->d_name[0] != '.' || (entry->d_name[1] && entry->d_name[1] != '.'))
			(void)unlinkat(dirfd(list), entry->d_name, 0);
}

/* The directory of the traces, from its beginning. It stays open: fuzzers read it in each run. */
static DIR *traces(struct rundir *dir)
{
	if (dir->list)
		rewinddir(dir->list);
	else
		dir->list = opendir(dir->out);
	return dir->list;
}

void rundir_clear(struct rundir *dir)
{
	empty(traces(dir));
}

void rundir_close(struct rundir *dir)
{
	xs_texts_fini(&dir->run);
	xs_below_fini(&dir->run);
	xs_timeline_fini(&dir->run.clock);
	xs_timeline_fini(&dir->run.raw);
	munmap(dir->strings, XS_STRINGS_SIZE);
	munmap(dir->launch.control, sizeof(*dir->launch.control));
	munmap(dir->launch.mailbox, sizeof(*dir->launch.mailbox));
	close(dir->run.directory);
	close(dir->launch.directory);
	empty(traces(dir));
	if (dir->list)
		closedir(dir->list);
	dir->list = opendir(dir->launch.dir);
	empty(dir->list);
	if (dir->list)
		closedir(dir->list);
	dir->list = NULL;
	(void)rmdir(dir->out);
	(void)rmdir(dir->launch.dir);
}

static struct xs_producer producers[256];
static unsigned producer_count; /* ever */

struct xs_producer *rundir_producer(const struct xs_ring *ring)
{
	unsigned most = sizeof(producers) / sizeof(producers[0]);

	/* the newest first: others may have been at the same address */
	for (unsigned i = 1; i <= most && i <= producer_count; i++)
		if (producers[(producer_count - i) % most].ring == ring)
			return &producers[(producer_count - i) % most];
	abort();
}

void rundir_ring_init(struct xs_ring *ring, uint64_t size, enum xs_on_full policy)
{
	xs_ring_init(&producers[producer_count++ % (sizeof(producers) / sizeof(producers[0]))],
		     ring, (unsigned char *)ring + XS_RING_HEADER, size, policy);
}

struct xs_process_file *rundir_process(struct rundir *dir, int pid, uint32_t serial, uint32_t slots,
				       uint64_t ring_size)
{
	struct xs_process_file *file;
	char name[XS_NAME_MAX];
	void *map;
	int error;

	xs_process_file_name(name, pid, serial, 0);
	error = xs_shm_map(dir->launch.dir, name, XS_SHM_CREATE, xs_slot_offset(slots, ring_size),
			   &map, NULL);
	if (error < 0)
		die(name, -error);
	file = map;
	file->pid = pid;
	file->ppid = getpid();
	file->join_tick = xs_tick(dir->run.control->use_tsc);
	file->serial = serial;
	file->slots = slots;
	file->ring_size = ring_size;
	memcpy(file->comm, "test", 5);
	for (uint32_t i = 0; i < slots; i++) {
		struct xs_ring *ring = rundir_ring(file, i);

		rundir_ring_init(ring, ring_size, (enum xs_on_full)dir->run.options->on_full);
		atomic_store(&ring->state, XS_RING_LIVE);
	}
	atomic_store(&file->used, slots);
	atomic_store(&file->magic, XS_MAGIC);
	return file;
}

struct xs_kept_file *rundir_kept(struct rundir *dir, const struct xs_process_file *file)
{
	char name[XS_NAME_MAX];
	void *map;
	int error;

	xs_kept_name(name, file->pid, file->serial, 0);
	error = xs_shm_map(dir->launch.dir, name, XS_SHM_OPEN, xs_kept_offset(file->slots), &map,
			   NULL);
	if (error < 0)
		die(name, -error);
	return map;
}

struct xs_kept_ring *rundir_kept_ring(struct xs_kept_file *kept, uint32_t slot)
{
	return (struct xs_kept_ring *)((char *)kept + xs_kept_offset(slot));
}

struct xs_ring *rundir_ring(struct xs_process_file *file, uint32_t slot)
{
	return (struct xs_ring *)((char *)file + xs_slot_offset(slot, file->ring_size));
}

void rundir_process_unmap(struct xs_process_file *file)
{
	munmap(file, xs_slot_offset(file->slots, file->ring_size));
}

uint32_t rundir_name(struct rundir *dir, const char *text, uint32_t scope)
{
	return xs_intern(dir->strings, text, (uint32_t)strlen(text), scope);
}

static struct xs_event *begin(struct rundir *dir, struct xs_ring *ring, uint32_t size, uint8_t kind,
			      uint64_t tick, uint32_t name, enum xs_role role)
{
	struct xs_event *event =
		xs_ring_reserve(rundir_producer(ring), &dir->launch.mailbox->bell, size, role);

	if (event) {
		event->tick = tick;
		event->name = name;
		event->kind = kind;
		event->words = (uint8_t)(size / 8);
		event->source = kind == XS_BEGIN || kind == XS_END ? XS_SOURCE_ITT
								   : XS_SOURCE_OPENCL;
		event->flags = 0;
	}
	return event;
}

bool put_thread(struct rundir *dir, struct xs_ring *ring, uint32_t tid, const char *name)
{
	struct xs_thread_record *record = (void *)begin(dir, ring, sizeof(*record), XS_THREAD,
							xs_tick(dir->run.control->use_tsc),
							rundir_name(dir, name, 0), XS_ROLE_OTHER);

	if (!record)
		return false;
	record->tid = tid;
	record->lost = atomic_load(&ring->lost);
	atomic_store(&ring->tid, tid);
	xs_ring_commit(rundir_producer(ring), sizeof(*record));
	return true;
}

struct xs_event *put_space(struct rundir *dir, struct xs_ring *ring, uint32_t size)
{
	return begin(dir, ring, size, XS_PAD, 0, 0, XS_ROLE_OTHER);
}

bool put_pad(struct rundir *dir, struct xs_ring *ring, uint32_t size)
{
	struct xs_event *event = put_space(dir, ring, size);

	if (event)
		xs_ring_commit(rundir_producer(ring), size);
	return event;
}

bool put_begin(struct rundir *dir, struct xs_ring *ring, uint64_t tick, uint32_t name)
{
	struct xs_event *event = begin(dir, ring, 16, XS_BEGIN, tick, name, XS_ROLE_BEGIN);

	if (event)
		xs_ring_commit(rundir_producer(ring), 16);
	return event;
}

bool put_end(struct rundir *dir, struct xs_ring *ring, uint64_t tick, uint32_t domain)
{
	struct xs_event *event = begin(dir, ring, 16, XS_END, tick, domain, XS_ROLE_END);

	if (event)
		xs_ring_commit(rundir_producer(ring), 16);
	return event;
}

bool put_call(struct rundir *dir, struct xs_ring *ring, uint64_t tick, uint64_t duration,
	      uint32_t function, uint8_t flags, int64_t result)
{
	struct xs_call_record *call =
		(void *)begin(dir, ring, sizeof(*call), XS_CALL, tick, function, XS_ROLE_OTHER);

	if (!call)
		return false;
	call->event.flags = flags;
	call->duration = duration;
	call->result = result;
	xs_ring_commit(rundir_producer(ring), sizeof(*call));
	return true;
}

bool put_device(struct rundir *dir, struct xs_ring *ring, const struct xs_device_record *record,
		bool shaped)
{
	uint32_t size = shaped ? sizeof(*record) : XS_DEVICE_RECORD_SHORT;
	struct xs_event *event = begin(dir, ring, size, XS_DEVICE, record->event.tick,
				       record->event.name, XS_ROLE_OTHER);

	if (!event)
		return false;
	event->flags = record->event.flags;
	if (record->event.source)
		event->source = record->event.source;
	memcpy(event + 1, &record->event + 1, size - sizeof(*event));
	xs_ring_commit(rundir_producer(ring), size);
	return true;
}

char *rundir_trace(struct rundir *dir, char *path, size_t size, size_t *ret_length)
{
	DIR *list = traces(dir);
	struct dirent *entry;
	char *text = NULL;
	int found = 0;

	while (list && (entry = readdir(list))) {
		if (entry->d_name[0] == '.' && (!entry->d_name[1] || entry->d_name[1] == '.'))
			continue;
		found++;
		(void)snprintf(path, size, "%s/%s", dir->out, entry->d_name);
	}
	if (found == 1) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && !fstat(fd, &st) && (text = malloc((size_t)st.st_size + 1))) {
			ssize_t n = read(fd, text, (size_t)st.st_size);

			*ret_length = n > 0 ? (size_t)n : 0;
			text[*ret_length] = '\0';
		}
		if (fd >= 0)
			close(fd);
	}
	return text;
}

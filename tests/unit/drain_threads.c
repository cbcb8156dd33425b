/*
 * Both sides in one process, for ThreadSanitizer: threads that trace through the real collector,
 * and the drain side's reading in another thread. So that the sanitizer sees one memory, a file of
 * the run directory is mapped once for both.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#define xs_shm_map    real_shm_map
#define xs_shm_map_at real_shm_map_at
#include "../../common/shm.c"
#undef xs_shm_map
#undef xs_shm_map_at

#include "collector.h"
#include "itt_abi.h"
#include "rundir.h"
#include "tap.h"
#include "trace.h"

#define THREADS 6
#if defined(__SANITIZE_THREAD__)
#define ROUNDS 3000
#else
#define ROUNDS 30000
#endif

static struct rundir dir;
static _Atomic bool done;
static _Atomic unsigned begun;

/* ---- one mapping for both sides ---- */

static struct {
	char name[XS_NAME_MAX];
	void *map;
	struct xs_shm_file file;
} mapped[64];
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;

int xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
		  void **ret_map, struct xs_shm_file *ret_file);
int xs_shm_map(const char *path, const char *name, enum xs_shm_access access, uint64_t size,
	       void **ret_map, struct xs_shm_file *ret_file);

int xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
		  void **ret_map, struct xs_shm_file *ret_file)
{
	bool create = access == XS_SHM_CREATE;
	int error = -ENOMEM;
	size_t i = 0;

	if (access == XS_SHM_READ)
		access = XS_SHM_OPEN; /* the other side writes */
	/* one side's own; the launcher unmaps it at once */
	if (name[0] == 'd' || (create && !strcmp(name, "strings")))
		return real_shm_map_at(directory, name, access, size, ret_map, ret_file);
	pthread_mutex_lock(&mapped_lock);
	while (i < sizeof(mapped) / sizeof(mapped[0]) && mapped[i].map &&
	       strcmp(mapped[i].name, name))
		i++;
	if (i < sizeof(mapped) / sizeof(mapped[0]) && !mapped[i].map) {
		error = real_shm_map_at(directory, name, access, size, &mapped[i].map,
					&mapped[i].file);
		if (!error)
			(void)snprintf(mapped[i].name, sizeof(mapped[i].name), "%s", name);
	} else if (i < sizeof(mapped) / sizeof(mapped[0])) {
		error = 0;
	}
	if (!error) {
		*ret_map = mapped[i].map;
		if (ret_file)
			*ret_file = mapped[i].file;
	}
	pthread_mutex_unlock(&mapped_lock);
	return error;
}

int xs_shm_map(const char *path, const char *name, enum xs_shm_access access, uint64_t size,
	       void **ret_map, struct xs_shm_file *ret_file)
{
	int directory = xs_shm_open_directory(path), error;

	if (directory < 0)
		return directory;
	error = xs_shm_map_at(directory, name, access, size, ret_map, ret_file);
	close(directory);
	return error;
}

/* Before the collector's constructor, which looks for a run once. */
__attribute__((constructor(101))) static void make_run(void)
{
	static char value[XS_ENV_RUN_MAX];

	rundir_open(&dir, NULL);
	xs_run_variable(value, dir.launch.dir, dir.launch.control);
	(void)setenv(XS_ENV_RUN, value, 1);
}

/* ---- threads ---- */

static void *consume(void *data)
{
	struct xs_process **ret_process = data, *process = NULL;
	struct xs_doorbell *bell = &dir.run.mailbox->bell;

	for (bool last = false; !last;) {
		uint32_t rung = atomic_load_explicit(&bell->rung, memory_order_relaxed);

		last = atomic_load(&done);
		atomic_fetch_add_explicit(&dir.run.control->consumer.heartbeat, 1,
					  memory_order_relaxed);
		for (uint32_t serial = 0;
		     !process && serial < atomic_load(&dir.run.mailbox->joined); serial++) {
			char name[XS_NAME_MAX];

			xs_process_file_name(name, getpid(), serial, 0);
			process = xs_process_adopt(&dir.run, name);
		}
		xs_timeline_update(&dir.run.clock);
		if (process && xs_process_read(process, false) >= 65536)
			continue;
		if (process)
			xs_process_commit(process);
		atomic_store_explicit(&bell->sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (!process || !xs_process_urgent(process))
			xs_doorbell_wait(bell, rung, 5000000);
		atomic_store_explicit(&bell->sleeping, 0, memory_order_relaxed);
	}
	*ret_process = process;
	return NULL;
}

static void *short_thread(void *data)
{
	__itt_domain *domain = __itt_domain_create("short");
	__itt_string_handle *handle = __itt_string_handle_create(data);
	__itt_id none = { 0, 0, 0 };

	(void)prctl(PR_SET_NAME, "short");
	for (int i = 0; i < 10; i++) {
		__itt_task_begin(domain, none, none, handle);
		__itt_task_end(domain);
		atomic_fetch_add(&begun, 1);
	}
	return NULL;
}

static void *produce(void *data)
{
	unsigned number = (unsigned)(size_t)data;
	__itt_domain *domain = __itt_domain_create("domain"), *other = __itt_domain_create("other");
	__itt_id none = { 0, 0, 0 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		char name[32];
		pthread_t thread;

		(void)snprintf(name, sizeof(name), "task %u", i % 50);
		__itt_task_begin(domain, none, none, __itt_string_handle_create(name));
		__itt_task_begin(other, none, none, __itt_string_handle_create("inner"));
		if (i % 500 == 499 && number == 0 &&
		    !pthread_create(&thread, NULL, short_thread, "a task"))
			(void)pthread_join(thread, NULL);
		__itt_task_end(i % 7 ? other : domain);
		__itt_task_end(i % 7 ? domain : other);
		atomic_fetch_add(&begun, 2);
	}
	return NULL;
}

static void go(enum xs_on_full policy, uint64_t ring_size, bool early)
{
	struct xs_process *process = NULL;
	pthread_t threads[THREADS], consumer;
	char path[PATH_MAX], complaint[256] = "", *text;
	const struct slice *overlap;
	struct trace trace;
	unsigned slices;
	size_t length;
	uint64_t lost;

	dir.run.control->options.on_full = dir.run.copied_options.on_full = policy;
	dir.run.control->options.ring_size = dir.run.copied_options.ring_size = ring_size;
	dir.run.control->options_sum = xs_options_sum(&dir.run.control->options);
	dir.run.control->consumer.pid = getpid();
	if (early)
		(void)xs_collector_options(); /* joins */
	if (pthread_create(&consumer, NULL, consume, &process))
		abort();
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, produce, (void *)i))
			abort();
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	atomic_store(&done, true);
	(void)pthread_join(consumer, NULL);
	if (!CHECK(process, "the collector has joined"))
		return;
	while (xs_process_read(process, true))
		;
	xs_process_finish(process, XS_END_EXITED, 0);
	text = rundir_trace(&dir, path, sizeof(path), &length);
	if (!CHECK(text, "no trace") ||
	    !CHECK(trace_parse(&trace, text, length, complaint, sizeof(complaint)), "%s",
		   complaint))
		return;
	slices = (unsigned)trace.count;
	overlap = trace_overlap(&trace);
	CHECK(!overlap, "%s overlaps what it is in", overlap->name);
	lost = trace_other(&trace, "lost");
	CHECK(slices + lost >= begun && slices <= begun, "%u slices, %u begun, %llu lost", slices,
	      begun, (unsigned long long)lost);
	CHECK(policy != XS_FULL_BLOCK || (slices == begun && !lost), "%u of %u slices, %llu lost",
	      slices, begun, (unsigned long long)lost);
	CHECK(slices > 1000 || policy == XS_FULL_OVERWRITE, "%u slices", slices);
	trace_free(&trace);
	rundir_clear(&dir);
}

static void block(void)
{
	go(XS_FULL_BLOCK, XS_RING_MIN, true);
}

static void block_late(void)
{
	go(XS_FULL_BLOCK, XS_RING_DEFAULT, false);
}

static void drop(void)
{
	go(XS_FULL_DROP, XS_RING_MIN, true);
}

static void overwrite(void)
{
	go(XS_FULL_OVERWRITE, XS_RING_MIN, true);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("block", block);
	tap_run("block, joined by the first of all threads", block_late);
	tap_run("drop", drop);
	tap_run("overwrite", overwrite);
	rundir_close(&dir);
	return tap_done();
}

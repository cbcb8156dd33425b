/*
 * A hostile process that writes records of every kind and size, with names of every kind and
 * length, and changes all that it shares with the drain process while that reads it. The drain side
 * must neither crash, nor hang, nor write anything but JSON, nor write into what it does not own.
 */
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "flip.h"
#include "keep.h"
#include "rundir.h"
#include "task_record.h"
#include "verdict.h"

#define PID   4000000 /* nobody's */
#define RINGS 2u
#define WORDS 254u /* of the largest record */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct rundir dir;
static struct xs_process_file *file;
static uint32_t names[64], name_count, columns[4];
/* of metrics that the texts below name */
static const uint16_t column_counts[4] = { 1, 3, XS_METRICS_MAX, 2 };

static void at_exit(void)
{
	keep_files(false);
	rundir_close(&dir);
}

static void name_of(const char *text, size_t length, uint32_t scope)
{
	if (name_count < sizeof(names) / sizeof(names[0]))
		names[name_count++] = xs_intern(dir.strings, text, (uint32_t)length, scope);
}

/* A C++ name of many letters: function(std::…::T<T<T<…>>>). */
static void mangled_names(void)
{
	static char text[16400];
	int length = 0;

	for (int i = 0; i < 300; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, "%s7nothing",
				   i ? "" : "_ZN");
	(void)snprintf(text + length, sizeof(text) - (size_t)length, "Ev");
	name_of(text, strlen(text), 0); /* 2.4 KB, and as much demangled */
	length = snprintf(text, sizeof(text), "_Z1f1AIiiE");
	for (int i = 0; i < 27; i++) { /* each is two of the one before */
		char c = "0123456789ABCDEFGHIJKLMNOPQ"[i];

		length += snprintf(text + length, sizeof(text) - (size_t)length, "S_IS%c_S%c_E", c,
				   c);
	}
	name_of(text, (size_t)length, 0);
	length = snprintf(text, sizeof(text), "_Z");
	memset(text + length, 'P', 16000); /* a pointer to a pointer to a pointer … */
	name_of(text, 16000, 0);
}

/* Names of metrics: the last ones fill a text as long as texts are. */
static void make_columns(void)
{
	static char text[XS_STRING_MAX];

	for (int i = 0; i < 4; i++) {
		size_t length = i == 3 ? sizeof(text) - 1 : 8 + 9u * column_counts[i];

		memset(text, i == 1 ? '"' : i == 2 ? ',' : '\xff', length);
		for (uint32_t k = 0; k < column_counts[i]; k++)
			text[7 + 9 * k] = '\n';
		columns[i] = xs_intern(dir.strings, text, (uint32_t)length, XS_METRICS_SCOPE);
	}
}

static void make_names(void)
{
	static const char *const texts[] = { "domain",
					     "domain::a task",
					     "kernel",
					     "\"],\":[",
					     "\"}}],\"traceEvents\":[{\"ph\":\"",
					     "\":[1],\"",
					     "]",
					     "\"",
					     "\\",
					     "\\\"",
					     "a\nb\r\tc\x1b[2J",
					     "\xff\xfe\xc3",
					     "\xed\xa0\x80",
					     "../../etc/passwd",
					     "send_size",
					     "oneCCL::allreduce",
					     "",
					     ",",
					     "\x7f" };
	static const size_t lengths[] = {
		127, 128, 1000, 1023, 1024, 2400, 4095, 4096, 16000, 16383
	};
	static const char letters[] = { 'n', '"', '\x01', '\xff', '_' };
	static char text[16384];
	struct xs_shape shape = { .work = XS_WORK_KERNEL,
				  .words = 18,
				  .simd = 16,
				  .global = { 64, 64, 1 },
				  .local = { 8, 8, 1 } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		name_of(texts[i], strlen(texts[i]), i == 1 || i == 15 ? names[0] : 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(text, letters[i % sizeof(letters)], lengths[i]);
		name_of(text, lengths[i], i % 2 ? names[0] : 0);
	}
	mangled_names();
	make_columns();
	for (uint32_t i = 0, count = name_count; i < count; i += 2) {
		shape.name = shape.kernel = names[i];
		name_of((const char *)&shape, sizeof(shape), XS_SHAPE_SCOPE);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	rundir_open(&dir, NULL);
	(void)atexit(at_exit);
	make_names();
	file = rundir_process(&dir, PID, 0, RINGS, XS_RING_MIN);
	dir.run.control->metrics_pid = dir.run.control->processors_pid =
		PID; /* its samples count */
	keep_files(true);
	flip_watch(file, xs_slot_offset(RINGS, XS_RING_MIN));
	flip_watch(dir.strings, XS_STRINGS_SIZE);
	flip_watch(dir.launch.mailbox, sizeof(*dir.launch.mailbox));
	return 0;
}

static const unsigned char *input;
static size_t left;

static unsigned take(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

static uint32_t take_name(void)
{
	unsigned value = take();

	return value < 250 ? names[value % name_count] : (uint32_t)(value * 0x01234567u);
}

/*
 * One byte says what a word is: a small number, names, a time, a pattern; or the next eight are it.
 */
static uint64_t word(unsigned what)
{
	uint64_t value = 0;

	switch (what >> 5) {
	case 0:
	case 1:
		return what;
	case 2:
		return names[what % name_count] | (uint64_t)take_name() << 32;
	case 3:
		return take_name() | (uint64_t)(what & 31) << 32 | (uint64_t)(what & 3) << 60;
	case 4:
		return dir.launch.control->tick0 + ((uint64_t)(what & 31) << 12);
	case 5:
		return 1ull << (what & 31) << (what & 32 ? 31 : 0);
	case 6:
		return ~0ull << (what & 31);
	default:
		for (int i = 0; i < 8; i++)
			value = value << 8 | take();
		return value;
	}
}

static struct xs_event *reserve(struct xs_ring *ring, uint32_t words)
{
	return put_space(&dir, ring, words * 8);
}

/* Any kind; the words come from the input, and again from the beginning where it has too few. */
static void put_any(struct xs_ring *ring, unsigned what)
{
	uint32_t words = 2 + take() % (WORDS / 2) * 2, given = 1 + (what >> 5), k = 0;
	uint64_t content[8];
	struct xs_event *event;

	while (k < given)
		content[k++] = word(take());
	event = reserve(ring, words);
	if (!event)
		return;
	for (uint32_t i = 0; i + 2 < words; i++)
		((uint64_t *)(event + 1))[i] = content[i % given];
	event->tick = word(take());
	event->kind = (uint8_t)(what % (XS_LOST_BEGINS + 2));
	event->words = (uint8_t)words;
	event->source = (uint8_t)(take() % (XS_SOURCE_COUNT + 1));
	event->name = event->kind == XS_CALL || event->kind == XS_CALL_IN ? take() % 5
									  : take_name();
	event->flags = (uint8_t)take();
	xs_ring_commit(rundir_producer(ring), words * 8);
}

/* Many commands of long names: each slice as long as slices can be. */
static void put_commands(struct xs_ring *ring)
{
	uint32_t count = 1 + take() % XS_COMMANDS_MAX,
		 words = (sizeof(struct xs_commands_record) + count * sizeof(struct xs_command)) /
			 8;
	struct xs_commands_record *record = (void *)reserve(ring, words);
	uint64_t now = dir.launch.control->tick0 + take() * 1000ull;
	unsigned step = take();

	if (!record)
		return;
	memset(record, 0, words * 8);
	record->event = (struct xs_event){
		now, take_name(), XS_COMMANDS, (uint8_t)words, XS_SOURCE_LEVEL_ZERO, (uint8_t)take()
	};
	record->count = count & 0x3f;
	record->queue = take() & 3;
	record->device = (uint8_t)take();
	for (uint32_t i = 0; i < count; i++) {
		uint32_t name = step & 1 ? take_name()
					 : names[(name_count - 1 - i % 16) % name_count];

		record->command[i] =
			(struct xs_command){ now - 500, now + i * step, step, 100, name, 100 };
	}
	xs_ring_commit(rundir_producer(ring), words * 8);
}

/* Metrics of a kernel; mostly as many values as there are names. */
static void put_metrics(struct xs_ring *ring)
{
	unsigned which = take(), device = take();
	uint32_t count = column_counts[which & 3], size;
	struct xs_metrics_record *record;

	if (which & 64)
		count = take() % (XS_METRICS_MAX + 1);
	size = XS_METRICS_SIZE(count);
	record = (void *)reserve(ring, size / 8);
	if (!record)
		return;
	memset(record, (int)take(), size);
	record->work.event =
		(struct xs_event){ dir.launch.control->tick0 + 500,	      take_name(),
				   which & 16 ? XS_SAMPLE : XS_METRICS,	      (uint8_t)(size / 8),
				   (uint8_t)(take() % (XS_SOURCE_COUNT + 1)), (uint8_t)take() };
	record->work.host_ticks = 1;
	record->work.id = which >> 4;
	record->work.device = (uint8_t)device;
	record->work.start = record->work.submit = dir.launch.control->tick0 + 600;
	record->work.end = record->work.start + take();
	record->columns = columns[which & 3];
	record->count = (uint16_t)(which & 128 ? take_name() : count);
	record->part = (uint16_t)(which >> 5);
	memset(&record->value[count], (int)(take() % 12), count);
	xs_ring_commit(rundir_producer(ring), size);
}

/* What processors have counted, up to the begin or end of a task, or of all. */
static void put_counts(struct xs_ring *ring, uint64_t now)
{
	unsigned which = take(), known = take() * 613u;
	uint32_t size = XS_CPU_SIZE((uint32_t)__builtin_popcount(known & XS_CPU_ALL));
	struct xs_cpu_record *record = (void *)reserve(ring, size / 8);

	if (!record)
		return;
	memset(record, (int)take(), size);
	record->event = (struct xs_event){ now,	   known,
					   XS_CPU, (uint8_t)(size / 8),
					   0,	   (uint8_t)(which & 1) };
	record->enabled = which >> 1;
	record->running = take();
	xs_ring_commit(rundir_producer(ring), size);
	if (which & 2)
		(void)put_begin(&dir, ring, now, take_name());
	else if (which & 4)
		(void)put_end(&dir, ring, now, take_name());
}

/* An argument of a task whose key and value the input chooses. */
static void put_args(struct xs_ring *ring)
{
	struct xs_args_record *record = (void *)reserve(ring, 16);
	struct xs_arg *arg;

	if (!record)
		return;
	memset(record, 0, 128);
	record->event = (struct xs_event){ dir.launch.control->tick0 + take(),
					   take_name(),
					   take() & 1 ? XS_ARGS : XS_INSTANT,
					   16,
					   XS_SOURCE_ITT,
					   (uint8_t)take() };
	record->length = 80;
	arg = (void *)(record + 1);
	*arg = (struct xs_arg){ take_name(), (uint16_t)take(), (uint8_t)(take() % 12),
				(uint8_t)(take() & 1) };
	for (unsigned i = 0; i < 72; i++)
		((unsigned char *)(arg + 1))[i] = (unsigned char)(i < 8 || left ? take() : i);
	xs_ring_commit(rundir_producer(ring), 128);
}

static void step(struct xs_process *process)
{
	unsigned what = take();
	struct xs_ring *ring = rundir_ring(file, what >> 7);
	uint64_t now = dir.launch.control->tick0 + take() * 512ull;

	switch (what & 7) {
	case 0:
		(void)put_begin(&dir, ring, now, take_name());
		break;
	case 1:
		(void)put_end(&dir, ring, now, take_name());
		break;
	case 2:
		if (what & 16)
			put_counts(ring, now);
		else if (what & 8)
			put_metrics(ring);
		else
			put_commands(ring);
		break;
	case 3:
		put_args(ring);
		break;
	case 4:
		(void)xs_process_read(process, false);
		if (what & 8)
			xs_process_commit(process);
		break;
	case 5:
		(void)put_call(&dir, ring, now, take(), take() % 5, (uint8_t)take(), -5);
		break;
	default:
		put_any(ring, take());
	}
}

static void reset(void)
{
	atomic_store(&file->used, RINGS);
	/* clocks of devices, or nothing that is measured there has a time */
	for (uint32_t i = 0; i < XS_CLOCKS; i++) {
		struct xs_device_pairs *pairs = &xs_clocks_of(file)->device[i];
		uint64_t now = dir.launch.control->tick0;

		pairs->bits = 64;
		pairs->kernel_bits = i & 1 ? 32 : 64;
		pairs->frequency = 1000000000;
		pairs->last[0] = (struct xs_device_pair){ now, now + 100, now };
		atomic_store(&pairs->count, 1);
	}
	for (uint32_t i = 0; i < RINGS; i++) {
		struct xs_ring *ring = rundir_ring(file, i);

		memset(ring, 0, XS_RING_HEADER);
		rundir_ring_init(ring, XS_RING_MIN, XS_FULL_DROP);
		atomic_store(&ring->state, XS_RING_LIVE);
		(void)put_thread(&dir, ring, 100 + i, "thread");
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct xs_process *process;
	unsigned wishes, reports, changes;
	char name[XS_NAME_MAX];

	input = data;
	left = size;
	wishes = take();
	reports = take();
	changes = take() % 64 * 2;
	verdict_options(&dir.run.copied_options, wishes, reports);
	reset();
	xs_process_file_name(name, PID, 0, 0);
	process = xs_process_adopt(&dir.run, name);
	if (process) {
		changes = changes < left ? changes : (unsigned)left & ~1u;
		left -= changes;
		for (unsigned i = 0; i < 60 && left; i++)
			step(process);
		flip_begin(data + size - changes, changes);
		(void)xs_process_read(process, true);
		xs_process_finish(process, XS_END_KILLED, 9);
		flip_end();
	}
	verdict(&dir);
	return 0;
}

/*
 * What hostile processes may write: the longest of everything, names that are no names, ids without
 * end, memory that changes while it is read.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "device_record.h"
#include "functions.h"
#include "drained.h"
#include "loop.h"
#include "mpi_record.h"
#include "sink.h"
#include "task_record.h"

#define RING (4u << 20)

static const struct xs_options everything = {
	.chrome_call = true, .chrome_kernel = true, .chrome_itt = true, .ring_size = RING
};

/* Any record; the payload follows its event. */
static bool put_record(uint8_t kind, uint8_t source, uint32_t name, uint8_t flags,
		       const void *payload, uint32_t bytes)
{
	uint32_t size = (uint32_t)(sizeof(struct xs_event) + bytes + 15) / 16 * 16;
	struct xs_event *event = xs_ring_reserve(rundir_producer(rundir_ring(file, 0)),
						 &dir.launch.mailbox->bell, size, XS_ROLE_OTHER);

	if (!event)
		return false;
	memset(event, 0, size);
	*event = (struct xs_event){ .tick = tick(),
				    .name = name,
				    .kind = kind,
				    .words = (uint8_t)(size / 8),
				    .source = source,
				    .flags = flags };
	if (bytes)
		memcpy(event + 1, payload, bytes);
	xs_ring_commit(rundir_producer(rundir_ring(file, 0)), size);
	return true;
}
#define PUT_RECORD(kind, source, name, flags, record)                                 \
	put_record(kind, source, name, flags, (const struct xs_event *)&(record) + 1, \
		   (uint32_t)(sizeof(record) - sizeof(struct xs_event)))

/* The longest name there is; each of its bytes is six in JSON. */
static uint32_t longest(uint32_t scope, char first)
{
	static char text[XS_STRING_MAX + 1];

	memset(text, 1, XS_STRING_MAX);
	text[0] = first;
	return rundir_name(&dir, text, scope);
}

/* ---- the greatest length of everything ---- */

static void put_args(uint8_t kind, uint32_t name, const struct xs_id *id)
{
	struct xs_args_record record = { .id = *id };
	unsigned char bytes[XS_RECORD_MAX] = { 0 };
	uint32_t room = (XS_RECORD_MAX - sizeof(record)) / 8 * 8;

	for (uint8_t k = 0; k < 20; k++) {
		struct xs_arg arg = { .key = longest(0, (char)('a' + k)), .type = XS_VALUE_TEXT };

		arg.count = (uint16_t)(room - sizeof(arg));
		record.length = room;
		memcpy(bytes, &record.id, sizeof(record) - sizeof(record.event));
		memcpy(bytes + sizeof(record) - sizeof(record.event), &arg, sizeof(arg));
		memset(bytes + sizeof(record) - sizeof(record.event) + sizeof(arg), 2, arg.count);
		(void)put_record(kind, XS_SOURCE_ITT, name, 0, bytes,
				 (uint32_t)sizeof(record) - (uint32_t)sizeof(record.event) + room);
	}
}

/* As many commands as a record holds. */
static void put_commands(uint32_t kernel, uint8_t work)
{
	struct xs_ring *ring = rundir_ring(file, 0);
	struct xs_shape shape = { .name = kernel,
				  .words = sizeof(struct xs_device_record) / 8,
				  .work = work,
				  .simd = 255,
				  .memory = 0x12,
				  .bytes = UINT64_MAX };
	uint32_t size = sizeof(struct xs_commands_record) +
			XS_COMMANDS_MAX * sizeof(struct xs_command),
		 id;
	struct xs_commands_record *record = xs_ring_reserve(rundir_producer(ring),
							    &dir.launch.mailbox->bell, size,
							    XS_ROLE_OTHER);

	if (!record)
		return;
	memset(shape.global, 0xff, sizeof(shape.global));
	memset(shape.local, 0xfe, sizeof(shape.local));
	id = xs_intern(dir.strings, (const char *)&shape, sizeof(shape), XS_SHAPE_SCOPE);
	memset(record, 0, size);
	record->event = (struct xs_event){ .tick = tick(),
					   .name = longest(0, 'D'),
					   .kind = XS_COMMANDS,
					   .words = (uint8_t)(size / 8),
					   .source = XS_SOURCE_LEVEL_ZERO };
	record->queue = record->id = UINT32_MAX;
	record->queue_handle = UINT64_MAX;
	record->count = XS_COMMANDS_MAX;
	record->device_type = XS_DEVICE_GPU;
	record->tile = record->engine = 1;
	for (uint32_t i = 0; i < XS_COMMANDS_MAX; i++)
		record->command[i] = (struct xs_command){ .tick = tick(),
							  .start = tick(),
							  .length = 1 << 30,
							  .host_ticks = 1,
							  .shape = id,
							  .tid = UINT32_MAX - i };
	xs_ring_commit(rundir_producer(ring), size);
}

static void put_stack(void)
{
	struct {
		struct xs_event event;
		uint64_t frame[XS_STACK_DEPTH_MAX];
	} record = { .event.kind = XS_STACK };
	uint32_t path = longest(longest(0, 's'), '/');

	for (uint32_t i = 0; i < XS_STACK_DEPTH_MAX; i++)
		record.frame[i] = i % 3 == 0 ? XS_FRAME(path, i + 1u)
				  : i % 3 == 1
					  ? XS_FRAME_RAW | (UINT64_MAX - i)
					  : XS_FRAME_OF_PYTHON(i % 2 ? path : UINT32_MAX - i, i);
	(void)PUT_RECORD(XS_STACK, XS_SOURCE_OPENCL, XS_STACK_DEPTH_MAX, XS_STACK_FLAG_CUT, record);
}

static void put_call_of(uint8_t source, uint32_t function)
{
	uint64_t words[40];
	struct {
		struct xs_values_record head;
		struct xs_value value;
		char text[XS_RECORD_MAX - sizeof(struct xs_values_record) -
			  sizeof(struct xs_value)];
	} out = { .head.length = sizeof(out) - sizeof(out.head),
		  .value = { 1, 0, sizeof(out.text), UINT32_MAX } };
	struct xs_call_record call = { .duration = 1, .result = INT64_MIN };
	struct xs_waited_record waited = { .until = UINT64_MAX };

	memset(words, 0xff, sizeof(words));
	memset(out.text, '"', sizeof(out.text));
	memcpy(out.text, "\x1b[31m\xc2\x9b", 7);
	(void)put_record(XS_CALL_IN, source, function, 0, words, sizeof(words));
	(void)PUT_RECORD(XS_CALL, source, function, XS_CALL_FLAG_OF_WORK, call);
	for (uint8_t kind = 0; kind <= XS_WAITED_STARTED + 1; kind++)
		(void)PUT_RECORD(XS_WAITED, source, UINT32_MAX, kind, waited);
	(void)PUT_RECORD(XS_CALL_OUT, source, function, 0, out);
}

/* As many metrics as a record holds, of the longest names and numbers. */
static void put_metrics(uint32_t kernel, uint8_t device)
{
	static char text[XS_STRING_MAX];
	struct {
		struct xs_metrics_record head;
		uint64_t value[XS_METRICS_MAX];
		uint8_t type[XS_METRICS_MAX], padding[16];
	} record = { .head = { .work = device_record(1, 1) } };

	memset(text, 1, sizeof(text));
	for (uint32_t i = 0; i < XS_METRICS_MAX; i++) {
		double most = -1.7976931348623157e308;

		text[80 * (i + 1)] = '\n';
		memcpy(&record.value[i], &most, sizeof(most));
		record.type[i] = XS_VALUE_DOUBLE;
	}
	record.head.work.device = device;
	record.head.work.id = UINT32_MAX;
	record.head.part = UINT16_MAX;
	memset(record.head.work.global, 0xff, sizeof(record.head.work.global));
	memset(record.head.work.local, 0xff, sizeof(record.head.work.local));
	record.head.count = XS_METRICS_MAX;
	record.head.columns = xs_intern(dir.strings, text, sizeof(text), XS_METRICS_SCOPE);
	(void)put_record(XS_METRICS, XS_SOURCE_LEVEL_ZERO, kernel, 0,
			 (const struct xs_event *)&record + 1,
			 XS_METRICS_SIZE(XS_METRICS_MAX) - (uint32_t)sizeof(struct xs_event));
}

/* A task with all that can be counted, and the same for the application. */
static void put_counts(uint32_t name)
{
	struct {
		struct xs_cpu_record head;
		uint64_t value[XS_CPU_MAX];
	} record = { .head = { .enabled = UINT64_MAX, .running = 1 } };

	memset(record.value, 0xff, sizeof(record.value));
	for (uint8_t flags = 0; flags <= XS_CPU_FLAG_ALL; flags++)
		(void)PUT_RECORD(XS_CPU, XS_SOURCE_ITT, XS_CPU_ALL, flags, record);
	put_begin(&dir, rundir_ring(file, 0), tick(), name);
	put_end(&dir, rundir_ring(file, 0), tick(), domain);
}

static void put_mpi(void)
{
	struct {
		struct xs_mpi_record head;
		uint64_t word[XS_MPI_WORDS + 1];
	} record = { .head = { .duration = 1, .words = (1u << XS_MPI_WORDS) - 1 } };
	struct xs_mpi_member_record member = { .id = UINT64_MAX - 5,
					       .rank = INT32_MIN,
					       .members = INT32_MAX,
					       .others = INT32_MAX,
					       .side = INT32_MIN };
	static unsigned char set[XS_STRING_MAX];

	memset(set, 0x55, sizeof(set)); /* every second rank */

	for (int i = 0; i < XS_MPI_WORDS; i++)
		record.word[i] = UINT64_MAX - 5;
	(void)PUT_RECORD(XS_MPI_MEMBER, XS_SOURCE_MPI, longest(0, 'C'), 0, member);
	(void)PUT_RECORD(XS_MPI, XS_SOURCE_MPI, 0, 0, record);
	record.word[XS_MPI_FROM] = XS_MPI_FROM_SET | xs_intern(dir.strings, (const char *)set,
							       sizeof(set), XS_MPI_SET_SCOPE);
	(void)PUT_RECORD(XS_MPI, XS_SOURCE_MPI, 0, 0, record);
}

/* One of each kind, each as long as it can be. */
static void put_everything(uint32_t round)
{
	const struct xs_id none = { { 0, 0, 0 } }, id = { { UINT64_MAX, round, UINT64_MAX } },
			   other = { { 1, round, 1 } };
	struct xs_counter_record counter = { .value.d = -1.7976931348623157e308 };
	struct xs_device_record device = device_record(1, 1);
	struct xs_ring *ring = rundir_ring(file, 0);
	struct xs_task_record task = { .id = id, .parent = other };
	struct xs_span_record span = { .duration = 1, .scope = longest(0, 'S') };
	struct xs_kernel_record kernel = { .id = 7, .arguments = UINT32_MAX };
	struct xs_thread_named_record named = { .tid = UINT64_MAX };
	uint32_t name = longest(domain, 'n');

	(void)PUT_RECORD(XS_THREAD_NAMED, XS_SOURCE_ITT, longest(0, 'R'), 0, named);
	put_thread(&dir, ring, UINT32_MAX, "thread");
	put_begin(&dir, ring, tick(), name);
	put_args(XS_ARGS, domain, &none);
	put_end(&dir, ring, tick(), domain);
	(void)PUT_RECORD(XS_TASK, XS_SOURCE_ITT, name, 0, task);
	put_args(XS_ARGS, domain, &id);
	put_end(&dir, ring, tick(), domain);
	for (uint8_t k = 0; k < XS_SPAN_COUNT; k++) {
		(void)PUT_RECORD(XS_OPEN, XS_SOURCE_ITT, name, k, task);
		put_args(XS_ARGS, domain, &id);
		(void)PUT_RECORD(XS_CLOSE, XS_SOURCE_ITT, domain, k, task);
		(void)PUT_RECORD(XS_SPAN, XS_SOURCE_ITT, name, k, span);
	}
	put_args(XS_INSTANT, name, &none);
	put_args(XS_ARGS, longest(0, 'N'), &none);
	(void)PUT_RECORD(XS_RELATION, XS_SOURCE_ITT, domain, XS_RELATION_CHILD_OF, task);
	(void)PUT_RECORD(XS_COUNTER, XS_SOURCE_ITT, name, XS_VALUE_DOUBLE, counter);
	(void)put_record(XS_EVENT_BEGIN, XS_SOURCE_ITT, longest(0, 'E'), 0, NULL, 0);
	(void)put_record(XS_EVENT_END, XS_SOURCE_ITT, longest(0, 'E'), 0, NULL, 0);
	(void)put_record(XS_TRACK, XS_SOURCE_ITT, longest(0, 'T'), 0, NULL, 0);
	put_begin(&dir, ring, tick(), name);
	put_end(&dir, ring, tick(), domain);
	(void)put_record(XS_TRACK, XS_SOURCE_ITT, 0, 0, NULL, 0);
	(void)put_record(XS_LOST_BEGINS, XS_SOURCE_NONE, round, 0, NULL, 0);
	(void)PUT_RECORD(XS_KERNEL, XS_SOURCE_LEVEL_ZERO, longest(0, 'K'), 0, kernel);
	device.event.name = longest(0, 'K');
	device.event.source = XS_SOURCE_LEVEL_ZERO;
	device.device_name = longest(0, 'D');
	device.kernel = 7;
	device.simd = 255;
	memset(device.global, 0xff, sizeof(device.global) + sizeof(device.local));
	(void)put_device(&dir, ring, &device, true);
	for (int k = 0; k < 6; k++)
		put_commands(longest(0, (char)('A' + k)), XS_WORK_KERNEL);
	for (uint8_t k = 0; k < 3; k++)
		put_metrics(longest(0, 'K'), k);
	put_counts(name);
	put_stack();
	put_call_of(XS_SOURCE_OPENCL, 0);
	put_call_of(XS_SOURCE_LEVEL_ZERO, 1);
	put_mpi();
}

/* What is in a report: no byte that a terminal obeys. */
static void check_report(const char *what, unsigned least, uint32_t format)
{
	static char line[262144];
	char path[PATH_MAX + 64];
	unsigned lines = 0, bad = 0, devices = 0;
	FILE *in;

	(void)snprintf(path, sizeof(path), "%s/report%s.%d.txt", dir.out, what, PID);
	in = fopen(path, "re");
	if (!CHECK(in, "%s", path))
		return;
	while (fgets(line, sizeof(line), in)) {
		lines++;
		devices += !strncmp(line, "=== Device #", 12);
		for (const char *c = line; *c; c++)
			bad += ((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f ||
			       (format != XS_REPORT_JSON && !memcmp(c, "\xc2\x9b", 2));
	}
	fclose(in);
	CHECK(lines > least && !bad, "%s: %u lines, %u bytes", path, lines, bad);
	/* devices take turns, and their rows stand together */
	CHECK(!what[0] || devices == 3, "%s: %u sections", path, devices);
}

static void check_reports(uint32_t format)
{
	check_report("", 100, format);
	check_report(".metrics", 40, XS_REPORT_CSV);
}

/*
 * Room is made before a piece is put, whatever came before it in the record: ASan sees a byte too
 * many.
 */
static void greatest_lengths(void)
{
	for (uint32_t format = XS_REPORT_TEXT; format <= XS_REPORT_CSV; format++) {
		struct xs_options options = everything;
		struct xs_process *process;

		options.host_timing = options.device_timing = options.kernel_submission =
			options.device_timeline = true;
		options.ccl_summary = options.call_logging = options.verbose = options.show_pid =
			options.show_tid = true;
		options.report_format = format;
		options.metric_query = true;
		options.call_stacks = XS_STACK_DEPTH_MAX;
		memcpy(options.output, "report.txt", 11);
		open_all(&options, 1);
		memset(file->comm, 1, sizeof(file->comm));
		memset(dir.run.host, 2, sizeof(dir.run.host) - 1);
		process = adopt();
		for (uint32_t round = 0; round < 12; round++) {
			put_everything(round);
			while (xs_process_read(process, false))
				;
		}
		finish(process);
		check_reports(format);
		rundir_clear(&dir);
		close_all();
	}
}

/* What a list of Level Zero tells at once: each of its slices is there, in a file that is JSON. */
static void kernels_of_a_list(void)
{
	struct xs_process *process;
	struct trace trace;

	open_all(&everything, 1);
	process = adopt();
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	for (int i = 0; i < 5; i++)
		put_commands(longest(0, (char)('a' + i)), XS_WORK_KERNEL);
	finish(process);
	trace = load();
	CHECK(trace.count == 5 * XS_COMMANDS_MAX, "%zu slices", trace.count);
	drop(&trace);
	close_all();
}

/* ---- names ---- */

static void cxx_names(void)
{
	char name[XS_STRING_MAX];
	const char *text;
	uint64_t start = xs_clock_ns(CLOCK_MONOTONIC);
	size_t length, n;

	/* f(int, pair<int, int>, pair<that, that>, …): 40 of them would have 2^40 letters */
	n = (size_t)sprintf(name, "_Z1fi1aIiiE");
	for (int i = 0; i < 40; i++)
		n += (size_t)sprintf(name + n, i ? "1aIS%c_S%c_E" : "1aIS0_S0_E",
				     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36],
				     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
	length = n;
	text = xs_demangle(name, &length);
	CHECK(length <= 65536, "%zu letters", length);
	/* nothing comes of these, and a parser that goes back each time takes for ever */
	static const char *const slow[] = {
		"_ZUlT_E_GVDTspsr1bDpquFvL_Z1fvEspPsrvSpT_plSpT_T0_IJEJELi1EclS4_MTT_"
		"DTclKclPNTISpT_UlT_E_C2IDpSt6vectorIspT_cvN1aIJIJJS2_D1LZcvT_FiET0_"
		"fp_Li1EEEETVOT_spT_3foosrPUlUlT_E_Lb1ELS_Li1ES4_StGVPfp0_TnA3_srilN1aIJDv4_XXSsS1_"
		"EE1bJKFiEMonTIfp0_LZEE1bA3_LZfpT_IJES_SaUlT_E_EEEUl"
		"1bclDTEE1bLb1EdtTnT",
		"_ZclonDTsrUlvE_S0_fpT_UlNDpLZSt6vectorISacvquGTtDTS_cvclonEE1bfp_3fooEEEEcvfp0_"
		"LZGTtspT_cvT_Lb1E1bDpT_iS3_EE1bLZfpT_DTclA3_ilD1D1TIPGVC1"
		"EDpX",
	};

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		length = strlen(slow[i]);
		text = xs_demangle(slow[i], &length);
		CHECK(text == slow[i] && length == strlen(slow[i]), "%s", text);
	}
	CHECK(xs_clock_ns(CLOCK_MONOTONIC) - start < 3000000000u, "took %" PRIu64 " ms",
	      (xs_clock_ns(CLOCK_MONOTONIC) - start) / 1000000);
#ifdef XS_HAVE_DEMANGLE
	length = sizeof("_ZTS9MatrixMulILi4EE") - 1;
	text = xs_demangle("_ZTS9MatrixMulILi4EE", &length);
	CHECK(length == 12 && !memcmp(text, "MatrixMul<4>", 12), "%.*s", (int)length, text);
#endif
}

/* The name of the issue: 180 bytes that stand for 2^27 letters. */
static void cxx_names_that_grow(void)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	uint64_t start;
	char name[512];
	const char *text;
	size_t length, n = (size_t)sprintf(name, "_Z1f1aI1bS0_E");

	for (int i = 0; i < 24; i++) /* each holds the one before it twice */
		n += (size_t)sprintf(name + n, "S_IS%c_S%c_E", digits[i + 1], digits[i + 1]);
	for (int variant = 0; variant < 4; variant++) {
		name[4] = (char)('a' + variant);
		length = n;
		start = xs_clock_ns(CLOCK_MONOTONIC);
		text = xs_demangle(name, &length);
		CHECK(xs_clock_ns(CLOCK_MONOTONIC) - start < 1000000000u, "took %" PRIu64 " ms",
		      (xs_clock_ns(CLOCK_MONOTONIC) - start) / 1000000);
		CHECK(length <= 65536 && text[0], "%zu letters", length);
	}
}

/* Keys and texts that look like the JSON around them; more values of the same keys. */
static void json_like_arguments(void)
{
	static const char *const keys[] = {
		"a", ":[z]", "],", ",", "\"],\":[", ":[", "k\":[1],\"x"
	};
	static const char *const texts[] = { "x,", ":[y", "],", "\"],\":[", "\\" };
	const size_t key_count = sizeof(keys) / sizeof(keys[0]),
		     text_count = sizeof(texts) / sizeof(texts[0]);
	const struct xs_id none = { { 0, 0, 0 } };
	struct trace trace;

	open_all(&everything, 1);
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	put_begin(&dir, rundir_ring(file, 0), tick(), task("x"));
	for (size_t i = 0; i < 2 * key_count * text_count; i++) {
		const char *text = texts[i % text_count];
		struct {
			struct xs_args_record head;
			struct xs_arg arg;
			char text[24];
		} record = { .head = { .id = none, .length = 32 },
			     .arg = { .key = rundir_name(&dir, keys[i % key_count], 0),
				      .type = XS_VALUE_TEXT,
				      .count = (uint16_t)strlen(text) } };

		memcpy(record.text, text, strlen(text));
		(void)PUT_RECORD(XS_ARGS, XS_SOURCE_ITT, domain, 0, record);
	}
	put_end(&dir, rundir_ring(file, 0), tick(), domain);
	finish(adopt());
	trace = load();
	CHECK(trace.count == 1, "%zu slices", trace.count);
	/* each key once, with all its values in their order */
	CHECK(strstr(trace.text,
		     "\"args\":{\"a\":[\"x,\",\"],\",\"\\u005c\",\":[y\",\"\\\"],\\\":[\",\"x,\","
		     "\"],\",\"\\u005c\",\":[y\",\"\\\"],\\\":[\"],\":[z]\":["),
	      "%s", trace.text);
	drop(&trace);
	close_all();
}

/* ---- time and memory ---- */

static uint64_t cpu_ms(uint64_t since)
{
	return (xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - since) / 1000000;
}

static void read_all(struct xs_process *process)
{
	while (xs_process_read(process, true))
		;
	xs_process_commit(process);
}

/* Begun (or ended) again and again, and nothing ever ends (or begins) them. */
static void halves(void)
{
	for (int variant = 0; variant < 4; variant++) {
		struct xs_process *process;
		uint64_t start;

		open_all(&everything, 1);
		put_thread(&dir, rundir_ring(file, 0), 77, "t");
		process = adopt();
		start = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		for (int round = 0; round < 8; round++) {
			for (uint32_t i = 0; i < 40000; i++) {
				struct xs_task_record record = { .id = { { 1, 2, 3 } } };

				(void)PUT_RECORD(variant & 1 ? XS_CLOSE : XS_OPEN, XS_SOURCE_ITT,
						 variant & 1 ? domain : task("x"),
						 variant & 2 ? XS_SPAN_OVERLAPPED : XS_SPAN_FRAME,
						 record);
			}
			read_all(process);
		}
		CHECK(cpu_ms(start) < 3000, "variant %d took %" PRIu64 " ms", variant,
		      cpu_ms(start));
		/* ends without begins leave the table; begins may still end */
		CHECK(process->omitted[XS_OMIT_SPANS] == (variant & 1 ? 0 : 8 * 40000 - 65536),
		      "variant %d: %" PRIu64, variant, process->omitted[XS_OMIT_SPANS]);
		start = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		finish(process);
		CHECK(cpu_ms(start) < 10000, "variant %d: the end took %" PRIu64 " ms", variant,
		      cpu_ms(start));
		rundir_clear(&dir);
		close_all();
	}
}

/* Tasks that stay open below, others' ends that find none. */
static void deep_and_unmatched(void)
{
	uint32_t other;
	struct xs_process *process;
	struct xs_ring *ring;
	uint64_t start;

	open_all(&everything, 1);
	other = rundir_name(&dir, "other", 0);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	process = adopt();
	for (int i = 0; i < 60000; i++)
		put_begin(&dir, ring, tick(), task("x"));
	read_all(process);
	start = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < 200000; i++)
		put_end(&dir, ring, tick(), other);
	read_all(process);
	for (int i = 0; i < 200000; i++)
		(void)put_record(XS_EVENT_END, XS_SOURCE_ITT, other, 0, NULL, 0);
	read_all(process);
	CHECK(cpu_ms(start) < 4000, "took %" PRIu64 " ms", cpu_ms(start));
	CHECK(process->unmatched == 400000, "%" PRIu64, process->unmatched);
	finish(process);
	rundir_clear(&dir);
	close_all();
}

/* Requests that are made and never complete, all by one handle; and the other way round. */
static void mpi_requests(void)
{
	struct xs_process *process;
	uint64_t start;

	open_all(&everything, 2);
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	process = adopt();
	start = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < 30000; i++) {
			struct {
				struct xs_mpi_record head;
				uint64_t word[3];
			} made = { .head = { .duration = 1,
					     .words = XS_MPI_MAKES | 1u << XS_MPI_REQUEST },
				   .word = { 77 } };
			struct xs_mpi_request_record done = { .request = 78, .bytes = 1 };

			(void)PUT_RECORD(XS_MPI, XS_SOURCE_MPI, 0, 0, made);
			(void)PUT_RECORD(XS_MPI_DONE, XS_SOURCE_MPI, 0, 0, done);
		}
		read_all(process);
	}
	CHECK(cpu_ms(start) < 3000, "took %" PRIu64 " ms", cpu_ms(start));
	CHECK(process->omitted[XS_OMIT_REQUESTS], "told");
	finish(process);
	rundir_clear(&dir);
	close_all();
}

/* Ends whose begins were not recorded take no room from requests that come later. */
static void mpi_ends(void)
{
	struct xs_process *process;
	struct {
		struct xs_mpi_record head;
		uint64_t word[3];
	} made = { .head = { .duration = 1, .words = XS_MPI_MAKES | 1u << XS_MPI_REQUEST },
		   .word = { 79 } };
	struct xs_mpi_request_record done = { .request = 78, .bytes = 1 }, last = { .request = 79 };

	open_all(&everything, 2);
	for (uint32_t i = 0; i < 2; i++)
		put_thread(&dir, rundir_ring(file, i), 77 + i, "t");
	process = adopt();
	for (int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 30000; i++)
			(void)PUT_RECORD(XS_MPI_DONE, XS_SOURCE_MPI, 0, 0, done);
		read_all(process);
	}
	(void)PUT_RECORD(XS_MPI, XS_SOURCE_MPI, 0, 0, made);
	(void)PUT_RECORD(XS_MPI_DONE, XS_SOURCE_MPI, 0, 0, last);
	read_all(process);
	CHECK(!process->omitted[XS_OMIT_REQUESTS], "%" PRIu64, process->omitted[XS_OMIT_REQUESTS]);
	finish(process);
	rundir_clear(&dir);
	close_all();
}

/* The same of regions. */
static void span_ends(void)
{
	struct xs_process *process;
	struct xs_task_record record = { .id = { { 1, 2, 3 } } };

	open_all(&everything, 1);
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	process = adopt();
	for (int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 30000; i++)
			(void)PUT_RECORD(XS_CLOSE, XS_SOURCE_ITT, domain, XS_SPAN_REGION, record);
		read_all(process);
	}
	(void)PUT_RECORD(XS_OPEN, XS_SOURCE_ITT, task("x"), XS_SPAN_REGION, record);
	read_all(process);
	CHECK(!process->omitted[XS_OMIT_SPANS], "%" PRIu64, process->omitted[XS_OMIT_SPANS]);
	CHECK(process->unmatched == 120000, "%" PRIu64, process->unmatched);
	finish(process);
	rundir_clear(&dir);
	close_all();
}

/* Ids without end: names, queues, threads, tracks. */
static void endless_ids(void)
{
	struct xs_process *process;
	struct xs_ring *ring;
	struct trace trace;
	uint64_t start;
	uint32_t id = 0, tracks = 0;

	open_all(&everything, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	process = adopt();
	start = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int round = 0; round < 12; round++) {
		for (uint32_t i = 0; i < 40000; i++) {
			put_begin(&dir, ring, tick(), 100000 + ++id);
			put_end(&dir, ring, tick(), 0);
		}
		read_all(process);
	}
	CHECK(process->names->count <= (1u << 18) + 1, "%u names", process->names->count);
	CHECK(process->omitted[XS_OMIT_NAMES], "told");
	for (int round = 0; round < 12; round++) {
		for (uint32_t i = 0; i < 10000; i++) {
			struct xs_device_record r = device_record(0, 10);

			r.tid = ++id;
			r.queue = id * 7;
			(void)put_device(&dir, ring, &r, true);
			(void)put_record(XS_TRACK, XS_SOURCE_ITT, 100000 + id % 5000, 0, NULL, 0);
			put_begin(&dir, ring, tick(), task("x"));
			put_end(&dir, ring, tick(), domain);
		}
		read_all(process);
	}
	CHECK(cpu_ms(start) < 20000, "took %" PRIu64 " ms", cpu_ms(start));
	finish(process);
	trace = load();
	CHECK(strstr(trace.text, "\"omitted\":{\"names\":"), "in the trace");
	for (const char *at = trace.text; (at = strstr(at, "\"thread_sort_index\"")); at++)
		tracks++;
	/* and lanes of what overlaps */
	CHECK(tracks <= 32 + 1024, "%u tracks of the device", tracks);
	drop(&trace);
	close_all();
}

/* ---- memory that changes ---- */

struct scribbler {
	pthread_t thread;
	_Atomic bool over;
	unsigned char *from;
	size_t size;
	bool words; /* whole words of two values, not any bytes */
	uint64_t values[2], stride;
};

static void *scribble(void *user)
{
	struct scribbler *s = user;
	unsigned long long seed = 11;

	for (uint64_t round = 0; !atomic_load_explicit(&s->over, memory_order_relaxed); round++) {
		if (s->words)
			for (size_t at = 0; at + 8 <= s->size; at += s->stride)
				__atomic_store_n((uint32_t *)(s->from + at),
						 (uint32_t)s->values[round & 1], __ATOMIC_RELAXED);
		else
			__atomic_store_n(s->from + tap_random(&seed) % s->size,
					 (unsigned char)tap_random(&seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void begin_scribbling(struct scribbler *s)
{
	atomic_store(&s->over, false);
	(void)pthread_create(&s->thread, NULL, scribble, s);
}

static void end_scribbling(struct scribbler *s)
{
	atomic_store(&s->over, true);
	(void)pthread_join(s->thread, NULL);
}

/* A kernel's id is checked, and is what was checked when it is used. */
static void changing_kernels(void)
{
	struct xs_options options = everything;

	options.device_timing = true;
	options.ring_size = XS_RING_MIN;
	/* the first one of each process makes the table, which takes a while */
	for (int round = 0; round < 400; round++) {
		struct scribbler s = { .words = true,
				       .values = { 1, 0x20000000 },
				       .stride = sizeof(struct xs_kernel_record) };
		struct xs_process *process;
		struct xs_ring *ring;

		open_all(&options, 1);
		ring = rundir_ring(file, 0);
		for (int i = 0; i < 8; i++) {
			struct xs_kernel_record kernel = { .id = 1 };

			(void)PUT_RECORD(XS_KERNEL, XS_SOURCE_LEVEL_ZERO, domain, 0, kernel);
		}
		s.from = rundir_producer(ring)->data + offsetof(struct xs_kernel_record, id);
		s.size = 8 * sizeof(struct xs_kernel_record);
		process = adopt();
		begin_scribbling(&s);
		while (xs_process_read(process, true))
			;
		end_scribbling(&s);
		finish(process);
		rundir_clear(&dir);
		close_all();
	}
}

/* Everything that is in a ring, while everything in it changes. */
static void changing_rings(void)
{
	struct xs_options options = everything;

	options.host_timing = options.device_timing = options.call_logging =
		options.device_timeline = true;
	options.call_stacks = 16;
	options.metric_query = true;
	memcpy(options.output, "report.txt", 11);
	for (int round = 0; round < 12; round++) {
		struct scribbler s = { .size = RING / 8 };
		struct xs_process *process;

		options.call_logging = round % 2;
		open_all(&options, 1);
		for (uint32_t i = 0; i < 3; i++)
			put_everything(i);
		s.from = rundir_producer(rundir_ring(file, 0))->data;
		process = adopt();
		begin_scribbling(&s);
		for (int i = 0; i < 3; i++) {
			while (xs_process_read(process, true))
				;
			put_everything((uint32_t)i);
		}
		end_scribbling(&s);
		finish(process);
		rundir_clear(&dir);
		close_all();
	}
}

/* Names that change while they are read: what reaches the trace is UTF-8 and JSON all the same. */
static void changing_strings(void)
{
	for (int round = 0; round < 30; round++) {
		struct scribbler s = { .from = NULL };
		struct xs_process *process;
		struct trace trace;
		uint32_t names[200];
		char text[400];

		open_all(&everything, 1);
		put_thread(&dir, rundir_ring(file, 0), 77, "t");
		for (uint32_t i = 0; i < 200; i++) {
			memset(text, 'a', sizeof(text));
			for (uint32_t k = 0; k + 3 < sizeof(text); k += 3)
				memcpy(text + k, "\xe4\xb8\xad", 3);
			(void)sprintf(text, "%u", i);
			text[strlen(text)] = ' ';
			text[sizeof(text) - 1] = '\0';
			names[i] = rundir_name(&dir, text, domain);
		}
		s.from = (unsigned char *)dir.strings + (size_t)names[0] * 8;
		s.size = 200 * 400;
		begin_scribbling(&s);
		process = adopt();
		for (uint32_t again = 0; again < 40; again++) {
			for (uint32_t i = 0; i < 200; i++) {
				put_begin(&dir, rundir_ring(file, 0), tick(), names[i]);
				put_end(&dir, rundir_ring(file, 0), tick(), domain);
			}
			while (xs_process_read(process, true))
				;
		}
		end_scribbling(&s);
		finish(process);
		trace = load();
		drop(&trace);
		close_all();
		if (tap_failures)
			break;
	}
}

/* ---- after the end ---- */

#define FILLED 10u
#define TOLD   1000u /* at most: who reads on for ever is seen to */

static struct xs_ring *filled;
static uint32_t told;

/* As a child does that still has the rings, and is as fast as who reads them. */
static void fill_again(struct xs_track *track, const struct xs_call *call)
{
	(void)track;
	(void)call;
	if (++told < TOLD)
		CHECK(put_call(&dir, filled, tick(), 500, 0, 0, 0), "no room");
}

static bool shows_nothing(struct xs_process *process, enum xs_end end, int status)
{
	(void)process;
	(void)end;
	(void)status;
	return false;
}

static void filled_after_the_end(void)
{
	static const struct xs_sink filler = { .call = fill_again, .close = shows_nothing };
	static struct xs_loop loop;

	open_all(NULL, 1);
	filled = rundir_ring(file, 0);
	told = 0;
	put_thread(&dir, filled, 77, "t");
	put_call(&dir, filled, tick(), 500, 0, 0, 0);
	xs_timeline_update(&dir.run.clock);
	loop.run = dir.run;
	loop.processes = adopt();
	(void)xs_process_read(loop.processes, false);
	/* behind those that the first event has opened */
	loop.processes->open_sinks[loop.processes->open_count++] = &filler;
	for (uint32_t i = 0; i < FILLED; i++)
		put_call(&dir, filled, tick(), 500, 0, 0, 0);
	xs_loop_finish(&loop, &loop.processes, XS_END_EXITED);
	CHECK(told == FILLED && !loop.processes, "%u calls were read", told);
	rundir_clear(&dir);
	close_all();
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("everything at its greatest length", greatest_lengths);
	tap_run("a list of kernels with the longest names", kernels_of_a_list);
	tap_run("C++ names that take for ever", cxx_names);
	tap_run("C++ names that grow", cxx_names_that_grow);
	tap_run("arguments that look like JSON", json_like_arguments);
	tap_run("halves of spans", halves);
	tap_run("ends that find no begin", deep_and_unmatched);
	tap_run("requests by one handle", mpi_requests);
	tap_run("ends of requests that nobody has seen begin", mpi_ends);
	tap_run("ends of regions that nobody has seen begin", span_ends);
	tap_run("ids without end", endless_ids);
	tap_run("kernels that change while they are read", changing_kernels);
	tap_run("rings that change while they are read", changing_rings);
	tap_run("strings that change while they are read", changing_strings);
	tap_run("a ring that is filled as fast as it is read", filled_after_the_end);
	return tap_done();
}

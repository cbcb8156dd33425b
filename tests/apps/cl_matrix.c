/*
 * Every kind of command on every kind of queue, with its events used in every way: the program
 * checks what it computes, and that nobody changed what it sees of its own objects (a tracer turns
 * profiling on, asks for events and holds them). Any surprise ends it with status 1.
 *
 *	cl_matrix [OPTION...]
 *	--queue in-order | out-of-order | several
 *		several: three in-order queues taken in turn
 *	--no-profiling
 *		the queues are made without it
 *	--create list | legacy | null
 *		clCreateCommandQueueWithProperties with a list of properties or (plain queues only)
 *		with NULL, or clCreateCommandQueue
 *	--events none | held | waited | callbacks | released
 *		released: right after the call, with a callback still to come
 *	--end return | callback-exit | _exit
 *		the latter two with status 7 and work in flight
 *	--rounds N
 *		default 3
 *	--svm
 *		commands on shared virtual memory too
 *
 * Dependencies between commands are wait lists where events are at hand, else barriers (out of
 * order) or clFinish (several queues).
 */
#include <getopt.h>
#include "cl_matrix.h"

static const char source[] =
	"kernel void add(global const int *a, global const int *b, global int *c)\n"
	"{ size_t i = get_global_id(0); c[i] = a[i] + b[i]; }\n"
	"kernel void scale(global int *c) { c[get_global_id(0)] *= 2; }\n"
	"kernel void tile(global int *c) { c[get_global_id(1) * 64 + get_global_id(0)] += 1; }\n"
	"kernel void box(global int *c)\n"
	"{ c[(get_global_id(2) * 16 + get_global_id(1)) * 16 + get_global_id(0)] -= 1; }\n"
	"kernel void gated(global int *c) { c[get_global_id(0)] += 10; }\n"
	"kernel void last(global int *c)\n"
	"{ int x = c[get_global_id(0)];\n"
	"  for (int i = 0; i < 2000; i++) x = x * 5 + 1; c[get_global_id(0)] = x; }\n";

static const char *const queue_names[] = { "in-order", "out-of-order", "several", NULL };
static const char *const create_names[] = { "list", "legacy", "null", NULL };
static const char *const policy_names[] = {
	"none", "held", "waited", "callbacks", "released", NULL
};
static const char *const end_names[] = { "return", "callback-exit", "_exit", NULL };

const char *const kernel_names[] = { "add", "scale", "tile", "box", "gated", "last" };

struct options opts = { .rounds = 3 };
struct cl_app cl;
cl_command_queue_properties properties;
cl_command_queue queues[MAX_QUEUES], queue;
int queue_count;
cl_kernel kernels[KERNELS];
long kernel_counts[KERNELS];

static void init(void)
{
	cl_app_open(&cl, source);
	for (int k = 0; k < KERNELS; k++)
		kernels[k] = cl_app_kernel(&cl, kernel_names[k]);
	properties = (opts.queue == OUT_OF_ORDER ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0) |
		     (opts.no_profiling ? 0 : CL_QUEUE_PROFILING_ENABLE);
	queue_count = opts.queue == SEVERAL ? MAX_QUEUES : 1;
	for (int i = 0; i < queue_count; i++) {
		queues[i] = make_queue();
		check_queue(queues[i]);
	}
	queue = queues[0];
}

static void run_round(long round)
{
	make_buffers();
	upload(round);
	run_kernels();
	run_gated_kernel();
	download(round);
	copy_rectangles();
	synchronize();
	if (opts.svm)
		use_svm();
	fail_on_purpose();
	finish_all();
	release_buffers();
	let_events_go();
	for (int i = 0; i < queue_count; i++)
		check_queue(queues[i]);
}

static void fini(void)
{
	for (int k = 0; k < KERNELS; k++)
		CHECK(clReleaseKernel(kernels[k]));
	for (int i = 0; i < queue_count; i++)
		CHECK(clReleaseCommandQueue(queues[i]));
	cl_app_close(&cl);
}

static void CL_CALLBACK exit_in_callback(cl_event e, cl_int status, void *arg)
{
	(void)e;
	(void)status;
	(void)arg;
	exit(7);
}

static void end_in_callback(void)
{
	const size_t global = COUNT;
	cl_event e;

	make_buffers();
	printf("expected: 1 kernels last\nends: status 7\n");
	fflush(stdout);
	CHECK(clEnqueueNDRangeKernel(queue, kernels[LAST], 1, NULL, &global, NULL, 0, NULL, &e));
	CHECK(clSetEventCallback(e, CL_COMPLETE, exit_in_callback, NULL));
	CHECK(clFlush(queue));
	while (true)
		pause();
}

static void end_in_flight(void)
{
	const size_t global = COUNT;

	make_buffers();
	printf("atmost: 50 kernels last\nends: status 7\n");
	fflush(stdout);
	for (int i = 0; i < 50; i++)
		CHECK(clEnqueueNDRangeKernel(queue, kernels[LAST], 1, NULL, &global, NULL, 0, NULL,
					     NULL));
	_exit(7);
}

static int choose(const char *value, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(value, names[i]) == 0)
			return i;
	fprintf(stderr, "cl_matrix: what is %s?\n", value);
	exit(2);
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = { { "queue", required_argument, NULL, 'q' },
						 { "no-profiling", no_argument, NULL, 'p' },
						 { "create", required_argument, NULL, 'c' },
						 { "events", required_argument, NULL, 'e' },
						 { "end", required_argument, NULL, 'x' },
						 { "rounds", required_argument, NULL, 'r' },
						 { "svm", no_argument, NULL, 's' },
						 { 0 } };
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'q':
			opts.queue = (enum queue_kind)choose(optarg, queue_names);
			break;
		case 'p':
			opts.no_profiling = true;
			break;
		case 'c':
			opts.create = (enum create)choose(optarg, create_names);
			break;
		case 'e':
			opts.policy = (enum policy)choose(optarg, policy_names);
			break;
		case 'x':
			opts.end = (enum end)choose(optarg, end_names);
			break;
		case 'r':
			opts.rounds = atol(optarg);
			break;
		case 's':
			opts.svm = true;
			break;
		default:
			exit(2);
		}
	}
	if (opts.create == CREATE_NULL && (!opts.no_profiling || opts.queue == OUT_OF_ORDER)) {
		fprintf(stderr, "cl_matrix: --create null makes a plain queue only\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	init();
	for (long round = 0; round < opts.rounds; round++)
		run_round(round);
	printf("Results are CORRECT\n");
	print_counts();
	if (opts.end == END_CALLBACK)
		end_in_callback();
	if (opts.end == END_EXIT)
		end_in_flight();
	fini();
	return 0;
}

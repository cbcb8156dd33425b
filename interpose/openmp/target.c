/*
 * Target regions, as the host sees them: what it asks of a device, and how long that takes it. What
 * the device does is told by the API below (CUDA, Level Zero, OpenCL).
 */
#include "openmp.h"

typedef void target(int kind, int endpoint, int device, union ompt_word *task,
		    union ompt_word *target_task, union ompt_word *region, const void *code);
typedef void data_op(int endpoint, union ompt_word *target_task, union ompt_word *region,
		     uint64_t *operation, int kind, void *from, int from_device, void *to,
		     int to_device, size_t bytes, const void *code);
typedef void submit(int endpoint, union ompt_word *region, uint64_t *operation, unsigned teams);

/* A callback at both ends of something. number: shown with its key at the begin, if there is one.
 */
static void put(enum omp_what what, int endpoint, const void *code, const char *key,
		uint64_t number)
{
	uint64_t tick = what == OMP_NOTHING ? 0 : omp_now();

	if (tick && endpoint == OMPT_BEGIN) {
		omp_begin(omp_name(what, code), tick);
		omp_number(key, number, tick);
	} else if (tick && endpoint == OMPT_END) {
		omp_end(tick);
	}
}

static void on_target(int kind, int endpoint, int device, union ompt_word *task,
		      union ompt_word *target_task, union ompt_word *region, const void *code)
{
	static const uint8_t whats[] = { [OMPT_TARGET] = OMP_TARGET,
					 [OMPT_TARGET_ENTER_DATA] = OMP_TARGET_ENTER_DATA,
					 [OMPT_TARGET_EXIT_DATA] = OMP_TARGET_EXIT_DATA,
					 [OMPT_TARGET_UPDATE] = OMP_TARGET_UPDATE };
	int plain = kind & ~OMPT_TARGET_NOWAIT;
	enum omp_what what = plain >= OMPT_TARGET && plain <= OMPT_TARGET_UPDATE ? whats[plain]
										 : OMP_NOTHING;

	put(what, endpoint, code, "device", (uint64_t)(unsigned)device);
	OMP_PASS_ON(OMPT_TARGET_EMI, target, kind, endpoint, device, task, target_task, region,
		    code);
}

static void on_data_op(int endpoint, union ompt_word *target_task, union ompt_word *region,
		       uint64_t *operation, int kind, void *from, int from_device, void *to,
		       int to_device, size_t bytes, const void *code)
{
	static const uint8_t whats[] = { [OMPT_DATA_ALLOC] = OMP_DATA_ALLOC,
					 [OMPT_DATA_TO_DEVICE] = OMP_DATA_TO_DEVICE,
					 [OMPT_DATA_FROM_DEVICE] = OMP_DATA_FROM_DEVICE,
					 [OMPT_DATA_DELETE] = OMP_DATA_DELETE };
	int plain = kind & ~OMPT_DATA_ASYNC;
	enum omp_what what = plain >= OMPT_DATA_ALLOC && plain <= OMPT_DATA_DELETE ? whats[plain]
										   : OMP_NOTHING;

	put(what, endpoint, code, "bytes", bytes);
	OMP_PASS_ON(OMPT_TARGET_DATA_OP_EMI, data_op, endpoint, target_task, region, operation,
		    kind, from, from_device, to, to_device, bytes, code);
}

static void on_submit(int endpoint, union ompt_word *region, uint64_t *operation, unsigned teams)
{
	put(OMP_SUBMIT, endpoint, NULL, "teams", teams);
	OMP_PASS_ON(OMPT_TARGET_SUBMIT_EMI, submit, endpoint, region, operation, teams);
}

const struct omp_callback omp_of_target[] = {
	OMP_CALLBACK(OMPT_TARGET_EMI, on_target),
	OMP_CALLBACK(OMPT_TARGET_DATA_OP_EMI, on_data_op),
	OMP_CALLBACK(OMPT_TARGET_SUBMIT_EMI, on_submit),
	{ 0 },
};

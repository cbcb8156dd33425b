/*
 * libxstrace-jit.so: what the JIT profiling API loads (INTEL_JIT_PROFILER64). A library of its own,
 * since its two entry points have names that any program may use; it passes what it is told to
 * libxstrace.so and holds nothing.
 *
 * Source of the ABI: Intel's ittapi 3.26, jitprofiling.h and jitprofiling.c.
 */
#include "jit.h"

#define EXPORT __attribute__((visibility("default")))

enum { METHOD_LOAD_FINISHED = 13, METHOD_LOAD_FINISHED_V2 = 21, METHOD_LOAD_FINISHED_V3 = 22 };
enum { SAMPLING_ON = 1 };

/* The beginning of iJIT_Method_Load, and of its successors. */
struct method_load {
	unsigned id;
	const char *name;
	const void *address;
	unsigned size;
};

unsigned Initialize(void);
int NotifyEvent(int event, const void *data);

EXPORT unsigned Initialize(void)
{
	return SAMPLING_ON; /* with anything else the client tells nothing */
}

EXPORT int NotifyEvent(int event, const void *data)
{
	const struct method_load *method = data;

	if (method && method->size &&
	    (event == METHOD_LOAD_FINISHED || event == METHOD_LOAD_FINISHED_V2 ||
	     event == METHOD_LOAD_FINISHED_V3))
		xs_jit_method(method->name, method->address, method->size);
	return 1;
}

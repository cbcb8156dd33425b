#include "unseen.h"

#include <stddef.h>

static const char *const texts[] = {
	[XS_UNSEEN_ZE_OLD] = "its Level Zero loader is older than version 1.4 of the API, "
			     "and is not traced",
	[XS_UNSEEN_ZE_SECOND] = "it uses a second Level Zero loader, which has functions "
				"of its own and is not traced; both are where "
				"ZE_ENABLE_ALT_DRIVERS names one driver",
	[XS_UNSEEN_ZE_DEEP] = "it opens Level Zero's loader with RTLD_DEEPBIND, where "
			      "ZE_ENABLE_VALIDATION_LAYER has the only place for a "
			      "layer; unset that, or it is not traced",
	[XS_UNSEEN_SANDBOX] = "it has put itself into a sandbox (seccomp, or its system "
			      "calls are dispatched); from then on it was traced without "
			      "a system call, so what would have needed one is lost",
	[XS_UNSEEN_SANDBOX_EXEC] = "what it starts in its sandbox (seccomp) is not traced: "
				   "the filter might end it for a system call of the "
				   "tracer's",
	[XS_UNSEEN_STRICT] = "it has put itself into seccomp's strict mode; nothing is "
			     "recorded from then on",
	[XS_UNSEEN_CLOCK] = "it has forbidden itself the time stamp counter (PR_SET_TSC); "
			    "nothing is recorded from then on",
	[XS_UNSEEN_LATE] = "when it put itself into a sandbox, a thread of it had not come "
			   "out of a system call of the tracer's for a second; if it "
			   "was ended by the sandbox, that may be why",
	[XS_UNSEEN_MEMORY] = "it had no memory, descriptors or rights left for the "
			     "tracer (ulimit -v, -d, -n); events, or names of events, are missing",
	[XS_UNSEEN_METRIC_FUNCTIONS] = "its Level Zero loader or driver has no functions "
				       "for metrics that go with the others; its kernels "
				       "are not measured",
	[XS_UNSEEN_METRIC_GROUP] = "a device of it does not tell of the metric group "
				   "(--group) for queries; kernels there are not measured",
	[XS_UNSEEN_METRIC_ACTIVE] = "the driver does not activate the metric group, as "
				    "when another tool uses the hardware's counters; "
				    "kernels there are not measured",
	[XS_UNSEEN_METRIC_THEIRS] = "it uses the hardware's counters itself; from then on "
				    "its kernels are not measured",
	[XS_UNSEEN_METRIC_CUPTI] = "its libcupti has no range profiler for its GPU (CUDA "
				   "12.6 or later, Turing or later); kernels there are "
				   "not measured",
	[XS_UNSEEN_XPTI_NONE] =
		"SYCL's runtime has not told of anything: it was not used, was built "
		"without XPTI, or did not find libxptifw.so",
	[XS_UNSEEN_XPTI_NEWER] = "its XPTI framework is newer than version 1; what SYCL "
				 "does is shown without names, places and sizes",
	[XS_UNSEEN_PYTHON] = "its interpreter is older than Python 3.8, newer than 3.13 or "
			     "without a GIL, and its functions are not traced",
	[XS_UNSEEN_PYTHON_PROFILER] = "it has a profiler of its own, which keeps its place: "
				      "functions of Python are not traced beside it",
	[XS_UNSEEN_PYTHON_TOOLS] = "its own tools have all ids of sys.monitoring, or its audit "
				   "hooks forbid one to the tracer; from then on functions of "
				   "Python are not traced",
	[XS_UNSEEN_PYTHON_OPENED] =
		"it opens libpython with dlopen(), and functions of such an "
		"interpreter are not traced; LD_PRELOAD with that library helps",
	[XS_UNSEEN_CUDA_LEFT] = "a thread of it has left a call of CUDA by a jump or a "
				"cancellation, and CUPTI has told of no call of that thread "
				"since; if there were any, they are missing",
	[XS_UNSEEN_CUDA_THEIRS] = "it has registered callbacks of its own for CUPTI's activity, "
				  "of which this CUPTI has one pair for a process; from then on "
				  "CUDA is not traced",
	[XS_UNSEEN_CUDA_CHANGED] = "it has given CUPTI a clock of its own, or has turned off what "
				   "CUPTI's activity tells of a context; "
				   "from then on CUDA is not traced",
	[XS_UNSEEN_XPTI_SECOND] = "it uses a second XPTI framework, whose runtime is not "
				  "traced",
};

const char *xs_unseen_text(uint32_t unseen)
{
	return unseen < sizeof(texts) / sizeof(texts[0]) ? texts[unseen] : NULL;
}

/*
 * The examples of PyTorch's and XSigma's documents, over xstrace/kineto_shim.hpp.
 *
 *	library_shim DIR
 */
#include <cstdio>
#include <string>
#include <thread>

#include "xstrace/kineto_shim.hpp"

namespace profiler = xstrace::kineto;
using namespace profiler;

static unsigned post_processed;

static void child_thread()
{
	if (!isProfilerEnabledInMainThread())
		return;
	enableProfilerInChildThread();
	recordThreadInfo();
	itt_range_push("child");
	itt_range_pop();
	disableProfilerInChildThread();
}

static void basic(const std::string &place)
{
	ProfilerConfig config(ProfilerState::KINETO);
	std::set<ActivityType> activities{ ActivityType::CPU };

	enableProfiler(config, activities);
	std::printf("type %d\n", static_cast<int>(profilerType()));
	pushCorrelationId(77);
	itt_range_push("operation");
	itt_range_pop();
	popCorrelationId();
	itt_mark("a mark");
	profilerStep();
	std::thread(child_thread).join();
	auto result = disableProfiler();
	unsigned linked = 0;

	for (const KinetoEvent &event : result->events())
		linked += event.linkedCorrelationId() == 77 && event.name() == "operation" &&
			  event.startNs() >= result->trace_start_ns();
	result->save(place + "/basic.json");
	std::printf("events %zu, linked %u\n", result->events().size(), linked);
	try {
		result->save(place + "/again.json");
	} catch (const std::runtime_error &error) {
		std::printf("again: %s\n", error.what());
	}
}

static void shim(const std::string &place)
{
	prepareTrace(true, { ActivityType::CPU });
	startTrace();
	{
		const std::int64_t now = xstrace_now();
		TraceWrapper trace(now - 5000, "PyTorch Profiler");
		activity_t *activity = trace.addCPUActivity("aten::add", XSTRACE_CPU_OP,
							    kineto_ids(), 9, now - 4000,
							    now - 3000);

		addMetadata(activity, "Call stack", "main");
		trace.transferCpuTrace(now);
		std::printf("wrapper %d\n", static_cast<bool>(trace));
	}
	addMetadataJson("distributedInfo", "{\"rank\": 3}");
	logInvariantViolation("a", "b", "c", "d");
	ActivityTraceWrapper trace = stopTrace();

	trace.save(place + "/shim.json");
	std::printf("device type %d\n", deviceTypeFromActivity(XSTRACE_CONCURRENT_KERNEL));
}

static void xsigma(const std::string &place)
{
	std::printf("init %d\n", kineto_init());
	kineto_start_trace();
	itt_range_push("operation");
	itt_range_pop();
	auto trace = kineto_stop_trace();

	trace->save(place + "/xsigma.json");
}

static void with_post_process(const std::string &place)
{
	ProfilerConfig config(ProfilerState::KINETO, false, true);

	enableProfilerWithEventPostProcess(config, { ActivityType::CPU },
					   [](const KinetoEvent &event) {
						   post_processed += event.name() == "operation";
					   });
	for (int i = 0; i < 3; i++) {
		itt_range_push("operation");
		itt_range_pop();
	}
	reportBackendEventToActiveKinetoProfiler(1, 2, -1, RecordScope::USER_SCOPE, "event",
						 "mine");
	auto result = disableProfiler();

	exportMemoryProfile(place + "/memory.json");
	std::printf("post-processed %u\n", post_processed);
}

int main(int argc, char **argv)
{
	const std::string place = argc > 1 ? argv[1] : ".";

	basic(place);
	shim(place);
	xsigma(place);
	with_post_process(place);
	return 0;
}

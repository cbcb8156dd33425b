/*
 * For C++ programs that were written for PyTorch's kineto_shim, profiler_kineto.h and itt_wrapper:
 * the same names, over xstrace.h. C++17. A program that is in a namespace of its own says once:
 *
 *	#include <xstrace/kineto_shim.hpp>
 *	namespace profiler = xstrace::kineto;
 *
 * What each function does, its units and its errors: xstrace.h. Functions that return nothing leave
 * why they failed to xstrace_why(); those that save or add throw std::runtime_error, as PyTorch's
 *do.
 */
#ifndef XSTRACE_KINETO_SHIM_HPP
#define XSTRACE_KINETO_SHIM_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xstrace.h"

namespace xstrace
{
namespace kineto
{

enum class ActivityType { CPU = 0, XPU, CUDA, HPU, MTIA, PrivateUse1, NUM_KINETO_ACTIVITIES };
using ActivitySet = std::set<ActivityType>;

enum class ProfilerState {
	Disabled = XSTRACE_STATE_DISABLED,
	CPU,
	CUDA,
	NVTX,
	ITT,
	PRIVATEUSE1,
	KINETO,
	KINETO_GPU_FALLBACK,
	KINETO_PRIVATEUSE1_FALLBACK,
	KINETO_ONDEMAND,
};

enum class ActiveProfilerType { NONE = 0, LEGACY, KINETO, NVTX, ITT, PRIVATEUSE1 };

enum class RecordScope : std::uint8_t {
	FUNCTION = 0,
	BACKWARD_FUNCTION,
	TORCHSCRIPT_FUNCTION,
	KERNEL_FUNCTION_DTYPE,
	CUSTOM_CLASS,
	BUILD_FEATURE,
	LITE_INTERPRETER,
	USER_SCOPE,
	STATIC_RUNTIME_OP,
	STATIC_RUNTIME_MODEL,
	NUM_SCOPES,
};

struct ExperimentalConfig {
	std::vector<std::string> profiler_metrics;
	bool profiler_measure_per_kernel = false;
	bool verbose = false;
	std::vector<std::string> performance_events;
	bool enable_cuda_sync_events = false;
	bool adjust_profiler_step = false;
	bool disable_external_correlation = false;
	bool profile_all_threads = false;
	bool capture_overload_names = false;
	std::string custom_profiler_config; /* options of xstrace, blanks between */

	explicit operator bool() const
	{
		return !profiler_metrics.empty();
	}
};

struct ProfilerConfig {
	ProfilerState state;
	ExperimentalConfig experimental_config;
	bool report_input_shapes, profile_memory, with_stack, with_flops, with_modules;
	std::string trace_id;

	explicit ProfilerConfig(ProfilerState which, bool shapes = false, bool memory = false,
				bool stack = false, bool flops = false, bool modules = false,
				ExperimentalConfig experimental = {}, std::string id = "")
	    : state(which), experimental_config(std::move(experimental)),
	      report_input_shapes(shapes), profile_memory(memory), with_stack(stack),
	      with_flops(flops), with_modules(modules), trace_id(std::move(id))
	{
	}
};

namespace detail
{

[[noreturn]] inline void fail()
{
	throw std::runtime_error(xstrace_why());
}

inline void check(int result)
{
	if (result != XSTRACE_OK && result != XSTRACE_JOINED && result != XSTRACE_OFF)
		fail();
}

inline std::uint32_t bits(const ActivitySet &activities)
{
	std::uint32_t all = 0;

	for (ActivityType activity : activities)
		all |= activity == ActivityType::CPU	? XSTRACE_CPU
		       : activity == ActivityType::XPU	? XSTRACE_XPU
		       : activity == ActivityType::CUDA ? XSTRACE_CUDA
		       : activity == ActivityType::HPU	? XSTRACE_HPU
		       : activity == ActivityType::MTIA ? XSTRACE_MTIA
							: XSTRACE_PRIVATEUSE1;
	return all;
}

} // namespace detail

/* ---- kineto_shim ---- */

struct DeviceAndResource {
	std::int64_t device, resource;
};

inline DeviceAndResource kineto_ids()
{
	const struct xstrace_ids ids = xstrace_get_ids();

	return { ids.device, ids.resource };
}

/* Of a TraceWrapper: valid until it is transferred. */
struct activity_t {
	struct xstrace_cpu_trace *list;
	std::size_t number;
};

inline void addMetadata(const activity_t *activity, const std::string &key,
			const std::string &value)
{
	(void)xstrace_activity_metadata(activity->list, activity->number, key.c_str(),
					value.c_str(), false);
}

class TraceWrapper
{
      public:
	TraceWrapper(std::int64_t start_time, const std::string &name)
	    : list_(xstrace_cpu_trace_create(start_time, name.c_str()))
	{
	}
	~TraceWrapper()
	{
		xstrace_cpu_trace_free(list_);
	}
	TraceWrapper(const TraceWrapper &) = delete;
	TraceWrapper &operator=(const TraceWrapper &) = delete;

	/* `type`: enum xstrace_type, whose numbers are Kineto's. The activity is the wrapper's. */
	activity_t *addCPUActivity(const std::string &name, int type, DeviceAndResource where,
				   std::uint64_t correlation_id, std::int64_t start_time,
				   std::int64_t end_time)
	{
		const struct xstrace_activity activity = {
			name.c_str(),	start_time,	end_time, where.device,
			where.resource, correlation_id, type
		};
		std::size_t number;

		if (!list_)
			throw std::runtime_error("Cannot add event to non-existent trace.");
		if (xstrace_cpu_trace_add(list_, &activity, 1, &number))
			detail::fail();
		activities_.push_back(std::make_unique<activity_t>(activity_t{ list_, number }));
		return activities_.back().get();
	}

	void transferCpuTrace(std::int64_t end_time)
	{
		(void)xstrace_cpu_trace_transfer(std::exchange(list_, nullptr), end_time);
		activities_.clear();
	}

	explicit operator bool() const
	{
		return list_;
	}

	struct xstrace_cpu_trace *get() const
	{
		return list_;
	}

      private:
	struct xstrace_cpu_trace *list_;
	std::vector<std::unique_ptr<activity_t>> activities_;
};

class ActivityTraceWrapper
{
      public:
	explicit ActivityTraceWrapper(struct xstrace_trace *trace = nullptr)
	    : trace_(trace, xstrace_trace_free)
	{
	}

	explicit operator bool() const
	{
		return static_cast<bool>(trace_);
	}

	/* Throws where there is no trace, or it was saved already. Under the launcher: nothing. */
	void save(const std::string &path)
	{
		detail::check(xstrace_trace_save(trace_.get(), path.c_str()));
	}

	const struct xstrace_trace *get() const
	{
		return trace_.get();
	}

      private:
	std::unique_ptr<struct xstrace_trace, void (*)(struct xstrace_trace *)> trace_;
};

inline void prepareTrace(bool cpuOnly, const ActivitySet &activities,
			 const ExperimentalConfig &config = {}, const std::string &trace_id = "")
{
	std::vector<const char *> metrics;
	struct xstrace_config given = {};

	for (const std::string &metric : config.profiler_metrics)
		metrics.push_back(metric.c_str());
	given.size = sizeof(given);
	given.activities = detail::bits(activities);
	given.cpu_only = cpuOnly;
	given.trace_id = trace_id.empty() ? nullptr : trace_id.c_str();
	given.options = config.custom_profiler_config.empty()
				? nullptr
				: config.custom_profiler_config.c_str();
	given.metrics = metrics.data();
	given.metric_count = metrics.size();
	given.measure_per_kernel = config.profiler_measure_per_kernel;
	given.cuda_sync_events = config.enable_cuda_sync_events;
	detail::check(xstrace_prepare(&given));
}

inline void startTrace()
{
	detail::check(xstrace_start());
}

inline ActivityTraceWrapper stopTrace()
{
	struct xstrace_trace *trace = nullptr;

	(void)xstrace_stop(&trace);
	return ActivityTraceWrapper(trace);
}

inline void toggleCollectionDynamic(bool enable, const ActivitySet &activities)
{
	(void)xstrace_toggle_collection(enable, detail::bits(activities));
}

inline void pushCorrelationId(std::uint64_t correlation_id)
{
	xstrace_push_correlation(correlation_id);
}

inline void popCorrelationId()
{
	xstrace_pop_correlation();
}

inline void pushUserCorrelationId(std::uint64_t correlation_id)
{
	xstrace_push_user_correlation(correlation_id);
}

inline void popUserCorrelationId()
{
	xstrace_pop_user_correlation();
}

inline void recordThreadInfo()
{
	xstrace_record_thread_info();
}

inline bool collectivesProfilerExists()
{
	return false; /* collectives are traced as calls of MPI and oneCCL, not by a profiler */
}

inline void logInvariantViolation(const std::string &assertion, const std::string &error,
				  const std::string &profile_id,
				  const std::string &group_profile_id)
{
	(void)xstrace_log_invariant_violation(assertion.c_str(), error.c_str(), profile_id.c_str(),
					      group_profile_id.c_str());
}

/* enum xstrace_device_type: PyTorch's numbers */
inline int deviceTypeFromActivity(int activity_type)
{
	return xstrace_device_type_of(activity_type);
}

inline void addMetadataJson(const std::string &key, const std::string &value)
{
	(void)xstrace_metadata_json(key.c_str(), value.c_str());
}

inline void profilerStep()
{
	xstrace_step();
}

/* ---- profiler_kineto.h ---- */

class KinetoEvent
{
      public:
	explicit KinetoEvent(const struct xstrace_event &event) : event_(event), name_(event.name)
	{
	}
	const std::string &name() const
	{
		return name_;
	}
	std::uint64_t startNs() const
	{
		return static_cast<std::uint64_t>(event_.start);
	}
	std::uint64_t durationNs() const
	{
		return event_.duration;
	}
	std::uint64_t correlationId() const
	{
		return event_.correlation;
	}
	std::uint64_t linkedCorrelationId() const
	{
		return event_.external;
	}
	int deviceType() const
	{
		return event_.device_type;
	}
	std::int64_t deviceIndex() const
	{
		return event_.device;
	}
	std::int64_t deviceResourceId() const
	{
		return event_.resource;
	}
	std::uint64_t nBytes() const
	{
		return event_.bytes;
	}
	int activityType() const
	{
		return event_.type;
	}

      private:
	struct xstrace_event event_;
	std::string name_;
};

class ProfilerResult
{
      public:
	explicit ProfilerResult(ActivityTraceWrapper trace, std::uint64_t start)
	    : trace_(std::move(trace)), start_(start)
	{
		struct xstrace_event event;

		for (std::size_t i = 0; i < xstrace_trace_count(trace_.get()); i++)
			if (!xstrace_trace_event(trace_.get(), i, &event))
				events_.emplace_back(event);
	}
	std::uint64_t trace_start_ns() const
	{
		return start_;
	}
	const std::vector<KinetoEvent> &events() const
	{
		return events_;
	}
	void save(const std::string &path)
	{
		trace_.save(path);
	}

      private:
	ActivityTraceWrapper trace_;
	std::uint64_t start_;
	std::vector<KinetoEvent> events_;
};

using post_process_t = std::function<void(const KinetoEvent &)>;

namespace detail
{

struct Active {
	std::uint64_t start = 0;
	post_process_t post_process;
};

inline Active &active()
{
	static Active the;

	return the;
}

inline void post_process(const struct xstrace_event *event, void *user)
{
	static_cast<Active *>(user)->post_process(KinetoEvent(*event));
}

inline void prepare(const ProfilerConfig &config, const ActivitySet &activities)
{
	struct xstrace_config given = {};

	given.size = sizeof(given);
	given.activities = bits(activities);
	given.state = static_cast<enum xstrace_state>(config.state);
	given.profile_memory = config.profile_memory;
	given.trace_id = config.trace_id.empty() ? nullptr : config.trace_id.c_str();
	given.options = config.experimental_config.custom_profiler_config.empty()
				? nullptr
				: config.experimental_config.custom_profiler_config.c_str();
	check(xstrace_prepare(&given));
}

} // namespace detail

inline void prepareProfiler(const ProfilerConfig &config, const ActivitySet &activities)
{
	detail::prepare(config, activities);
}

/* Prepares unless that was done, and starts. */
inline void enableProfilerWithEventPostProcess(const ProfilerConfig &config,
					       const ActivitySet &activities,
					       post_process_t &&function,
					       const std::unordered_map<int, int> & = {})
{
	detail::Active &active = detail::active();

	detail::prepare(config, activities);
	active.start = static_cast<std::uint64_t>(xstrace_now());
	active.post_process = std::move(function);
	detail::check(xstrace_start_with_post_process(active.post_process ? detail::post_process
									  : nullptr,
						      &active));
}

/* scopes: all are recorded. */
inline void enableProfiler(const ProfilerConfig &config, const ActivitySet &activities,
			   const std::set<RecordScope> & = {})
{
	enableProfilerWithEventPostProcess(config, activities, {});
}

inline std::unique_ptr<ProfilerResult> disableProfiler()
{
	return std::make_unique<ProfilerResult>(stopTrace(), detail::active().start);
}

inline void enableProfilerInChildThread()
{
	(void)xstrace_enable_in_child_thread();
}

inline void disableProfilerInChildThread()
{
	(void)xstrace_disable_in_child_thread();
}

inline bool isProfilerEnabledInMainThread()
{
	return xstrace_is_enabled_in_main_thread();
}

inline ActiveProfilerType profilerType()
{
	return static_cast<ActiveProfilerType>(xstrace_active_profiler());
}

inline void reportBackendEventToActiveKinetoProfiler(std::int64_t start_time_us,
						     std::int64_t end_time_us, std::int64_t,
						     RecordScope scope,
						     const std::string &event_name,
						     const std::string &backend_name)
{
	(void)xstrace_report_backend_event(start_time_us * 1000, end_time_us * 1000,
					   static_cast<enum xstrace_scope>(scope),
					   event_name.c_str(), backend_name.c_str());
}

inline void startMemoryProfile()
{
	(void)xstrace_memory_start();
}

inline void stopMemoryProfile()
{
	(void)xstrace_memory_stop();
}

inline void exportMemoryProfile(const std::string &path)
{
	detail::check(xstrace_memory_export(path.c_str()));
}

/* ---- XSigma's words for the same ---- */

inline bool kineto_init(bool cpu_only = false)
{
	return xstrace_initialize(cpu_only) == XSTRACE_OK;
}

inline bool kineto_is_profiler_registered()
{
	return xstrace_is_registered();
}

inline bool kineto_is_profiler_initialized()
{
	return xstrace_is_initialized();
}

inline void kineto_prepare_trace(const ActivitySet &activities)
{
	prepareTrace(false, activities);
}

inline void kineto_start_trace()
{
	startTrace();
}

inline std::unique_ptr<ActivityTraceWrapper> kineto_stop_trace()
{
	return std::make_unique<ActivityTraceWrapper>(stopTrace());
}

/* ---- itt_wrapper ---- */

inline bool itt_is_available()
{
	return xstrace_itt_available();
}

inline void itt_range_push(const char *name)
{
	xstrace_itt_range_push(name);
}

inline void itt_range_pop()
{
	xstrace_itt_range_pop();
}

inline void itt_mark(const char *name)
{
	xstrace_itt_mark(name);
}

} // namespace kineto
} // namespace xstrace

#endif

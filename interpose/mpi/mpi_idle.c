/*
 * What Intel MPI does inside a call: it looks for a library of the name "libunitrace_mpi.so" that
 * is loaded already, and for three functions in it, to which it tells when it begins and ends to
 * wait for progress. dlopen() (mpi_probe.c) shows it ours.
 */
#include "mpi_record.h"
#include "mpi_wrap.h"

static __thread struct {
	uint64_t tick; /* of the begin; 0: nothing is recorded */
	uint32_t depth;
} idle __attribute__((tls_model("initial-exec")));

static int32_t idle_number = -1, registered;

XS_EXPORT int _MPI_Internal_register_operation_name(const char *name);
XS_EXPORT void _MPI_Internal_task_start_hook(int operation);
XS_EXPORT void _MPI_Internal_task_stop_hook(int operation, int64_t counter, size_t source_bytes,
					    size_t target_bytes);

XS_EXPORT int _MPI_Internal_register_operation_name(const char *name)
{
	if (name && !strcmp(name, "MPI_Internal::Idle"))
		idle_number = registered;
	return registered++;
}

XS_EXPORT void _MPI_Internal_task_start_hook(int operation)
{
	(void)operation;
	if (!idle.depth++)
		idle.tick = xs_paused() || !xs_companion_options()->chrome_mpi
				    ? 0
				    : xs_tick(xs_use_tsc);
}

XS_EXPORT void _MPI_Internal_task_stop_hook(int operation, int64_t counter, size_t source_bytes,
					    size_t target_bytes)
{
	struct {
		struct xs_mpi_record record;
		uint64_t fill;
	} buffer = { .record = { .event = { .tick = idle.tick,
					    .name = operation == idle_number
							    ? FN_MPI_Internal_Idle
							    : FN_MPI_Internal_operation,
					    .kind = XS_MPI,
					    .words = sizeof(buffer) / 8,
					    .source = XS_SOURCE_MPI,
					    .flags = XS_MPI_FLAG_INSIDE } } };

	(void)counter, (void)source_bytes, (void)target_bytes; /* -1 and 0 in Intel MPI 2021.18 */
	if (!idle.depth || --idle.depth || !idle.tick)
		return;
	buffer.record.duration = (xs_tick_if_any() - idle.tick) & 0xffffffffffffu;
	xs_companion_record(&buffer, sizeof(buffer));
}

/* Commands are executed here, on the thread of their stream: the time each takes is what the log
 * and the tool are told. */
#include "history.h"
#include "settings.h"

#include <sched.h>
#include <string.h>
#include <time.h>

static _Atomic uint64_t executed;

static void set(const struct sc_cmd *cmd)
{
	if (cmd->value_size == 1) {
		memset(cmd->to, (int)cmd->value, cmd->bytes);
		return;
	}
	for (uint64_t at = 0; at + cmd->value_size <= cmd->bytes; at += cmd->value_size)
		memcpy((char *)cmd->to + at, &cmd->value, cmd->value_size);
}

static void wait_event(const struct sc_cmd *cmd)
{
	while (atomic_load(&cmd->event->done) < cmd->recording)
		sched_yield();
}

static void record_event(const struct sc_cmd *cmd)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	atomic_store(&cmd->event->time_ns, (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	if (atomic_load(&cmd->event->done) < cmd->recording)
		atomic_store(&cmd->event->done, cmd->recording);
	SC_TELL(recorded, cmd->event, cmd);
}

static void perform(const struct sc_cmd *cmd)
{
	switch (cmd->kind) {
	case SC_KERNEL:
		if (cmd->function->run)
			cmd->function->run(cmd->args, cmd->grid, cmd->block);
		break;
	case SC_COPY:
	case SC_PEER:
		memmove(cmd->to, cmd->from, cmd->bytes);
		break;
	case SC_SET:
		set(cmd);
		break;
	case SC_HOST:
		cmd->host(cmd->host_data);
		break;
	case SC_RECORD:
		record_event(cmd);
		break;
	case SC_WAIT:
		wait_event(cmd);
		break;
	case SC_GRAPH:
		sc_graph_run(cmd);
		break;
	default:
		break;
	}
}

static uint64_t duration_of(const struct sc_cmd *cmd)
{
	static const char *const names[SC_KINDS] = {
		[SC_COPY] = "copy", [SC_PEER] = "copy", [SC_SET] = "set", [SC_HOST] = "host"
	};

	if (!sc_config.durations)
		return 0;
	if (cmd->kind == SC_KERNEL)
		return cmd->function->duration_ns;
	return names[cmd->kind] ? soft_duration_ns(names[cmd->kind], 0) : 0;
}

/* by the clock that it is stamped with */
static void last(const struct sc_cmd *cmd, uint64_t duration)
{
	for (uint64_t took; (took = sc_now() - cmd->start) < duration;)
		if (duration - took > 100000)
			nanosleep(&(struct timespec){ 0, 50000 }, NULL);
}

static void lose_device(const struct sc_cmd *cmd)
{
	if (sc_config.lost_after && atomic_fetch_add(&executed, 1) + 1 >= sc_config.lost_after)
		atomic_store(&cmd->context->device->lost, true);
}

void sc_execute(struct sc_cmd *cmd)
{
	uint64_t raw_start, duration = duration_of(cmd);
	int place;
	bool logged = atomic_load_explicit(&sc_slow_flags, memory_order_relaxed) & SC_LOGGING;

	if (cmd->context->device->lost)
		return;
	if (!sc_slow() && !duration && !sc_config.lost_after) {
		perform(cmd);
		return;
	}
	if (cmd->kind == SC_KERNEL)
		sc_managed_used(cmd);
	raw_start = sc_raw_ns();
	cmd->start = sc_history_begin(cmd, &place);
	perform(cmd);
	if (duration)
		last(cmd, duration);
	cmd->end = sc_now();
	if (cmd->end <= cmd->start)
		cmd->end = cmd->start + 1;
	sc_history_end(cmd, place);
	if (logged)
		sc_log_command(cmd, raw_start, sc_raw_ns());
	SC_TELL(executed, cmd);
	lose_device(cmd);
}

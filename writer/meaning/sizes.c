/*
 * How long the records of each kind can be.
 */
#include "copy.h"
#include "device_record.h"
#include "mpi_record.h"
#include "task_record.h"

#define EXACTLY(bytes)	     { (bytes) / 16, (bytes) / 16, 0 }
#define EITHER(bytes, more)  { (bytes) / 16, (more) / 16, 0 }
#define BETWEEN(least, most) { (least) / 16, (most) / 16, 1 }
#define FROM(least)	     BETWEEN(least, XS_RECORD_MAX)

const struct xs_record_sizes xs_record_sizes[256] = {
	[XS_PAD] = FROM(sizeof(struct xs_event)),
	[XS_THREAD] = EXACTLY(sizeof(struct xs_thread_record)),
	[XS_BEGIN] = EXACTLY(sizeof(struct xs_event)),
	[XS_END] = EXACTLY(sizeof(struct xs_event)),
	[XS_CALL] = EXACTLY(sizeof(struct xs_call_record)),
	[XS_DEVICE] = EITHER(XS_DEVICE_RECORD_SHORT, sizeof(struct xs_device_record)),
	[XS_LOST_ENDS] = EXACTLY(sizeof(struct xs_event)),
	[XS_TASK] = EXACTLY(sizeof(struct xs_task_record)),
	[XS_ARGS] = FROM(sizeof(struct xs_args_record)),
	[XS_INSTANT] = FROM(sizeof(struct xs_args_record)),
	[XS_COUNTER] = EXACTLY(sizeof(struct xs_counter_record)),
	[XS_SPAN] = EXACTLY(sizeof(struct xs_span_record)),
	[XS_OPEN] = EITHER(sizeof(struct xs_event), sizeof(struct xs_task_record)),
	[XS_CLOSE] = EITHER(sizeof(struct xs_event), sizeof(struct xs_task_record)),
	[XS_EVENT_BEGIN] = EXACTLY(sizeof(struct xs_event)),
	[XS_EVENT_END] = EXACTLY(sizeof(struct xs_event)),
	[XS_RELATION] = EXACTLY(sizeof(struct xs_task_record)),
	[XS_TRACK] = EXACTLY(sizeof(struct xs_event)),
	[XS_KERNEL] = EXACTLY(sizeof(struct xs_kernel_record)),
	[XS_DEVICE_USED] = EXACTLY(sizeof(struct xs_event)),
	[XS_CALL_IN] = FROM(sizeof(struct xs_event)),
	[XS_CALL_OUT] = FROM(sizeof(struct xs_values_record)),
	[XS_STACK] = BETWEEN(sizeof(struct xs_event), XS_STACK_SIZE(XS_STACK_DEPTH_MAX)),
	/* the least has one word, or none and eight bytes too many */
	[XS_MPI] = BETWEEN(sizeof(struct xs_mpi_record) + 8,
			   sizeof(struct xs_mpi_record) + 8 * XS_MPI_WORDS),
	[XS_MPI_START] = EXACTLY(sizeof(struct xs_mpi_request_record)),
	[XS_MPI_DONE] = EXACTLY(sizeof(struct xs_mpi_request_record)),
	[XS_COMMANDS] = FROM(sizeof(struct xs_commands_record) + sizeof(struct xs_command)),
	[XS_OWN_TIME] = EXACTLY(sizeof(struct xs_own_time_record)),
	[XS_MPI_MEMBER] = EXACTLY(sizeof(struct xs_mpi_member_record)),
	[XS_WAITED] = EXACTLY(sizeof(struct xs_waited_record)),
	[XS_ENQUEUED] = EXACTLY(sizeof(struct xs_enqueued_record)),
	[XS_ACTIVITY] = FROM(sizeof(struct xs_activity_record)),
	[XS_ABOUT] = FROM(sizeof(struct xs_args_record)),
	[XS_EXTERNAL] = EXACTLY(sizeof(struct xs_external_record)),
	[XS_THREAD_NAMED] = EXACTLY(sizeof(struct xs_thread_named_record)),
	[XS_METRICS] = FROM(sizeof(struct xs_metrics_record)),
	[XS_SAMPLE] = FROM(sizeof(struct xs_metrics_record)),
	[XS_KERNEL_PLACE] = EXACTLY(sizeof(struct xs_kernel_place_record)),
	[XS_COUNTED] = FROM(sizeof(struct xs_counted_record)),
	[XS_STALLED] = FROM(sizeof(struct xs_stalled_record)),
	[XS_CPU] = BETWEEN(sizeof(struct xs_cpu_record), XS_CPU_SIZE(XS_CPU_MAX)),
	[XS_TEAM] = EXACTLY(sizeof(struct xs_team_record)),
	[XS_CALLED] = EXACTLY(sizeof(struct xs_called_record)),
	[XS_LOST_BEGINS] = EXACTLY(sizeof(struct xs_event)),
};

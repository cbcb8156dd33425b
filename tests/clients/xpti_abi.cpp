// Compares gpu/sycl/xpti_abi.h with the runtime's own headers: it compiles, or it does not.
#include <cstddef>

#include <xpti/xpti_trace_framework.h>

#define _Static_assert static_assert
extern "C" {
#include "xpti_abi.h"
}

#define SAME(ours, mine, theirs, yours) \
	static_assert(offsetof(struct ours, mine) == offsetof(xpti::theirs, yours), #ours "." #mine)
#define SIZE(ours, theirs) static_assert(sizeof(struct ours) == sizeof(xpti::theirs), #ours)
#define POINT(number, name) \
	static_assert((uint16_t)xpti::trace_point_type_t::name == XPTI_BEGIN(number), #name)

SAME(xpti_payload, name, payload_t, name);
SAME(xpti_payload, file, payload_t, source_file);
SAME(xpti_payload, line, payload_t, line_no);
SAME(xpti_event, instance, trace_event_data_t, instance_id);
SAME(xpti_event, type, trace_event_data_t, event_type);
SAME(xpti_event, source, trace_event_data_t, source_id);
SAME(xpti_event, target, trace_event_data_t, target_id);
SAME(xpti_event, payload, trace_event_data_t, reserved.payload);
SAME(xpti_event, metadata, trace_event_data_t, reserved.metadata);
SAME(xpti_event, user, trace_event_data_t, global_user_data);
SIZE(xpti_metadata, metadata_t);
SIZE(xpti_object, object_data_t);
SAME(xpti_object, data, object_data_t, data);
SAME(xpti_function, name, function_with_args_t, function_name);
SAME(xpti_function, result, function_with_args_t, ret_data);
SAME(xpti_memory, pointer, mem_alloc_data_t, alloc_pointer);
SAME(xpti_memory, size, mem_alloc_data_t, alloc_size);
SIZE(xpti_buffer, offload_buffer_data_t);
SAME(xpti_buffer, element_size, offload_buffer_data_t, element_size);
SAME(xpti_buffer, range, offload_buffer_data_t, range);
SIZE(xpti_image, offload_image_data_t);
SAME(xpti_image, range, offload_image_data_t, range);
SAME(xpti_image, filtering, offload_image_data_t, filtering);
SAME(xpti_image_accessor, mode, offload_image_accessor_data_t, mode);
SIZE(xpti_accessor, offload_accessor_data_t);
SAME(xpti_accessor, mode, offload_accessor_data_t, mode);
POINT(XPTI_GRAPH, graph_create);
POINT(XPTI_NODE, node_create);
POINT(XPTI_EDGE, edge_create);
POINT(XPTI_TASK, task_begin);
POINT(XPTI_BARRIER, barrier_begin);
POINT(XPTI_WAIT, wait_begin);
POINT(XPTI_FUNCTION, function_begin);
POINT(XPTI_FUNCTION_WITH_ARGS, function_with_args_begin);
POINT(XPTI_ALLOC, mem_alloc_begin);
POINT(XPTI_RELEASE, mem_release_begin);
POINT(XPTI_MEMORY_OBJECT, offload_alloc_memory_object_construct);
POINT(XPTI_ACCESSOR, offload_alloc_accessor);
POINT(XPTI_QUEUE, queue_create);
POINT(XPTI_DIAGNOSTICS, diagnostics);

int main()
{
	xpti::metadata_t map{{7, 9}};
	struct xpti_metadata ours;

	__builtin_memcpy(&ours, (const void *)&map, sizeof(ours));
	return !(ours.count == 1 && ours.first && !ours.first->next && ours.first->key == 7 &&
		 ours.first->value == 9);
}

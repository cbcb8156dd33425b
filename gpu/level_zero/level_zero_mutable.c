/*
 * Mutable lists: commands of regular lists that are changed after they were appended. The
 * application asks for the number of the command that it appends next, and changes it by that.
 */
#include "device_record.h"
#include "level_zero_metrics.h"

/* What is changed; as the headers have it that know it. */
#define GROUP_COUNT 0x0002001au
#define GROUP_SIZE  0x0002001bu
struct change {
	uint32_t type;
	const struct change *next;
	uint64_t command;
	union {
		const ze_group_count_t *groups; /* GROUP_COUNT */
		uint32_t size[3];		/* GROUP_SIZE */
	} to;
};

static struct xs_ze_list *changeable(ze_command_list_handle_t handle)
{
	struct xs_ze_list *list = xs_ze_alive() ? xs_ze_list_of(handle) : NULL;

	return list && list->body && !list->queue ? list : NULL;
}

/*
 * The number will be that of the next command, so what counts while it runs begins before. If that
 * is no kernel it ends behind it (xs_ze_leave()).
 */
void xs_ze_command_names(ze_command_list_handle_t handle)
{
	struct xs_ze_list *list = xs_ze_queries ? changeable(handle) : NULL;

	if (list && list->meter && !list->begun)
		list->begun = xs_ze_query_begin(list->meter, handle, 0, NULL);
}

void xs_ze_command_named(ze_command_list_handle_t handle, uint64_t id)
{
	struct xs_ze_list *list = changeable(handle);

	if (list && id)
		list->next_command = id;
	else if (list && list->begun)
		xs_ze_body_unused(list, handle);
}

void xs_ze_commands_change(ze_command_list_handle_t handle)
{
	struct xs_ze_list *list = changeable(handle);

	if (list)
		xs_ze_body_changes(list->body);
}

static void apply(struct xs_device_record *record, const struct change *change)
{
	for (int i = 0; i < 3; i++) {
		uint64_t groups = record->local[i] ? record->global[i] / record->local[i] : 0;

		if (change->type == GROUP_COUNT)
			groups = (&change->to.groups->groupCountX)[i];
		else
			record->local[i] = change->to.size[i];
		record->global[i] = groups * record->local[i];
	}
}

void xs_ze_commands_changed(ze_command_list_handle_t handle, const void *desc, ze_result_t result)
{
	struct xs_ze_list *list = result ? NULL : changeable(handle);

	/* a struct with flags behind its link comes first */
	for (const struct change *change = list ? ((const struct change *)desc)->next : NULL;
	     change; change = change->next) {
		bool shapes = change->type == GROUP_COUNT || change->type == GROUP_SIZE;
		struct xs_ze_node *node = shapes ? xs_ze_body_command(list->body, change->command)
						 : NULL;

		if (!node || !node->record.kernel)
			continue;
		apply(&node->record, change);
		node->shape = xs_ze_shape(&node->record);
	}
}

void xs_ze_command_kernels(ze_command_list_handle_t handle, uint32_t count, const uint64_t *ids,
			   const ze_kernel_handle_t *kernels, ze_result_t result)
{
	struct xs_ze_list *list = result ? NULL : changeable(handle);

	for (uint32_t i = 0; list && i < count; i++) {
		struct xs_ze_node *node = xs_ze_body_command(list->body, ids[i]);

		if (node && node->record.kernel)
			xs_ze_node_kernel(node, kernels[i]);
	}
}

/*
 * An event that can tell takes the place of the one that told; for any other ours stays, and none
 * of the application's is signalled by it.
 */
ze_result_t xs_hook_zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t handle,
								    uint64_t id,
								    ze_event_handle_t event)
{
	struct xs_ze_list *list = changeable(handle);
	struct xs_ze_node *node = list ? xs_ze_body_command(list->body, id) : NULL;
	_Atomic uint64_t *word = node && event ? xs_ze_event_word(event) : NULL;
	ze_result_t result;

	if (!node)
		return XS_REAL_zeCommandListUpdateMutableCommandSignalEventExp(handle, id, event);
	xs_ze_body_changes(list->body);
	result = XS_REAL_zeCommandListUpdateMutableCommandSignalEventExp(handle, id,
									 event ? event : node->own);
	if (result)
		return result;
	if (node->event != node->own)
		xs_ze_event_unlink(node->event, node);
	/* which an event that cannot tell leaves unsignalled: its command is counted as untimed */
	node->event = node->own;
	if (word && atomic_load_explicit(word, memory_order_relaxed) & XS_ZE_EVENT_TIMED)
		xs_ze_node_link_event(node, event);
	return result;
}

/*
 * What headers newer than Debian's declare and the driver knows in any case: a program built with newer headers reaches it through an
 * old loader too, by flags and structures that the loader only hands on, and by zeDriverGetExtensionFunctionAddress.
 */
#ifndef SG_NEWER_H
#define SG_NEWER_H

#include <level_zero/ze_api.h>

#ifdef ZE_API_VERSION_CURRENT_M /* a macro in newer headers alone */
#define SG_NEWER 1
#define SG_API_VERSION ((uint32_t)ZE_API_VERSION_CURRENT_M)
#else
#define SG_API_VERSION ((uint32_t)ZE_API_VERSION_CURRENT)

#define ZE_COMMAND_LIST_FLAG_IN_ORDER ZE_BIT(3)
#define ZE_COMMAND_QUEUE_FLAG_IN_ORDER ZE_BIT(1)

#define ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC ((ze_structure_type_t)0x00020014)
typedef struct _ze_event_pool_counter_based_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
} ze_event_pool_counter_based_exp_desc_t;

ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t list, uint64_t timeout);
ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t immediate, uint32_t count, ze_command_list_handle_t *lists,
 ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait);
ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t list, ze_device_handle_t *device);
ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t list, ze_context_handle_t *context);
ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t list, uint32_t *ordinal);
ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t list, uint32_t *index);
ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t list, ze_bool_t *is);
ze_result_t zeCommandQueueGetOrdinal(ze_command_queue_handle_t queue, uint32_t *ordinal);
ze_result_t zeCommandQueueGetIndex(ze_command_queue_handle_t queue, uint32_t *index);
ze_result_t zeEventGetEventPool(ze_event_handle_t event, ze_event_pool_handle_t *pool);
ze_result_t zeDeviceGetRootDevice(ze_device_handle_t device, ze_device_handle_t *root);
#endif

/* a driver's own extension, which unitrace looks for */
ze_result_t zexKernelGetBaseAddress(ze_kernel_handle_t kernel, uint64_t *address);

#endif

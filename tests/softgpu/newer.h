/*
 * What headers newer than Debian's declare and the driver knows in any case: a newer loader finds
 * it in its tables, and through an old one a program reaches it by flags and structures that are
 * only handed on, and by zeDriverGetExtensionFunctionAddress.
 */
#ifndef SG_NEWER_H
#define SG_NEWER_H

#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>
#include <level_zero/zet_api.h>

#ifdef ZE_API_VERSION_CURRENT_M /* a macro in newer headers alone */
#define SG_API_VERSION ((uint32_t)ZE_API_VERSION_CURRENT_M)
#else
#define SG_API_VERSION ((uint32_t)ZE_API_VERSION_CURRENT)

#define ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP ZE_BIT(3)
#define ZE_COMMAND_LIST_FLAG_IN_ORDER		   ZE_BIT(3)
#define ZE_COMMAND_QUEUE_FLAG_IN_ORDER		   ZE_BIT(1)
#define ZE_INIT_DRIVER_TYPE_FLAG_GPU		   ZE_BIT(0)

#define ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC ((ze_structure_type_t)0x00020014)
typedef struct _ze_event_pool_counter_based_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
} ze_event_pool_counter_based_exp_desc_t;

typedef struct _ze_init_driver_type_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
} ze_init_driver_type_desc_t;

/* tables of which no member is called by its name here */
typedef void ze_command_list_exp_dditable_t;
typedef void zes_global_dditable_t;
#endif

#if !defined(ZE_API_VERSION_CURRENT_M) || ZE_API_VERSION_CURRENT_M < ZE_MAKE_VERSION(1, 15)
#define ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC   ((ze_structure_type_t)0x0002003A)
#define ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE     ZE_BIT(2)
#define ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP ZE_BIT(4)
#define ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP   ZE_BIT(5)
typedef struct _ze_event_counter_based_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
	ze_event_scope_flags_t signal, wait;
} ze_event_counter_based_desc_t;
#endif

#ifndef ZE_MUTABLE_COMMAND_LIST_EXP_NAME
#define ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC	   ((ze_structure_type_t)0x00020017)
#define ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC	   ((ze_structure_type_t)0x00020018)
#define ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC ((ze_structure_type_t)0x00020019)
#define ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC	   ((ze_structure_type_t)0x0002001A)
#define ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC	   ((ze_structure_type_t)0x0002001B)
typedef struct _ze_mutable_command_id_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
} ze_mutable_command_id_exp_desc_t;
typedef struct _ze_mutable_commands_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
} ze_mutable_commands_exp_desc_t;
typedef struct _ze_mutable_kernel_argument_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint64_t commandId;
	uint32_t argIndex;
	size_t argSize;
	const void *pArgValue;
} ze_mutable_kernel_argument_exp_desc_t;
typedef struct _ze_mutable_group_count_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint64_t commandId;
	const ze_group_count_t *pGroupCount;
} ze_mutable_group_count_exp_desc_t;
typedef struct _ze_mutable_group_size_exp_desc_t {
	ze_structure_type_t stype;
	const void *pNext;
	uint64_t commandId;
	uint32_t groupSizeX, groupSizeY, groupSizeZ;
} ze_mutable_group_size_exp_desc_t;
#endif

#if !defined(ZE_API_VERSION_CURRENT_M) || ZE_API_VERSION_CURRENT_M < ZE_MAKE_VERSION(1, 14)
typedef struct _ze_group_size_t {
	uint32_t groupSizeX, groupSizeY, groupSizeZ;
} ze_group_size_t;
#endif

#ifndef ZE_RECORD_REPLAY_GRAPH_EXT_NAME
#define ZE_RESULT_QUERY_TRUE		     ((ze_result_t)0x78000022)
#define ZE_RESULT_QUERY_FALSE		     ((ze_result_t)0x78000023)
#define ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS ((ze_result_t)0x78000029)
typedef struct _ze_graph_handle_t *ze_graph_handle_t;
typedef struct _ze_executable_graph_handle_t *ze_executable_graph_handle_t;
typedef void ze_graph_dditable_t;
typedef void ze_executable_graph_dditable_t;
#endif

#ifndef ZE_API_VERSION_CURRENT_M
#define ZET_STRUCTURE_TYPE_METRIC_GLOBAL_TIMESTAMPS_RESOLUTION_EXP 0x9
typedef struct _zet_metric_global_timestamps_resolution_exp_t {
	uint32_t stype;
	const void *pNext;
	uint64_t timerResolution, timestampValidBits;
} zet_metric_global_timestamps_resolution_exp_t;
#endif

/* declared once more where the headers do so already */
ze_result_t zeInitDrivers(uint32_t *count, ze_driver_handle_t *drivers,
			  ze_init_driver_type_desc_t *desc);
ze_result_t zesInit(uint32_t flags);
ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *drivers);
ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *devices);
ze_result_t zeDeviceGetRootDevice(ze_device_handle_t device, ze_device_handle_t *root);
ze_result_t zeEventPoolGetFlags(ze_event_pool_handle_t pool, ze_event_pool_flags_t *flags);
ze_result_t zexCounterBasedEventCreate2(ze_context_handle_t context, ze_device_handle_t device,
					const ze_event_counter_based_desc_t *desc,
					ze_event_handle_t *event);
ze_result_t zeEventCounterBasedCreate(ze_context_handle_t context, ze_device_handle_t device,
				      const ze_event_counter_based_desc_t *desc,
				      ze_event_handle_t *event);
ze_result_t zeCommandListAppendLaunchKernelWithParameters(
	ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t *groups,
	const void *next, ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait);
ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t list,
							 ze_kernel_handle_t kernel,
							 const ze_group_count_t groups,
							 const ze_group_size_t size, void **args,
							 const void *next, ze_event_handle_t signal,
							 uint32_t nwait, ze_event_handle_t *wait);
ze_result_t zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t list, void *to,
							const void *from, size_t size,
							const void *next, ze_event_handle_t signal,
							uint32_t nwait, ze_event_handle_t *wait);
ze_result_t zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t list, void *to,
							const void *pattern, size_t pattern_size,
							size_t size, const void *next,
							ze_event_handle_t signal, uint32_t nwait,
							ze_event_handle_t *wait);
ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(
	ze_command_list_handle_t immediate, uint32_t count, ze_command_list_handle_t *lists,
	const void *next, ze_event_handle_t signal, uint32_t nwait, ze_event_handle_t *wait);
ze_result_t zeEventGetEventPool(ze_event_handle_t event, ze_event_pool_handle_t *pool);
ze_result_t zeCommandQueueGetOrdinal(ze_command_queue_handle_t queue, uint32_t *ordinal);
ze_result_t zeCommandQueueGetIndex(ze_command_queue_handle_t queue, uint32_t *index);
ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t list, uint64_t timeout);
ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t list, ze_device_handle_t *device);
ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t list,
					  ze_context_handle_t *context);
ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t list, uint32_t *ordinal);
ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t list, uint32_t *index);
ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t list, ze_bool_t *is);
ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t immediate,
							uint32_t count,
							ze_command_list_handle_t *lists,
							ze_event_handle_t signal, uint32_t nwait,
							ze_event_handle_t *wait);
ze_result_t zeCommandListGetNextCommandIdExp(ze_command_list_handle_t list,
					     const ze_mutable_command_id_exp_desc_t *desc,
					     uint64_t *id);
ze_result_t zeCommandListUpdateMutableCommandsExp(ze_command_list_handle_t list,
						  const ze_mutable_commands_exp_desc_t *desc);
ze_result_t zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t list,
							    uint64_t id, ze_event_handle_t signal);
ze_result_t zeCommandListUpdateMutableCommandWaitEventsExp(ze_command_list_handle_t list,
							   uint64_t id, uint32_t count,
							   ze_event_handle_t *events);
ze_result_t zeGraphCreateExt(ze_context_handle_t context, const void *next,
			     ze_graph_handle_t *graph);
ze_result_t zeGraphInstantiateExt(ze_graph_handle_t graph, const void *next,
				  ze_executable_graph_handle_t *executable);
ze_result_t zeGraphIsEmptyExt(ze_graph_handle_t graph);
ze_result_t zeGraphDestroyExt(ze_graph_handle_t graph);
ze_result_t zeExecutableGraphGetSourceGraphExt(ze_executable_graph_handle_t executable,
					       ze_graph_handle_t *graph);
ze_result_t zeExecutableGraphDestroyExt(ze_executable_graph_handle_t executable);
ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t list, const void *next);
ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t list,
						  ze_graph_handle_t graph, const void *next);
ze_result_t zeCommandListIsGraphCaptureEnabledExt(ze_command_list_handle_t list);
ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t list, const void *next,
					    ze_graph_handle_t *graph);
ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t list,
					ze_executable_graph_handle_t executable, const void *next,
					ze_event_handle_t signal, uint32_t nwait,
					ze_event_handle_t *wait);

/* as Intel's driver has had them before */
ze_result_t zeGraphCreateExp(ze_context_handle_t context, ze_graph_handle_t *graph, void *next);
ze_result_t zeCommandListBeginCaptureIntoGraphExp(ze_command_list_handle_t list,
						  ze_graph_handle_t graph, const void *next);
ze_result_t zeCommandListBeginGraphCaptureExp(ze_command_list_handle_t list, const void *next);
ze_result_t zeCommandListEndGraphCaptureExp(ze_command_list_handle_t list, ze_graph_handle_t *graph,
					    const void *next);
ze_result_t zeCommandListInstantiateGraphExp(ze_graph_handle_t graph,
					     ze_executable_graph_handle_t *executable,
					     const void *next);
ze_result_t zeCommandListAppendGraphExp(ze_command_list_handle_t list,
					ze_executable_graph_handle_t executable, const void *next,
					ze_event_handle_t signal, uint32_t nwait,
					ze_event_handle_t *wait);
ze_result_t zeGraphDestroyExp(ze_graph_handle_t graph);
ze_result_t zeExecutableGraphDestroyExp(ze_executable_graph_handle_t executable);

/* programmable metrics: here under names of their own, of zet_api.h 1.11 */
struct sg_programmable_properties {
	uint32_t stype;
	void *pNext;
	char name[128], description[128], component[128];
	uint32_t tierNumber, domain, parameterCount, samplingType, sourceId;
};
struct sg_programmable_parameter {
	uint32_t stype;
	void *pNext;
	int type;
	char name[128];
	int valueInfoType;
	zet_value_t defaultValue;
	uint32_t valueInfoCount;
};
#ifndef ZET_PROGRAMMABLE_METRICS_EXP_NAME
ze_result_t zetDeviceGetConcurrentMetricGroupsExp(zet_device_handle_t device, uint32_t count,
						  zet_metric_group_handle_t *groups,
						  uint32_t *counts, uint32_t *concurrent);
ze_result_t zetMetricProgrammableGetExp(zet_device_handle_t device, uint32_t *count, void **ret);
ze_result_t zetMetricProgrammableGetPropertiesExp(void *one,
						  struct sg_programmable_properties *ret);
ze_result_t zetMetricProgrammableGetParamInfoExp(void *one, uint32_t *count,
						 struct sg_programmable_parameter *ret);
ze_result_t zetMetricCreateFromProgrammableExp2(void *one, uint32_t count, zet_value_t *values,
						const char *name, const char *description,
						uint32_t *metrics, zet_metric_handle_t *ret);
ze_result_t zetDeviceCreateMetricGroupsFromMetricsExp(zet_device_handle_t device, uint32_t count,
						      zet_metric_handle_t *metrics,
						      const char *prefix, const char *description,
						      uint32_t *groups,
						      zet_metric_group_handle_t *ret);
#endif

/* a driver's own extensions, the first of which unitrace looks for */
ze_result_t zexKernelGetBaseAddress(ze_kernel_handle_t kernel, uint64_t *address);
ze_result_t zexDriverImportExternalPointer(ze_driver_handle_t driver, void *pointer, size_t size);
ze_result_t zexDriverReleaseImportedPointer(ze_driver_handle_t driver, void *pointer);

#endif

/* gpu/cuda/profiler_abi.h says what CUPTI's headers say. */
#include "counters.h"

#include <assert.h>
#include <cupti_pcsampling.h>

#include "profiler_abi.h"

#define SAME(name, ours, last, theirs, member)                                             \
	static_assert(XS_PROF_SIZE(ours, last) ==                                          \
			      offsetof(theirs, member) + sizeof(((theirs *)NULL)->member), \
		      #name);
XS_PROF_CALLS(SAME)
XS_PC_CALLS(SAME)

static_assert(XS_PROF_RANGES == CUPTI_PROFILER_TYPE_RANGE_PROFILER, "type");
static_assert(XS_PROF_AUTO_RANGE == CUPTI_AutoRange, "range");
static_assert(XS_PROF_KERNEL_REPLAY == CUPTI_KernelReplay, "replay");
#define AT(ours, member, theirs, their_member) \
	static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member), #member);
AT(xs_prof_set, range, CUpti_RangeProfiler_SetConfig_Params, range)
AT(xs_prof_set, ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass)
AT(xs_prof_set, levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels)
AT(xs_prof_set, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex)
AT(xs_prof_set, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage)
AT(xs_prof_host, chip, CUpti_Profiler_Host_Initialize_Params, pChipName)
AT(xs_prof_properties, unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit)
AT(xs_prof_evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex)
AT(xs_prof_data_size, nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes)
AT(xs_pc_attribute, data, CUpti_PCSamplingConfigurationInfo, attributeData)
AT(xs_pc, name, CUpti_PCSamplingPCData, functionName)
AT(xs_pc, reasons, CUpti_PCSamplingPCData, stallReason)
AT(xs_pc_data, pc, CUpti_PCSamplingData, pPcData)
AT(xs_pc_data, full, CUpti_PCSamplingData, hardwareBufferFull)
AT(xs_pc_reason, samples, CUpti_PCSamplingStallReason, samples)
static_assert(sizeof(struct xs_pc) == sizeof(CUpti_PCSamplingPCData), "an array of them");
static_assert(sizeof(struct xs_pc_attribute) == sizeof(CUpti_PCSamplingConfigurationInfo),
	      "an array of them");
static_assert(sizeof(struct xs_pc_reason) == sizeof(CUpti_PCSamplingStallReason),
	      "an array of them");
static_assert(XS_PC_REASON_NAME == CUPTI_STALL_REASON_STRING_SIZE, "names");
#define TYPE(ours, theirs)                                                                  \
	static_assert((int)ours == (int)CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_##theirs, \
		      #theirs);
TYPE(XS_PC_PERIOD, SAMPLING_PERIOD)
TYPE(XS_PC_REASONS, STALL_REASON)
TYPE(XS_PC_MODE, COLLECTION_MODE)
TYPE(XS_PC_START_STOP, ENABLE_START_STOP_CONTROL)
TYPE(XS_PC_BUFFER, SAMPLING_DATA_BUFFER)
static_assert((int)XS_PC_CONTINUOUS == (int)CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS, "mode");

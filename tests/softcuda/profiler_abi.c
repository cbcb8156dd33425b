/* gpu/cuda/profiler_abi.h says what CUPTI's headers say. */
#include "counters.h"

#include <assert.h>

#include "profiler_abi.h"

#define SAME(name, ours, last, theirs, member)                                             \
	static_assert(XS_PROF_SIZE(ours, last) ==                                          \
			      offsetof(theirs, member) + sizeof(((theirs *)NULL)->member), \
		      #name);
XS_PROF_CALLS(SAME)

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

/*
 * The range profiler: each kernel that a context launches is a range, and its launch returns when
 * the kernel has run (auto range, kernel replay). A graph's kernels are in none, and nothing is
 * told of them meanwhile; of kernels that are ranges no times are. Who starts or stops it ends all
 * captures of streams. So does CUPTI 13.0 on a GPU.
 */
#include "counters.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

struct profiler {
	struct profiler *next;
	CUcontext context;
	bool started;
	struct su_image *image; /* the client's, once it is configured */
	size_t most, done, dropped;
	struct su_counts *of; /* `most` of them */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and the counts */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;	 /* one launch at a time */
static struct profiler *profilers;
static _Atomic unsigned started;
static __thread bool ranging;	 /* this thread's launch holds `one` */
static struct su_counts current; /* of the range that goes on */

static struct profiler *profiler_of(CUcontext context)
{
	struct profiler *at = profilers;

	while (at && at->context != context)
		at = at->next;
	return at;
}

bool su_ranging(void)
{
	return atomic_load(&started);
}

bool su_ranged(const struct sc_context *context)
{
	const struct profiler *profiler;
	bool ret;

	if (!su_ranging())
		return false;
	(void)pthread_mutex_lock(&lock);
	profiler = profiler_of((CUcontext)context);
	ret = profiler && profiler->started;
	(void)pthread_mutex_unlock(&lock);
	return ret;
}

/* ---- what runs ---- */

static bool is_launch(const struct sc_call *call)
{
	return call->domain == SC_DRIVER && (!strncmp(call->symbol, "cuLaunchKernel", 14) ||
					     !strncmp(call->symbol, "cuLaunchCooperative", 19));
}

void su_ranges_begin(const struct sc_call *call)
{
	struct profiler *profiler;

	if (!su_ranging() || !is_launch(call))
		return;
	(void)pthread_mutex_lock(&one);
	(void)pthread_mutex_lock(&lock);
	profiler = profiler_of((CUcontext)sc_current());
	ranging = profiler && profiler->started;
	memset(&current, 0, sizeof(current));
	(void)pthread_mutex_unlock(&lock);
	if (!ranging)
		(void)pthread_mutex_unlock(&one);
}

void su_ranges_executed(const struct sc_cmd *cmd)
{
	struct profiler *profiler;

	if (cmd->kind != SC_KERNEL || !su_ranging())
		return;
	(void)pthread_mutex_lock(&lock);
	profiler = profiler_of((CUcontext)cmd->context);
	if (profiler && profiler->started && !cmd->graph_id) {
		current.ns += cmd->end - cmd->start;
		current.blocks += (uint64_t)cmd->grid[0] * cmd->grid[1] * cmd->grid[2];
		current.threads += (uint64_t)cmd->block[0] * cmd->block[1] * cmd->block[2];
		current.kernels++;
	}
	(void)pthread_mutex_unlock(&lock);
}

/* another thread may have reset the device; where launches are executed, they are done */
static void drain(struct sc_context *context)
{
	for (struct sc_stream *stream = context && !sc_config.sync ? context->streams : NULL;
	     stream; stream = stream->next)
		(void)sc_stream_drain(stream);
}

void su_ranges_end(const struct sc_call *call)
{
	struct sc_context *context = sc_current();
	struct profiler *profiler;

	(void)call;
	if (!ranging)
		return;
	ranging = false;
	drain(context);
	(void)pthread_mutex_lock(&lock);
	profiler = profiler_of((CUcontext)context);
	if (profiler && current.kernels) {
		if (profiler->done < profiler->most)
			profiler->of[profiler->done++] = current;
		else
			profiler->dropped++;
	}
	(void)pthread_mutex_unlock(&lock);
	(void)pthread_mutex_unlock(&one);
}

/* ---- CUPTI's functions ---- */

static struct profiler *of_object(CUpti_RangeProfiler_Object *object)
{
	struct profiler *at = profilers;

	while (at && (CUpti_RangeProfiler_Object *)at != object)
		at = at->next;
	return at;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
	struct profiler *profiler;

	TAKES(p, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
	su_makes_threads();
	(void)pthread_mutex_lock(&lock);
	profiler = p->ctx && !profiler_of(p->ctx) ? calloc(1, sizeof(*profiler)) : NULL;
	if (profiler) {
		profiler->context = p->ctx;
		profiler->next = profilers;
		profilers = profiler;
		p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)profiler;
	}
	(void)pthread_mutex_unlock(&lock);
	return profiler ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
	struct profiler **link = &profilers, *profiler;

	TAKES(p, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
	(void)pthread_mutex_lock(&lock);
	profiler = of_object(p->pRangeProfilerObject);
	while (*link && *link != profiler)
		link = &(*link)->next;
	if (profiler) {
		*link = profiler->next;
		atomic_fetch_sub(&started, profiler->started);
		free(profiler->of);
		free(profiler);
	}
	(void)pthread_mutex_unlock(&lock);
	return profiler ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
	TAKES(p, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
	if (!of_object(p->pRangeProfilerObject) || p->maxNumRangeTreeNodes < p->maxNumOfRanges ||
	    !p->numMetrics)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->numMetrics; i++)
		if (su_metric_named(p->pMetricNames[i]) < 0)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
	p->counterDataSize = sizeof(struct su_image) + p->maxNumOfRanges * sizeof(struct su_counts);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
	CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
	struct su_image *image;

	TAKES(p, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
	image = (struct su_image *)p->pCounterData;
	if (!of_object(p->pRangeProfilerObject) || !image || p->counterDataSize < sizeof(*image))
		return CUPTI_ERROR_INVALID_PARAMETER;
	image->magic = SU_IMAGE_MAGIC;
	image->ranges = 0;
	image->most = (p->counterDataSize - sizeof(*image)) / sizeof(struct su_counts);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
	const struct su_config *config;
	struct profiler *profiler;
	struct su_image *image;

	TAKES(p, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
	profiler = of_object(p->pRangeProfilerObject);
	config = (const struct su_config *)p->pConfig;
	image = (struct su_image *)p->pCounterDataImage;
	if (!profiler || !config || p->configSize < sizeof(*config) ||
	    config->magic != SU_CONFIG_MAGIC || !config->count || !image ||
	    image->magic != SU_IMAGE_MAGIC || p->range != CUPTI_AutoRange ||
	    p->replayMode != CUPTI_KernelReplay || p->numNestingLevels != 1 ||
	    !p->maxRangesPerPass || p->maxRangesPerPass > image->most)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (profiler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	free(profiler->of);
	profiler->of = calloc(p->maxRangesPerPass, sizeof(*profiler->of));
	profiler->most = p->maxRangesPerPass;
	profiler->done = profiler->dropped = 0;
	profiler->image = image;
	return CUPTI_SUCCESS;
}

static CUptiResult start_or_stop(CUpti_RangeProfiler_Object *object, bool start)
{
	CUptiResult ret = CUPTI_ERROR_INVALID_OPERATION;
	struct profiler *profiler;

	(void)pthread_mutex_lock(&one); /* the launch that goes on ends first */
	drain(sc_current());		/* and so do graphs */
	(void)pthread_mutex_lock(&lock);
	profiler = of_object(object);
	if (profiler && profiler->image && profiler->started != start) {
		profiler->started = start;
		atomic_fetch_add(&started, start ? 1u : -1u);
		atomic_fetch_add(&sc_captures_broken, 1);
		ret = CUPTI_SUCCESS;
	}
	(void)pthread_mutex_unlock(&lock);
	(void)pthread_mutex_unlock(&one);
	su_refresh();
	return ret;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
	TAKES(p, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
	return start_or_stop(p->pRangeProfilerObject, true);
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
	TAKES(p, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
	p->isAllPassSubmitted = 1;
	return start_or_stop(p->pRangeProfilerObject, false);
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
	struct profiler *profiler;
	struct su_image *image;

	TAKES(p, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
	profiler = of_object(p->pRangeProfilerObject);
	if (!profiler || profiler->started || !profiler->image)
		return CUPTI_ERROR_INVALID_OPERATION;
	image = profiler->image;
	for (size_t i = 0; i < profiler->done && image->ranges < image->most; i++)
		image->of[image->ranges++] = profiler->of[i];
	p->numOfRangeDropped = profiler->dropped;
	profiler->done = profiler->dropped = 0;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
	const struct su_image *image;

	TAKES(p, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);
	image = (const struct su_image *)p->pCounterDataImage;
	if (!image || image->magic != SU_IMAGE_MAGIC)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->numTotalRanges = image->ranges;
	return CUPTI_SUCCESS;
}

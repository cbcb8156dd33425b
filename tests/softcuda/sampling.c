/*
 * PC sampling: of each kernel that runs, places are found a number of times that follows from its
 * grid alone, so that the sums do not depend on when they are asked for.
 */
#include "counters.h"
#include "settings.h"

#include <cupti_pcsampling.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 8, REASONS = 7, CONTEXTS = 16, FUNCTIONS = 64 };

static const char *const reasons[REASONS] = {
	"smsp__pcsamp_sample_buffer_full",
	"smsp__pcsamp_warps_issue_stalled_selected",
	"smsp__pcsamp_warps_issue_stalled_long_scoreboard",
	"smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
	"smsp__pcsamp_warps_issue_stalled_short_scoreboard",
	"smsp__pcsamp_warps_issue_stalled_wait",
	"smsp__pcsamp_warps_issue_stalled_math_pipe_throttle",
};

struct function {
	char *name;
	uint32_t samples[PLACES][REASONS];
};

static struct sampled {
	CUcontext context;
	bool running, controlled, wanted[REASONS];
	CUpti_PCSamplingData *left;
	struct function functions[FUNCTIONS];
} contexts[CONTEXTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned enabled;

void su_makes_threads(void)
{
	sigset_t blocked;

	(void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (!sigismember(&blocked, SIGUSR1) || !sigismember(&blocked, SIGALRM))
		sc_log_note("a thread of CUPTI gets the program's signals");
}

bool su_sampling(void)
{
	return atomic_load(&enabled);
}

static struct sampled *of(CUcontext context)
{
	for (unsigned i = 0; context && i < CONTEXTS; i++)
		if (contexts[i].context == context)
			return &contexts[i];
	return NULL;
}

static struct function *function_of(struct sampled *at, const char *name)
{
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct function *function = &at->functions[i];

		if (!function->name)
			function->name = strdup(name);
		if (!strcmp(function->name, name))
			return function;
	}
	return NULL;
}

/* How often a kernel of so many blocks is found at a place for a reason. */
static uint32_t found(uint64_t blocks, unsigned place, unsigned reason)
{
	return (uint32_t)((place * 7 + reason * 3) % 5 * blocks);
}

void su_sampling_executed(const struct sc_cmd *cmd)
{
	struct function *function = NULL;
	struct sampled *at;

	if (cmd->kind != SC_KERNEL || !su_sampling())
		return;
	(void)pthread_mutex_lock(&lock);
	at = of((CUcontext)cmd->context);
	if (at && at->running)
		function = function_of(at, cmd->function->name);
	for (unsigned i = 0; function && i < PLACES; i++)
		for (unsigned k = 0; k < REASONS; k++)
			function->samples[i][k] +=
				found((uint64_t)cmd->grid[0] * cmd->grid[1] * cmd->grid[2], i, k);
	(void)pthread_mutex_unlock(&lock);
}

/* ---- CUPTI's functions ---- */

#define SAMPLES(params, last)                                                              \
	do {                                                                               \
		SU_BEGIN();                                                                \
		if (!(params) || (params)->pPriv ||                                        \
		    (params)->size < (size_t)((char *)&(params)->last - (char *)(params))) \
			return CUPTI_ERROR_INVALID_PARAMETER;                              \
	} while (0)

CUptiResult cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams *p)
{
	CUptiResult ret = CUPTI_ERROR_INVALID_OPERATION;

	SAMPLES(p, ctx);
	su_makes_threads();
	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; p->ctx && !of(p->ctx) && i < CONTEXTS; i++) {
		if (contexts[i].context)
			continue;
		memset(&contexts[i], 0, sizeof(contexts[i]));
		contexts[i].context = p->ctx;
		contexts[i].running = true;
		memset(contexts[i].wanted, true, sizeof(contexts[i].wanted));
		atomic_fetch_add(&enabled, 1);
		ret = CUPTI_SUCCESS;
	}
	(void)pthread_mutex_unlock(&lock);
	su_refresh();
	return ret;
}

CUptiResult cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *p)
{
	struct sampled *at;

	SAMPLES(p, pPCSamplingConfigurationInfo);
	at = of(p->ctx);
	if (!at)
		return CUPTI_ERROR_INVALID_OPERATION;
	for (size_t i = 0; i < p->numAttributes; i++) {
		CUpti_PCSamplingConfigurationInfo *one = &p->pPCSamplingConfigurationInfo[i];

		one->attributeStatus = CUPTI_SUCCESS;
		switch ((int)one->attributeType) {
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD:
			if (one->attributeData.samplingPeriodData.samplingPeriod < 5 ||
			    one->attributeData.samplingPeriodData.samplingPeriod > 31)
				return CUPTI_ERROR_INVALID_PARAMETER;
			sc_log_note("sampling period %u",
				    one->attributeData.samplingPeriodData.samplingPeriod);
			break;
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON:
			memset(at->wanted, false, sizeof(at->wanted));
			for (size_t k = 0; k < one->attributeData.stallReasonData.stallReasonCount;
			     k++)
				at->wanted[one->attributeData.stallReasonData.pStallReasonIndex[k] %
					   REASONS] = true;
			break;
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL:
			at->controlled = one->attributeData.enableStartStopControlData
						 .enableStartStopControl;
			at->running = !at->controlled;
			break;
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER:
			at->left = one->attributeData.samplingDataBufferData.samplingDataBuffer;
			break;
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE:
			break;
		default:
			one->attributeStatus = CUPTI_ERROR_INVALID_PARAMETER;
			return CUPTI_ERROR_INVALID_PARAMETER;
		}
	}
	return CUPTI_SUCCESS;
}

static CUptiResult run(CUcontext context, bool on)
{
	struct sampled *at = of(context);

	if (!at || !at->controlled || at->running == on)
		return CUPTI_ERROR_INVALID_OPERATION;
	if (!on) /* what was put on the device before belongs to it */
		for (struct sc_stream *stream = ((struct sc_context *)context)->streams; stream;
		     stream = stream->next)
			(void)sc_stream_drain(stream);
	at->running = on;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingStart(CUpti_PCSamplingStartParams *p)
{
	SAMPLES(p, ctx);
	return run(p->ctx, true);
}

CUptiResult cuptiPCSamplingStop(CUpti_PCSamplingStopParams *p)
{
	SAMPLES(p, ctx);
	return run(p->ctx, false);
}

CUptiResult cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams *p)
{
	SAMPLES(p, numStallReasons);
	*p->numStallReasons = REASONS;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams *p)
{
	SAMPLES(p, stallReasons);
	for (size_t i = 0; i < p->numStallReasons && i < REASONS; i++) {
		p->stallReasonIndex[i] = (uint32_t)(REASONS - 1 - i);
		(void)strncpy(p->stallReasons[i], reasons[REASONS - 1 - i],
			      CUPTI_STALL_REASON_STRING_SIZE);
	}
	return CUPTI_SUCCESS;
}

/* With the lock. True: the place has samples, which are moved there. */
static bool move(const struct sampled *at, struct function *function, unsigned place,
		 CUpti_PCSamplingPCData *to)
{
	to->stallReasonCount = 0;
	for (unsigned k = 0; k < REASONS; k++) {
		if (!at->wanted[k] || !function->samples[place][k])
			continue;
		to->stallReason[to->stallReasonCount++] =
			(CUpti_PCSamplingStallReason){ .pcSamplingStallReasonIndex = k,
						       .samples = function->samples[place][k] };
		function->samples[place][k] = 0;
	}
	to->pcOffset = place * 16;
	to->cubinCrc = 0x5cb1;
	to->functionName = function->name;
	to->correlationId = 0;
	return to->stallReasonCount;
}

static void fill(struct sampled *at, CUpti_PCSamplingData *data)
{
	size_t count = 0, left = 0;

	for (unsigned i = 0; i < FUNCTIONS && at->functions[i].name; i++) {
		for (unsigned place = 0; place < PLACES; place++) {
			uint64_t some = 0;

			for (unsigned k = 0; k < REASONS; k++)
				some += at->wanted[k] * at->functions[i].samples[place][k];
			if (!some)
				continue;
			data->totalSamples += some;
			if (count == data->collectNumPcs)
				left++;
			else
				count += move(at, &at->functions[i], place, &data->pPcData[count]);
		}
	}
	data->totalNumPcs = count;
	data->remainingNumPcs = left;
	data->droppedSamples = soft_number("SOFTCUDA_PC_DROPPED", 0, 0, 1000000);
	data->hardwareBufferFull = soft_number("SOFTCUDA_PC_FULL", 0, 0, 1) != 0;
}

CUptiResult cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams *p)
{
	CUpti_PCSamplingData *data;
	struct sampled *at;

	SAMPLES(p, pcSamplingData);
	data = p->pcSamplingData;
	at = of(p->ctx);
	if (!at || !data || !data->pPcData)
		return at ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_ERROR_INVALID_OPERATION;
	(void)pthread_mutex_lock(&lock);
	fill(at, data);
	(void)pthread_mutex_unlock(&lock);
	return data->hardwareBufferFull ? CUPTI_ERROR_OUT_OF_MEMORY : CUPTI_SUCCESS;
}

CUptiResult cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams *p)
{
	struct sampled *at;

	SAMPLES(p, ctx);
	(void)pthread_mutex_lock(&lock);
	at = of(p->ctx);
	if (at) {
		if (at->left)
			fill(at, at->left);
		for (unsigned i = 0; i < FUNCTIONS; i++)
			at->functions[i].name = NULL; /* its readers may have it */
		at->context = NULL;
		atomic_fetch_sub(&enabled, 1);
	}
	(void)pthread_mutex_unlock(&lock);
	su_refresh();
	return at ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

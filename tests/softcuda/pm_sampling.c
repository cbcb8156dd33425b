/*
 * PM sampling: a sample for each period of a device's time, made when it is decoded, of the kernels
 * that ran then in whichever process. A period is told once no kernel that began in it is still
 * running, so that what a sample says is the whole truth.
 */
#include "counters.h"

#include <cupti_pmsampling.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "history.h"
#include "settings.h"

enum { AVAILABILITY = 64 };

struct sampler {
	bool enabled, configured, started;
	uint64_t period, from; /* ns; where the next sample starts */
	uint64_t first;	       /* in the history */
	uint64_t told;
	bool full; /* the device's buffer: nothing more is sampled */
};
static struct sampler samplers[SC_DEVICES_MAX];

static struct {
	bool read;
	uint64_t room, late, drop, cycles, clock, full;
} settings;

static void read_settings(void)
{
	if (settings.read)
		return;
	settings.read = true;
	settings.room = soft_number("SOFTCUDA_PM_ROOM", 0, 0, UINT32_MAX);
	settings.late = soft_number("SOFTCUDA_PM_LATE_NS", 0, 0, UINT32_MAX);
	settings.drop = soft_number("SOFTCUDA_PM_DROP", 0, 0, UINT32_MAX);
	settings.cycles = soft_number("SOFTCUDA_PM_CYCLES", 0, 0, 1);
	settings.clock = soft_number("SOFTCUDA_PM_CLOCK", 0, 0, 2);
	settings.full = soft_number("SOFTCUDA_PM_FULL", 0, 0, UINT32_MAX);
}

static struct sampler *of(CUpti_PmSampling_Object *object)
{
	struct sampler *at = (struct sampler *)object;

	return at >= samplers && at < samplers + SC_DEVICES_MAX && at->enabled ? at : NULL;
}

static uint32_t number_of(const struct sampler *sampler)
{
	return (uint32_t)(sampler - samplers);
}

/* Times as this GPU tells them: as CUPTI's, or of CLOCK_REALTIME, or of a clock that nobody has. */
static uint64_t told_time(uint64_t at)
{
	struct timespec now;

	if (!settings.clock)
		return at;
	clock_gettime(CLOCK_REALTIME, &now);
	if (settings.clock == 2)
		return at / 2;
	return at + ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) - sc_now();
}

/* ---- samples ---- */

static void make_sample(struct sampler *sampler, struct su_counts *ret)
{
	uint64_t start = sampler->from, end = start + sampler->period;
	struct sc_past past;

	memset(ret, 0, sizeof(*ret));
	ret->start = start;
	ret->period = sampler->period;
	for (uint64_t i = sampler->first; i < sc_history_count(); i++) {
		uint64_t from, to;

		if (!sc_history_past(i, &past) || past.device != number_of(sampler))
			continue;
		from = past.start > start ? past.start : start;
		to = past.end < end ? past.end : end;
		ret->ns += to > from ? to - from : 0;
		if (past.end > start && past.end <= end) {
			ret->kernels++;
			ret->blocks += past.blocks;
			ret->threads += past.threads;
		}
	}
	if (ret->ns > sampler->period)
		ret->ns = sampler->period; /* several at once */
	sampler->from = end;
	while (sc_history_past(sampler->first, &past) && past.end <= sampler->from)
		sampler->first++;
}

CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *p)
{
	struct sampler *sampler;
	struct su_image *image;
	uint64_t until, left;

	TAKES(p, CUpti_PmSampling_DecodeData_Params, overflow);
	sampler = of(p->pPmSamplingObject);
	image = (struct su_image *)p->pCounterDataImage;
	if (!sampler || !sampler->configured || !image || image->magic != SU_IMAGE_MAGIC)
		return CUPTI_ERROR_INVALID_OPERATION;
	p->overflow = 0;
	p->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
	until = sc_history_known(number_of(sampler));
	until -= settings.late < until ? settings.late : until;
	left = !sampler->full && sampler->started && until > sampler->from
		       ? (until - sampler->from) / sampler->period
		       : 0;
	if (sampler->full || (settings.room && left > settings.room)) {
		left = sampler->full ? 0 : settings.room;
		sampler->full = true;
		p->overflow = 1;
	}
	for (; left; left--) {
		struct su_counts counts;

		if (image->ranges >= image->most ||
		    (settings.full && image->ranges >= settings.full)) {
			p->decodeStopReason =
				CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
			break;
		}
		make_sample(sampler, &counts);
		if (!settings.drop || ++sampler->told % settings.drop)
			image->of[image->ranges++] = counts;
	}
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
	const struct su_image *image;

	TAKES(p, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);
	image = (const struct su_image *)p->pCounterDataImage;
	if (!image || image->magic != SU_IMAGE_MAGIC)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->numTotalSamples = image->most;
	p->numPopulatedSamples = p->numCompletedSamples = image->ranges;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingCounterDataGetSampleInfo(
	CUpti_PmSampling_CounterData_GetSampleInfo_Params *p)
{
	const struct su_image *image;

	TAKES(p, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);
	image = (const struct su_image *)p->pCounterDataImage;
	if (!of(p->pPmSamplingObject) || !image || image->magic != SU_IMAGE_MAGIC ||
	    p->sampleIndex >= image->ranges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->startTimestamp = told_time(image->of[p->sampleIndex].start);
	p->endTimestamp = p->startTimestamp + image->of[p->sampleIndex].period;
	return CUPTI_SUCCESS;
}

/* ---- its life ---- */

CUptiResult cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *p)
{
	TAKES(p, CUpti_PmSampling_GetCounterAvailability_Params, pCounterAvailabilityImage);
	if (p->deviceIndex >= sc_config.devices)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (p->pCounterAvailabilityImage && p->counterAvailabilityImageSize < AVAILABILITY)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (p->pCounterAvailabilityImage)
		memset(p->pCounterAvailabilityImage, 1, AVAILABILITY);
	p->counterAvailabilityImageSize = AVAILABILITY;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *p)
{
	struct sampler *sampler;

	TAKES(p, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
	read_settings();
	if (p->deviceIndex >= sc_config.devices)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sampler = &samplers[p->deviceIndex];
	if (sampler->enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	*sampler = (struct sampler){ .enabled = true };
	p->pPmSamplingObject = (CUpti_PmSampling_Object *)sampler;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *p)
{
	TAKES(p, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
	if (!of(p->pPmSamplingObject))
		return CUPTI_ERROR_INVALID_PARAMETER;
	of(p->pPmSamplingObject)->enabled = false;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *p)
{
	const struct su_config *config;
	struct sampler *sampler;

	TAKES(p, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
	sampler = of(p->pPmSamplingObject);
	config = (const struct su_config *)p->pConfig;
	if (!sampler || !config || p->configSize < sizeof(*config) ||
	    config->magic != SU_CONFIG_MAGIC || !config->count || !p->hardwareBufferSize ||
	    !p->samplingInterval ||
	    p->hwBufferAppendMode != CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (su_passes(config) > 1)
		return CUPTI_ERROR_NOT_SUPPORTED;
	if (p->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL && settings.cycles)
		return CUPTI_ERROR_NOT_SUPPORTED;
	/* cycles are of 1.5 GHz */
	sampler->period = p->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
				  ? p->samplingInterval
				  : p->samplingInterval * 2 / 3;
	sampler->configured = true;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
	TAKES(p, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);
	if (!of(p->pPmSamplingObject) || !p->numMetrics || !p->maxSamples)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->numMetrics; i++)
		if (su_metric_named(p->pMetricNames[i]) < 0)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
	p->counterDataSize = sizeof(struct su_image) + p->maxSamples * sizeof(struct su_counts);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingCounterDataImageInitialize(
	CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
	struct su_image *image;

	TAKES(p, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);
	image = (struct su_image *)p->pCounterData;
	if (!of(p->pPmSamplingObject) || !image || p->counterDataSize < sizeof(*image))
		return CUPTI_ERROR_INVALID_PARAMETER;
	image->magic = SU_IMAGE_MAGIC;
	image->ranges = 0;
	image->most = (p->counterDataSize - sizeof(*image)) / sizeof(struct su_counts);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *p)
{
	struct sampler *sampler;

	TAKES(p, CUpti_PmSampling_Start_Params, pPmSamplingObject);
	sampler = of(p->pPmSamplingObject);
	if (!sampler || !sampler->configured || sampler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	sampler->started = true;
	sampler->full = false;
	sampler->from = sc_now();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *p)
{
	struct sampler *sampler;

	TAKES(p, CUpti_PmSampling_Stop_Params, pPmSamplingObject);
	sampler = of(p->pPmSamplingObject);
	if (!sampler || !sampler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	sampler->started = false;
	return CUPTI_SUCCESS;
}

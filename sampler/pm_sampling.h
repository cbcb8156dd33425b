/*
 * xstrace-metrics: what CUDA's devices count by time, by CUPTI's PM sampling.
 */
#ifndef XS_PM_SAMPLING_H
#define XS_PM_SAMPLING_H

#include "streamer.h"

/* As the functions of streamer.h. */
uint32_t xs_pm_open(const struct xs_wish *wish, const struct xs_library *library);
bool xs_pm_read(void);
void xs_pm_close(void);

#endif

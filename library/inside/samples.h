/*
 * What a sampling process tells of devices (struct xs_library says what each does).
 */
#ifndef XS_SAMPLES_H
#define XS_SAMPLES_H

#include "library.h"

uint32_t xs_samples_device(const struct xs_own_device *device);
uint32_t xs_samples_columns(const char *text);
void xs_samples_clock(uint32_t number, bool (*read)(void *data, uint64_t *ret), void *data);
void xs_samples_write(const struct xs_own_sample *sample);
void xs_samples_looked(uint32_t events, const uint64_t *values);

#endif

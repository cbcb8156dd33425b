/*
 * The device's clock. Real: CLOCK_MONOTONIC_RAW at the device's frequency, faster or slower by
 * SOFTGPU_DRIFT_PPM. It counts from the host's boot, so that all processes see one clock, or from
 * SOFTGPU_FIRST_TICK at the start of this process's driver. The virtual clock counts only the
 * durations of what is executed, from the first tick on.
 */
#include "driver.h"

#include <stdlib.h>
#include <time.h>

static uint64_t anchor_ns, anchor_tick;
static uint64_t rate; /* ticks per ns, times 2^60 */

uint64_t sg_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sg_ticks_at(uint64_t ns)
{
	return anchor_tick + (uint64_t)(((unsigned __int128)(ns - anchor_ns) * rate) >> 60);
}

/*
 * Of a duration that is given: the frequency that the device tells, whatever its clock really does.
 * At least one.
 */
uint64_t sg_ticks_of(uint64_t duration_ns)
{
	uint64_t ticks =
		(uint64_t)((unsigned __int128)duration_ns * sg_config.frequency / 1000000000u);

	return ticks ? ticks : 1;
}

uint64_t sg_ns_of(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000000u / sg_config.frequency);
}

static _Atomic uint64_t seen;

uint64_t sg_virtual_now(void)
{
	return atomic_load(&seen);
}

void sg_virtual_seen(uint64_t tick)
{
	uint64_t now = atomic_load(&seen);

	while (now < tick && !atomic_compare_exchange_weak(&seen, &now, tick))
		;
}

uint64_t sg_device_ticks(void)
{
	return sg_config.virtual_clock ? sg_virtual_now() : sg_ticks_at(sg_now_ns());
}

/* A given duration is really spent: the device's clock has come to `tick` when this returns. */
void sg_wait_for_tick(uint64_t tick)
{
	for (uint64_t now; (now = sg_ticks_at(sg_now_ns())) < tick;) {
		uint64_t left = sg_ns_of(tick - now);

		if (left > 200000) {
			struct timespec pause = { (time_t)((left - 100000) / 1000000000u),
						  (long)((left - 100000) % 1000000000u) };

			(void)nanosleep(&pause, NULL);
		}
	}
}

void sg_clock_start(int64_t ppm, const char *first_tick)
{
	uint64_t now = sg_now_ns();
	unsigned __int128 ticks = (unsigned __int128)sg_config.frequency << 60;

	rate = (uint64_t)(ticks / 1000000000u * (unsigned __int128)(1000000 + ppm) / 1000000u);
	if (first_tick && *first_tick) {
		anchor_ns = now;
		anchor_tick = strtoull(first_tick, NULL, 0);
	} else if (ppm) {
		/* drifting, but at the right time when it starts */
		anchor_ns = now;
		anchor_tick =
			(uint64_t)((unsigned __int128)now * sg_config.frequency / 1000000000u);
	}
	sg_virtual_seen(first_tick ? anchor_tick : 0);
}

/* The settings: environment variables SOFTCUDA_*, read when the driver is loaded and told in
 * README.md. */
#include "history.h"
#include "settings.h"

#include <stdlib.h>

struct sc_config sc_config;

__attribute__((constructor)) void sc_config_start(void)
{
	const char *faults = getenv("SOFTCUDA_FAULT");

	sc_config.devices = (unsigned)soft_number("SOFTCUDA_DEVICES", 1, 0, SC_DEVICES_MAX);
	sc_config.first = (unsigned)soft_number("SOFTCUDA_FIRST", 0, 0, SC_DEVICES_MAX - 1);
	sc_config.mig = (unsigned)soft_number("SOFTCUDA_MIG", 0, 0, 7);
	sc_config.sync = soft_number("SOFTCUDA_SYNC", 0, 0, 1);
	sc_config.asks_kernel = soft_number("SOFTCUDA_ASKS_KERNEL", 0, 0, 1);
	sc_config.tells_within = soft_number("SOFTCUDA_TELLS_WITHIN", 0, 0, 1);
	sc_config.no_driver = soft_number("SOFTCUDA_NO_DRIVER", 0, 0, 1);
	sc_config.insufficient_driver = soft_number("SOFTCUDA_OLD_DRIVER", 0, 0, 1);
	sc_config.driver_version = (int)soft_number("SOFTCUDA_DRIVER_VERSION", 13050, 10000, 99999);
	sc_config.cupti_version = (int)soft_number("SOFTCUDA_CUPTI_VERSION", 0, 0, 999999);
	sc_config.memory = soft_number("SOFTCUDA_MEMORY", 16ull << 30, 1 << 20, 1ull << 40);
	sc_config.lost_after = soft_number("SOFTCUDA_LOST_AFTER", 0, 0, UINT64_MAX);
	sc_config.late_ms = (unsigned)soft_number("SOFTCUDA_LATE_MS", 0, 0, 60000);
	sc_config.flush_ms = (unsigned)soft_number("SOFTCUDA_FLUSH_MS", 0, 0, 60000);
	sc_config.out_of_order = (unsigned)soft_number("SOFTCUDA_OUT_OF_ORDER", 0, 0, 1000);
	sc_config.drop_every = (unsigned)soft_number("SOFTCUDA_DROP_EVERY", 0, 0, UINT32_MAX);
	sc_config.cut_every = (unsigned)soft_number("SOFTCUDA_CUT_EVERY", 0, 0, UINT32_MAX);
	sc_config.durations = soft_durations("SOFTCUDA_DURATION_NS");
	if (faults && *faults && !sc_faults_start(faults))
		soft_bad("SOFTCUDA_FAULT", faults, "not a list of FUNCTION[:N]:RESULT");
	sc_log_start(getenv("SOFTCUDA_LOG"));
	sc_history_open(getenv("SOFTCUDA_SHM"));
}

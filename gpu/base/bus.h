/*
 * What tells devices of one name apart, and what they can do: scopes of their interned names.
 */
#ifndef XS_BUS_H
#define XS_BUS_H

#include <stdint.h>

/* A property as Kineto calls it; value XS_FACT_UNKNOWN: it is left out. */
#define XS_FACT_UNKNOWN UINT64_MAX
struct xs_device_fact {
	const char *key;
	uint64_t value;
};

/*
 * The interned text of a device's properties, members of a JSON object; 0: none is known. It is the
 * scope of where the device sits, or of its name where that is not known.
 */
uint32_t xs_device_facts(const struct xs_device_fact *facts, uint32_t count);
/*
 * The interned text of domain, bus, device and function on the PCI bus, as unitrace writes it:
 * "0:3a:0:0". `scope`: the properties.
 */
uint32_t xs_bus_name(const uint32_t address[4], uint32_t scope);

#endif

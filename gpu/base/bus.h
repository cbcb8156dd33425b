/*
 * Where a device sits on the PCI bus: the scope of its interned name, so that two of one name are
 * told apart.
 */
#ifndef XS_BUS_H
#define XS_BUS_H

#include <stdint.h>

/* The interned text of domain, bus, device and function, as unitrace writes it: "0:3a:0:0". */
uint32_t xs_bus_name(const uint32_t address[4]);

#endif

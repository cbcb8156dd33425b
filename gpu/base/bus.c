#include "bus.h"

#include "collector.h"

uint32_t xs_bus_name(const uint32_t address[4])
{
	static const char digits[] = "0123456789abcdef";
	char text[4 * 9], *o = text;

	for (int i = 0; i < 4; i++) {
		int shift = 28;

		while (shift && !(address[i] >> shift))
			shift -= 4;
		for (; shift >= 0; shift -= 4)
			*o++ = digits[address[i] >> shift & 15];
		*o++ = ':';
	}
	o[-1] = '\0';
	return xs_name(text, 0);
}

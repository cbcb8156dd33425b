#include "bus.h"

#include <string.h>

#include "collector.h"
#include "lock.h"

#define FACTS_MAX  16u
#define KEY_MAX	   40u
#define NUMBER_MAX 20u

uint32_t xs_bus_name(const uint32_t address[4], uint32_t scope)
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
	return xs_name(text, scope);
}

static char *put_number(char *o, uint64_t value)
{
	char digits[NUMBER_MAX], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	memcpy(o, at, (size_t)(digits + sizeof(digits) - at));
	return o + (digits + sizeof(digits) - at);
}

uint32_t xs_device_facts(const struct xs_device_fact *facts, uint32_t count)
{
	static const char before[] = ",\"", between[] = "\": ";
	static char text[FACTS_MAX * (KEY_MAX + NUMBER_MAX + sizeof(before) + sizeof(between))];
	static _Atomic uint32_t lock;
	uint32_t name = 0;
	char *o = text;

	xs_lock_robust(&lock);
	for (uint32_t i = 0; i < count && i < FACTS_MAX; i++) {
		size_t length = strnlen(facts[i].key, KEY_MAX);

		if (facts[i].value == XS_FACT_UNKNOWN)
			continue;
		memcpy(o, before, 2);
		memcpy(o + 2, facts[i].key, length);
		memcpy(o + 2 + length, between, 3);
		o = put_number(o + 5 + length, facts[i].value);
	}
	/* without the first comma */
	if (o > text)
		name = xs_name_parts(&(struct xs_part){ text + 1, (uint32_t)(o - text - 1) }, 1, 0);
	xs_unlock(&lock);
	return name;
}

#include "places.h"

#include <stdio.h>
#include <stdlib.h>

#include "place.h"
#include "symbols.h"

char *xs_place_text(struct xs_run *run, const char *text, uint32_t *length)
{
	const struct xs_symbol *symbol;
	uint64_t frame;
	char *shown;
	int n;

	(void)xs_place_marked(text, *length, &frame);
	symbol = xs_symbol_of(run, 0, frame);
	n = asprintf(&shown, "%.*s %.*s+0x%llx", (int)(*length - XS_PLACE_MARK_LENGTH),
		     text + XS_PLACE_MARK_LENGTH, (int)symbol->length, symbol->name,
		     (unsigned long long)symbol->offset);
	if (n < 0)
		return NULL;
	*length = (uint32_t)n;
	return shown;
}

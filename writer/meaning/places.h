/*
 * Names that end with a place in the code (common/place.h).
 */
#ifndef XS_PLACES_H
#define XS_PLACES_H

#include <stdint.h>

struct xs_run;

/*
 * The text with the place's function instead of the mark, as malloc() gives it; NULL: no memory.
 * *length: of the text, then of what is returned.
 */
char *xs_place_text(struct xs_run *run, const char *text, uint32_t *length);

#endif

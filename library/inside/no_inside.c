/*
 * A libxstrace.so without ITT's collector has no ranges to offer.
 */
#include "library.h"

#include "companion.h"

__attribute__((visibility("default"))) const struct xs_library *xs_companion_library(void)
{
	return NULL;
}

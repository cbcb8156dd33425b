/*
 * Any bytes become the inside of a JSON string, in UTF-8, in at most six times the room.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_check.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	/* of the promised size, so that ASan sees a byte too many */
	char *out = malloc(6 * size + 1);
	char *end;
	size_t at;

	if (!out)
		return 0;
	end = xs_json_escape(out, (const char *)data, size);
	if (end < out || (size_t)(end - out) > 6 * size ||
	    !json_check_string(out, (size_t)(end - out), &at))
		abort();
	/* what needs no change is not changed */
	if (json_check_string((const char *)data, size, &at) && !memchr(data, '\\', size) &&
	    !memchr(data, 0x7f, size) && ((size_t)(end - out) != size || memcmp(out, data, size)))
		abort();
	free(out);
	return 0;
}

#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 16384

void xs_tell(const char *format, ...)
{
	/* there may be little stack (launcher/limits.c) */
	static _Thread_local char line[LINE_MAX_BYTES];
	char *end;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0)
		return;
	if (n >= (int)sizeof(line))
		n = (int)sizeof(line) - 1;
	end = xs_plain(line, line, (size_t)(n ? n - 1 : 0)); /* without its end */
	*end++ = '\n';
	(void)fwrite(line, 1, (size_t)(end - line), stderr);
}

/*
 * Lines that grow: what is told of where threads are.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "where.h"

#define LINES_MAX (8u << 20) /* bytes */

void xs_lines_add(struct xs_lines *lines, const char *format, ...)
{
	va_list args;
	char *grown;
	int n;

	if (lines->room - lines->length < 8192 && lines->room < LINES_MAX) {
		grown = realloc(lines->text, 2 * lines->room + 16384);
		if (!grown)
			return;
		lines->text = grown;
		lines->room = 2 * lines->room + 16384;
	}
	if (lines->room - lines->length < 8192)
		return;
	va_start(args, format);
	n = vsnprintf(lines->text + lines->length, lines->room - lines->length, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < lines->room - lines->length)
		lines->length += (size_t)n;
	else
		lines->text[lines->length] = '\0';
}

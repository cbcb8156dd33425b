/*
 * Texts of the program's making on their way to the drain process.
 */
#include "stacks.h"

void xs_print_text(const char *text, const char *end)
{
	for (; *text; text++)
		putchar((unsigned char)*text < ' ' ? '?' : *text);
	(void)fputs(end, stdout);
}

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

void xs_print_module(struct xs_module *module)
{
	if (module->printed)
		return;
	module->printed = true;
	printf("M %zu %s ", xs_module_number(module), module->build_id[0] ? module->build_id : "-");
	xs_print_text(module->path, "\n");
}

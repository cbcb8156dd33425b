/*
 * Names as C++ writes them: of kernels, and of the functions in call stacks.
 */
#include <stdlib.h>
#include <string.h>

#include "writer.h"

#ifdef XS_HAVE_DEMANGLE
/* of the C++ runtime; NULL: no such name */
char *__cxa_demangle(const char *mangled, char *room, size_t *length, int *status);

#define KEPT 256u
#define LONGEST 4096u /* what a mangled name may stand for grows fast with its length */

static struct entry {
	char *mangled, *plain;
} entries[KEPT];

static const struct entry *look_up(const char *text, size_t length)
{
	static const char prefix[] = "typeinfo name for ";
	uint32_t hash = (uint32_t)length;
	struct entry *entry;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
	entry = &entries[hash % KEPT];
	if (entry->mangled && strlen(entry->mangled) == length && !memcmp(entry->mangled, text, length))
		return entry;
	free(entry->mangled);
	free(entry->plain);
	entry->plain = NULL;
	entry->mangled = strndup(text, length);
	if (!entry->mangled)
		return entry;
	entry->plain = __cxa_demangle(entry->mangled, NULL, NULL, NULL);
	/* SYCL names a kernel by the type of its function object */
	if (entry->plain && !strncmp(entry->plain, prefix, sizeof(prefix) - 1))
		memmove(entry->plain, entry->plain + sizeof(prefix) - 1, strlen(entry->plain) - sizeof(prefix) + 2);
	return entry;
}
#endif

const char *xs_demangle(const char *text, size_t *length)
{
#ifdef XS_HAVE_DEMANGLE
	if (*length > 2 && *length <= LONGEST && text[0] == '_' && text[1] == 'Z' && !memchr(text, '\0', *length)) {
		const struct entry *entry = look_up(text, *length);

		if (entry->plain) {
			*length = strlen(entry->plain);
			return entry->plain;
		}
	}
#endif
	return text;
}

const char *xs_kernel_text(const struct xs_run *run, const struct xs_event *event, size_t *ret_length)
{
	bool function = event->flags & XS_FLAG_FUNCTION;
	const char *text = xs_text_of(run, function ? xs_function_id(event->source, event->name) : event->name, ret_length);

	if (!function && (run->options->demangle || event->source == XS_SOURCE_LEVEL_ZERO))
		return xs_demangle(text, ret_length);
	return text;
}

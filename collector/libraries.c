/* Which libraries are loaded, as the loader's own list says. */
#include <link.h>
#include <string.h>

#include "collector.h"

/* musl, which a program may have, has none. */
#pragma weak _r_debug

/* The list is read without the loader's lock, as at the end of the process nothing comes or goes.
 */
bool xs_has_library(const char *name)
{
	const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;

	for (; map; map = map->l_next) {
		const char *file = map->l_name ? strrchr(map->l_name, '/') : NULL;

		if (file && !strncmp(file + 1, name, strlen(name)))
			return true;
	}
	return false;
}

/*
 * The list of devices: one that two APIs tell of is one.
 */
#include <stdio.h>
#include <string.h>

#include "devices.h"

bool xs_found_uuid(const uint8_t uuid[16])
{
	static const uint8_t none[16];

	return memcmp(uuid, none, sizeof(none)) != 0;
}

struct xs_found *xs_found_entry(struct xs_found_list *list, const uint8_t uuid[16], const char *pci,
				size_t number)
{
	struct xs_found *found;

	for (uint32_t i = 0; i < list->count; i++) {
		found = &list->device[i];
		/* two of one API are two, whatever they say */
		if (*(const int *)((const char *)found + number) < 0 &&
		    ((xs_found_uuid(uuid) && !memcmp(found->uuid, uuid, sizeof(found->uuid))) ||
		     (pci[0] && !strcmp(found->pci, pci))))
			return found;
	}
	if (list->count == XS_FOUND_MAX)
		return NULL;
	found = &list->device[list->count++];
	memset(found, 0, sizeof(*found));
	memcpy(found->uuid, uuid, sizeof(found->uuid));
	(void)snprintf(found->pci, sizeof(found->pci), "%s", pci);
	found->level_zero = found->opencl = found->cuda = -1;
	return found;
}

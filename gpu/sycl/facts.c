/*
 * What an event says of itself: its place in the program, and its metadata, which is a list of
 * pairs (id of a key, id of a value). Ids of values that were seen stand in a table with what they
 * are, so that an event costs a walk over its list and no look-up.
 */
#include <string.h>

#include "sycl.h"
#include "strtab.h"

#define ENTRIES_MAX 64u /* of an event; the runtime has up to 20 */
#define KNOWN	    4096u
#define TEXT_MAX    512u

enum key { KEY_KERNEL, KEY_DEVICE, KEY_QUEUE, KEY_POINTER, KEY_SIZE, KEYS };
static const char *const keys[KEYS] = {
	[KEY_KERNEL] = "kernel_name", [KEY_DEVICE] = "sycl_device_name", [KEY_QUEUE] = "queue_id",
	[KEY_POINTER] = "memory_ptr", [KEY_SIZE] = "memory_size",
};
static uint32_t key_ids[KEYS];

static struct sycl_framework framework;
/* id of a text object << 32 | its interned name */
static _Atomic uint64_t known[KNOWN];
static _Atomic bool is_on;

bool sycl_facts_init(const struct sycl_framework *found)
{
	if (framework.register_string)
		return framework.register_string == found->register_string;
	for (int key = 0; found->register_string && key < KEYS; key++) {
		char *text;

		key_ids[key] = found->register_string(keys[key], &text);
	}
	framework = *found;
	/* pairs with the acquire below: the above is complete */
	atomic_store_explicit(&is_on, framework.lookup_object && framework.register_string,
			      memory_order_release);
	return true;
}

void sycl_facts_off(void)
{
	atomic_store_explicit(&is_on, false, memory_order_release);
}

bool sycl_facts_on(void)
{
	return atomic_load_explicit(&is_on, memory_order_acquire);
}

static uint32_t text_of(int32_t id)
{
	_Atomic uint64_t *place = &known[(uint32_t)id % KNOWN];
	uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
	struct xpti_object object;
	uint32_t name;

	if (__builtin_expect(found >> 32 == (uint32_t)id && found, 1))
		return (uint32_t)found;
	object = framework.lookup_object(id);
	if (!object.data || !object.size)
		return 0;
	name = xs_name_parts(&(struct xs_part){ object.data,
						(uint32_t)strnlen(object.data,
								  object.size < TEXT_MAX
									  ? object.size
									  : TEXT_MAX) },
			     1, 0);
	/* a name that stands for many is no name of this one */
	if (name > XS_STRING_FULL)
		atomic_store_explicit(place, (uint64_t)(uint32_t)id << 32 | name,
				      memory_order_relaxed);
	return name;
}

static uint64_t number_of(int32_t id)
{
	struct xpti_object object = framework.lookup_object(id);
	uint64_t number = 0;

	if (object.data)
		memcpy(&number, object.data, object.size < 8 ? object.size : 8);
	return number;
}

static void take(const struct xpti_entry *entry, struct sycl_facts *facts)
{
	if (entry->key == key_ids[KEY_KERNEL]) {
		facts->kernel = text_of(entry->value);
	} else if (entry->key == key_ids[KEY_DEVICE]) {
		facts->device = text_of(entry->value);
	} else if (entry->key == key_ids[KEY_QUEUE]) {
		facts->has_queue = true;
		facts->queue = number_of(entry->value);
	} else if (entry->key == key_ids[KEY_POINTER]) {
		facts->pointer = number_of(entry->value);
	} else if (entry->key == key_ids[KEY_SIZE]) {
		facts->size = number_of(entry->value);
	}
}

void sycl_facts_of(const struct xpti_event *event, struct sycl_facts *facts)
{
	const struct xpti_entry *entry;
	size_t count;

	memset(facts, 0, sizeof(*facts));
	if (!event || !sycl_facts_on())
		return;
	count = event->metadata.count;
	if (count > ENTRIES_MAX)
		return;
	entry = event->metadata.first;
	for (; count && entry && !((uintptr_t)entry & 7); entry = entry->next, count--)
		take(entry, facts);
	if (count) /* the list is shorter than it says, or none: it is not what we know */
		sycl_facts_off();
}

const struct xpti_payload *sycl_payload_of(const struct xpti_event *event)
{
	return event && sycl_facts_on() ? event->payload : NULL;
}

/* ---- names ---- */

uint32_t sycl_domain(void)
{
	static _Atomic uint32_t domain;
	uint32_t id = atomic_load_explicit(&domain, memory_order_relaxed);

	if (__builtin_expect(!id, 0)) {
		id = xs_name("SYCL", 0);
		atomic_store_explicit(&domain, id, memory_order_relaxed);
	}
	return id;
}

/* Up to an address in brackets at the end: each object would have a name of its own. */
static uint32_t length_of(const char *text)
{
	size_t length = strnlen(text, TEXT_MAX), at = length;

	if (length < 3 || text[length - 1] != ']')
		return (uint32_t)length;
	while (at && text[at - 1] != '[')
		at--;
	return (uint32_t)(at > 1 ? at - 1 : length);
}

uint32_t sycl_name(const char *prefix, const char *text)
{
	const struct xs_part parts[] = {
		{ prefix, (uint32_t)strlen(prefix) },
		{ text ? text : "(no name)", length_of(text ? text : "(no name)") },
	};

	return xs_name_parts(parts, 2, sycl_domain());
}

uint32_t sycl_name_of(const char *prefix, uint32_t text)
{
	struct xs_part name = xs_text_of_name(text);
	const struct xs_part parts[] = { { prefix, (uint32_t)strlen(prefix) }, name };

	return xs_name_parts(parts, 2, sycl_domain());
}

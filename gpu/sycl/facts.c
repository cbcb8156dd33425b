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
#define NAMES	    256u

enum key { KEY_KERNEL, KEY_DEVICE, KEY_QUEUE, KEY_POINTER, KEY_SIZE, KEYS };
static const char *const keys[KEYS] = {
	[KEY_KERNEL] = "kernel_name", [KEY_DEVICE] = "sycl_device_name", [KEY_QUEUE] = "queue_id",
	[KEY_POINTER] = "memory_ptr", [KEY_SIZE] = "memory_size",
};
static uint32_t key_ids[KEYS];

static struct sycl_framework framework;
/* id of a text object << 32 | its interned name */
static _Atomic uint64_t known[KNOWN];
static _Atomic bool is_on, forbidden;

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
	atomic_store_explicit(&is_on,
			      framework.lookup_object && framework.register_string &&
				      !atomic_load(&forbidden),
			      memory_order_release);
	return true;
}

void sycl_facts_off(void)
{
	atomic_store(&forbidden, true);
	atomic_store_explicit(&is_on, false, memory_order_release);
}

bool sycl_facts_on(void)
{
	return atomic_load_explicit(&is_on, memory_order_acquire);
}

/* Up to an address in brackets at the end: each object would have a name of its own. */
static uint32_t length_of(const char *text, size_t most)
{
	size_t length = strnlen(text, most), at = length;

	if (!length || text[length - 1] != ']')
		return (uint32_t)length;
	for (at--; at && ((text[at - 1] >= '0' && text[at - 1] <= '9') ||
			  (text[at - 1] >= 'a' && text[at - 1] <= 'f'));)
		at--;
	return (uint32_t)(at > 1 && length - at > 4 && text[at - 1] == '[' ? at - 1 : length);
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
						length_of(object.data, object.size < TEXT_MAX
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

static const char *const prefixes[SYCL_PREFIXES] = {
	[SYCL_PLAIN] = "",
	[SYCL_SUBMIT] = "submit ",
	[SYCL_WAITING] = "waiting ",
};

uint32_t sycl_name(enum sycl_prefix prefix, const char *text)
{
	struct xs_part parts[] = { { prefixes[prefix], (uint32_t)strlen(prefixes[prefix]) },
				   { text, 0 } };

	if (!text)
		parts[1].text = "(no name)";
	parts[1].length = length_of(parts[1].text, TEXT_MAX);
	return xs_name_parts(parts, 2, sycl_domain());
}

uint32_t sycl_name_of(enum sycl_prefix prefix, uint32_t text)
{
	/* id of the text << 32 | that of the name */
	static _Atomic uint64_t made[SYCL_PREFIXES][NAMES];
	_Atomic uint64_t *place = &made[prefix][text % NAMES];
	uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
	struct xs_part parts[2];
	uint32_t name;

	if (__builtin_expect(found >> 32 == text, 1))
		return (uint32_t)found;
	parts[0] = (struct xs_part){ prefixes[prefix], (uint32_t)strlen(prefixes[prefix]) };
	parts[1] = xs_text_of_name(text);
	name = xs_name_parts(parts, 2, sycl_domain());
	atomic_store_explicit(place, (uint64_t)text << 32 | name, memory_order_relaxed);
	return name;
}

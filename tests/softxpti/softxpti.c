#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softxpti.h"

#define TYPES 128u
#define MANY  8u

/* called by name */
xpti_register_stream xptiRegisterStream;
xpti_register_callback xptiRegisterCallback;
xpti_register_string xptiRegisterString;
xpti_lookup_object xptiLookupObject;

static struct {
	const char *name;
	xpti_callback *callbacks[TYPES][MANY];
} streams[16];
static uint8_t stream_count;
static const char *strings[256];
static uint32_t string_count;
static struct xpti_object objects[65536];
static int32_t object_count;

typedef void init_function(unsigned, unsigned, const char *, const char *);
static init_function *subscribers[MANY];
static unsigned subscriber_count;

uint8_t xptiRegisterStream(const char *name)
{
	for (uint8_t i = 0; i < stream_count; i++)
		if (!strcmp(streams[i].name, name))
			return i;
	streams[stream_count].name = name;
	return stream_count++;
}

int32_t xptiRegisterCallback(uint8_t stream, uint16_t type, xpti_callback *callback)
{
	for (unsigned i = 0; type < TYPES && i < MANY; i++)
		if (!streams[stream].callbacks[type][i]) {
			streams[stream].callbacks[type][i] = callback;
			return 0;
		}
	return -1;
}

uint32_t xptiRegisterString(const char *text, char **ret_text)
{
	for (uint32_t i = 0; i < string_count; i++)
		if (!strcmp(strings[i], text)) {
			*ret_text = (char *)strings[i];
			return i + 1;
		}
	strings[string_count] = strdup(text);
	*ret_text = (char *)strings[string_count];
	return ++string_count;
}

struct xpti_object xptiLookupObject(int32_t id)
{
	return id >= 0 && id < object_count ? objects[id] : (struct xpti_object){ 0, NULL, 0 };
}

/* XPTI_SUBSCRIBERS: a list with commas. */
static void load_subscribers(void)
{
	char *list = getenv("XPTI_SUBSCRIBERS"), *rest = NULL;
	const char *enabled = getenv("XPTI_TRACE_ENABLE");

	if (!list || !enabled || strcmp(enabled, "1") != 0)
		return;
	list = strdup(list);
	for (char *path = strtok_r(list, ",", &rest); path; path = strtok_r(NULL, ",", &rest)) {
		void *library = dlopen(path, RTLD_LAZY);
		void *function = library ? dlsym(library, "xptiTraceInit") : NULL;

		if (function && subscriber_count < MANY)
			memcpy(&subscribers[subscriber_count++], &function, sizeof(function));
		else
			fprintf(stderr, "softxpti: %s is no subscriber\n", path);
	}
	free(list);
}

uint8_t soft_stream(const char *name, unsigned version)
{
	static int loaded;
	uint8_t stream;

	if (!loaded++) {
		load_subscribers();
		for (unsigned i = 0; i < subscriber_count; i++)
			subscribers[i](version, 0, "software", "xpti.framework");
	}
	stream = xptiRegisterStream(name);
	for (unsigned i = 0; i < subscriber_count; i++)
		if (strncmp(name, "ur.", 3) != 0)
			subscribers[i](9, 0, "sycl 9.0", name);
		else
			subscribers[i](0, 11 + version, "unified runtime", name);
	return stream;
}

void soft_notify(uint8_t stream, uint16_t type, const struct xpti_event *event, uint64_t instance,
		 const void *data)
{
	static const struct xpti_event graph;

	for (unsigned i = 0; i < MANY && streams[stream].callbacks[type][i]; i++)
		streams[stream].callbacks[type][i](type, &graph, event, instance, data);
}

static int32_t object_of(const void *data, size_t size, uint8_t type)
{
	char *copy;

	for (int32_t i = 0; i < object_count; i++)
		if (objects[i].size == size && !memcmp(objects[i].data, data, size))
			return i;
	copy = malloc(size);
	memcpy(copy, data, size);
	objects[object_count] = (struct xpti_object){ size, copy, type };
	return object_count++;
}

static void add(struct xpti_event *event, const char *key, int32_t value)
{
	struct xpti_entry *entry = malloc(sizeof(*entry));
	char *text;

	*entry =
		(struct xpti_entry){ event->metadata.first, xptiRegisterString(key, &text), value };
	event->metadata.first = entry;
	event->metadata.count++;
}

void soft_text(struct xpti_event *event, const char *key, const char *text)
{
	add(event, key, object_of(text, strlen(text), 1));
}

void soft_number(struct xpti_event *event, const char *key, uint64_t number)
{
	add(event, key, object_of(&number, sizeof(number), 3));
}

void soft_clear(struct xpti_event *event)
{
	while (event->metadata.first) {
		const struct xpti_entry *entry = event->metadata.first;

		event->metadata.first = entry->next;
		free((void *)entry);
	}
	event->metadata.count = 0;
}

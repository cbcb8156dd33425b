/*
 * USM of SYCL: allocations as slices, counters of what is in use on each device, and at the end
 * what was never freed. What is in use is kept while nothing is recorded, too.
 *
 * The runtime's event has the device's name alone. Devices of one name are told from each other by
 * the handle in the call of the Unified Runtime that makes the allocation (calls.c).
 */
#include <string.h>

#include "shm.h"
#include "sycl.h"

#define PLACES	  XS_UNFREED /* the first is that of allocations whose device is not known */
#define PLACE_LOG 4
#define TRIES	  10000u
_Static_assert(PLACES == 1 << PLACE_LOG, "a place has so many bits");

/* address -> (bytes << PLACE_LOG | place) + 1 */
static struct xs_handles usm = { .size = 1024 };

static struct place {
	_Atomic uint64_t bytes, count;
	uint64_t handle;	  /* of the device, as the Unified Runtime has it */
	uint32_t told, device;	  /* interned: what the runtime calls it, and we */
	_Atomic uint32_t counter; /* interned; 0: not made yet */
} places[PLACES];
static _Atomic uint32_t used = 1; /* places that are complete */
static _Atomic bool adding;

static uint32_t named_like(uint32_t told, uint32_t count)
{
	uint32_t number = 1;

	for (uint32_t i = 1; i < count; i++)
		number += places[i].told == told;
	return number;
}

static uint32_t find(uint32_t count, uint64_t handle, uint32_t told)
{
	for (uint32_t i = 1; i < count; i++)
		if (places[i].handle == handle && places[i].told == told)
			return i;
	return 0;
}

/*
 * One thread at a time adds a device. Another one that meets it for too long (it may be a handler
 * on the same thread) gives none to its allocation.
 */
static __attribute__((noinline)) uint32_t add(uint64_t handle, uint32_t told)
{
	char text[] = { ' ', '#', 0, 0 };
	uint32_t count, place, number, tries = 0;

	while (atomic_exchange_explicit(&adding, true, memory_order_acquire))
		if (++tries == TRIES)
			return 0;
	count = atomic_load_explicit(&used, memory_order_relaxed);
	place = find(count, handle, told);
	if (!place && count < PLACES) {
		place = count;
		number = named_like(told, count);
		text[2] = (char)(number < 10 ? '0' + number : '1');
		text[3] = (char)(number < 10 ? '\0' : '0' + number - 10);
		places[place].handle = handle;
		places[place].told = told;
		places[place].device = xs_name_parts(
			(struct xs_part[]){ xs_text_of_name(told),
					    { text, number > 1 ? (uint32_t)strnlen(text, 4) : 0 } },
			2, 0);
		/* pairs with the acquire in place_of() */
		atomic_store_explicit(&used, count + 1, memory_order_release);
	}
	atomic_store_explicit(&adding, false, memory_order_release);
	return place;
}

static uint32_t place_of(const struct sycl_facts *facts)
{
	uint64_t handle = 0;
	bool host = sycl_call_allocated(&handle);
	uint32_t told = host ? xs_name("the host", 0) : facts->device, place;

	if (!told)
		return 0;
	/* pairs with the release in add() */
	place = find(atomic_load_explicit(&used, memory_order_acquire), handle, told);
	return place ? place : add(handle, told);
}

static uint32_t counter_of(struct place *place)
{
	static const char in_use[] = "SYCL USM in use", on[] = " on ", bytes[] = " (bytes)";
	uint32_t name = atomic_load_explicit(&place->counter, memory_order_relaxed);
	struct xs_part parts[] = { { in_use, sizeof(in_use) - 1 },
				   { on, sizeof(on) - 1 },
				   { "", 0 },
				   { bytes, sizeof(bytes) - 1 } };

	if (name)
		return name;
	if (place == places)
		parts[1].length = 0;
	else
		parts[2] = xs_text_of_name(place->device);
	name = xs_name_parts(parts, 4, 0);
	atomic_store_explicit(&place->counter, name, memory_order_relaxed);
	return name;
}

/* So much more, or less, is in use there. */
static void change(uint32_t number, int64_t count, int64_t bytes)
{
	struct place *place = &places[number];
	uint64_t now = atomic_fetch_add(&place->bytes, (uint64_t)bytes) + (uint64_t)bytes,
		 allocations = atomic_fetch_add(&place->count, (uint64_t)count) + (uint64_t)count;

	xs_tell_unfreed(number, place->device, allocations, now);
	if (xs_recording())
		sycl_counter(counter_of(place), now);
}

/* What stood there before is not in use any more. */
static void forget(uint64_t before)
{
	if (before)
		change((uint32_t)(before - 1) & (PLACES - 1), -1,
		       -(int64_t)((before - 1) >> PLACE_LOG));
}

static void allocated(const struct sycl_facts *facts)
{
	uint32_t place;

	if (!facts->pointer || facts->size >> (63 - PLACE_LOG))
		return;
	place = place_of(facts);
	/* if it was known, its release was not told */
	forget(sycl_exchange(&usm, facts->pointer, (facts->size << PLACE_LOG | place) + 1));
	change(place, 1, (int64_t)facts->size);
}

static void begin(const char *name)
{
	if (xs_recording())
		sycl_begin(sycl_name(SYCL_PLAIN, name));
}

/*
 * Memory that the runtime makes for a buffer comes without an event, and is the buffer's; USM comes
 * with one.
 */
void sycl_alloc_begin(uint16_t type, const struct xpti_event *parent,
		      const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)instance, (void)data;
	sycl_call_allocates();
	begin(event ? "mem_alloc" : "mem_alloc (buffer)");
}

void sycl_alloc_end(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		    uint64_t instance, const void *data)
{
	struct sycl_facts facts;

	(void)type, (void)parent, (void)instance, (void)data;
	sycl_end();
	if (!event)
		return;
	sycl_facts_of(event, &facts);
	allocated(&facts);
}

void sycl_release_begin(uint16_t type, const struct xpti_event *parent,
			const struct xpti_event *event, uint64_t instance, const void *data)
{
	struct sycl_facts facts;

	(void)type, (void)parent, (void)instance, (void)data;
	if (event) {
		/* before another thread can be given the same address */
		sycl_facts_of(event, &facts);
		if (facts.pointer)
			forget(sycl_exchange(&usm, facts.pointer, 0));
	}
	begin(event ? "mem_release" : "mem_release (buffer)");
}

void sycl_release_end(uint16_t type, const struct xpti_event *parent,
		      const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)instance, (void)data;
	sycl_end();
}

/*
 * What commands have in common whenever they run.
 */
#include "device_record.h"
#include "level_zero.h"

#define MAX_SHAPES 32768u
static _Atomic uint32_t shape_count;

uint32_t xs_ze_shape(const struct xs_device_record *record)
{
	struct xs_shape shape = {
		.name = record->event.name,
		.flags = record->event.flags & XS_DEVICE_FLAG_FUNCTION,
		.words = record->event.words,
		.work = record->work,
		.simd = record->simd,
		.kernel = record->kernel,
		.memory = record->memory,
		.bytes = record->bytes,
	};

	/* names have the rest of the room */
	if (atomic_load_explicit(&shape_count, memory_order_relaxed) >= MAX_SHAPES)
		return 0;
	atomic_fetch_add_explicit(&shape_count, 1, memory_order_relaxed);
	if (record->event.words * 8u > XS_DEVICE_RECORD_SHORT) {
		memcpy(shape.global, record->global, sizeof(shape.global));
		memcpy(shape.local, record->local, sizeof(shape.local));
	}
	return xs_shape(&shape);
}

/*
 * NVTX 3's extension for counters: those whose values are numbers are shown as ITT's counters are.
 * Groups, whose layout the program describes, and batches, whose samples have times of a clock of
 * the program's, are not.
 */
#include <string.h>

#include "nvtx.h"
#include "task_record.h"

/* values.c */
void *__itt_counter_create_v3(const __itt_domain *domain, const char *name, int type);
void __itt_counter_set_value(__itt_counter_info *counter, void *value);

/* The user's library's functions; NULL: none. */
static void (*next_counters[NVTX_COUNTERS_SIZE])(void);

/* How many bytes a value has, and what it becomes (enum xs_value_type); 0: it is no number. */
static const struct {
	uint8_t bytes, type;
} numbers[NVTX_NUMBERS] = {
#define NUMBER(name, c, type) [NVTX_NUMBER_##name] = { sizeof(c), XS_VALUE_##type }
	NUMBER(CHAR, char, S64),
	NUMBER(UCHAR, char, U64),
	NUMBER(SHORT, short, S64),
	NUMBER(USHORT, short, U64),
	NUMBER(INT, int, S64),
	NUMBER(UINT, int, U64),
	NUMBER(LONG, long, S64),
	NUMBER(ULONG, long, U64),
	NUMBER(LONGLONG, long long, S64),
	NUMBER(ULONGLONG, long long, U64),
	NUMBER(INT8, int8_t, S64),
	NUMBER(UINT8, int8_t, U64),
	NUMBER(INT16, int16_t, S64),
	NUMBER(UINT16, int16_t, U64),
	NUMBER(INT32, int32_t, S64),
	NUMBER(UINT32, int32_t, U64),
	NUMBER(INT64, int64_t, S64),
	NUMBER(UINT64, int64_t, U64),
	NUMBER(FLOAT, float, DOUBLE),
	NUMBER(DOUBLE, double, DOUBLE),
	NUMBER(SIZE, size_t, U64),
	NUMBER(FLOAT32, float, DOUBLE),
	NUMBER(FLOAT64, double, DOUBLE),
#undef NUMBER
};

#define COUNTERS 4096u /* a power of two; more are not shown */
#define PROBES	 16u

struct counter {
	_Atomic(const void *) domain; /* NULL: free */
	_Atomic uint64_t id;	      /* stored last */
	__itt_counter_info *info;
	uint32_t number; /* enum nvtx_number */
};
XS_TABLE(counters, COUNTERS * sizeof(struct counter));

/* NULL: it is not known; of add: there is no room. */
static struct counter *counter_of(const void *domain, uint64_t id, bool add)
{
	struct counter *table = xs_table(&counters);
	uint32_t place = (uint32_t)((uintptr_t)domain >> 4) + (uint32_t)id * 0x9e3779b1u;

	for (uint32_t n = 0; table && n < PROBES; n++) {
		struct counter *counter = &table[(place + n) & (COUNTERS - 1)];
		const void *there = atomic_load_explicit(&counter->domain, memory_order_acquire);

		if (there == domain &&
		    atomic_load_explicit(&counter->id, memory_order_acquire) == id)
			return counter;
		if (there)
			continue;
		if (!add)
			return NULL;
		if (atomic_compare_exchange_strong(&counter->domain, &there, domain))
			return counter;
	}
	return NULL;
}

static uint64_t fresh_id(void)
{
	static _Atomic uint64_t ids;

	return NVTX_COUNTER_OF_TOOL + atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
}

static uint64_t counter_register(void *handle, const struct nvtx_counter *of)
{
	__itt_domain *domain = nvtx_domain_of(handle);
	struct counter *counter;
	uint64_t id = 0;

	if (next_counters[NVTX_COUNTER_REGISTER])
		id = ((uint64_t (*)(void *, const struct nvtx_counter *))
			      next_counters[NVTX_COUNTER_REGISTER])(nvtx_theirs_of(handle), of);
	if (!of || of->size < sizeof(*of))
		return id;
	if (!id)
		id = of->id ? of->id : fresh_id();
	if (of->schema >= NVTX_NUMBERS || !numbers[of->schema].bytes)
		return id;
	counter = counter_of(domain, id, true);
	if (!counter)
		return id;
	counter->number = (uint32_t)of->schema;
	counter->info = __itt_counter_create_v3(domain, of->name ? of->name : "(no name)",
						numbers[of->schema].type);
	atomic_store_explicit(&counter->id, id, memory_order_release);
	return id;
}

/* As what the counter was made: the program may give it another type of value. */
static void show(const struct counter *counter, uint8_t type, int64_t integer, double real)
{
	bool is_real = numbers[counter->number].type == XS_VALUE_DOUBLE;

	if (type == XS_VALUE_DOUBLE && !is_real)
		integer = real >= -9.2e18 && real <= 9.2e18 ? (int64_t)real : 0;
	else if (type != XS_VALUE_DOUBLE && is_real)
		real = type == XS_VALUE_U64 ? (double)(uint64_t)integer : (double)integer;
	__itt_counter_set_value(counter->info, is_real ? (void *)&real : (void *)&integer);
}

static void counter_int64(void *handle, uint64_t id, int64_t value)
{
	const struct counter *counter = counter_of(nvtx_domain_of(handle), id, false);

	if (counter)
		show(counter, XS_VALUE_S64, value, 0);
	NEXT(counters, NVTX_COUNTER_INT64, void (*)(void *, uint64_t, int64_t),
	     nvtx_theirs_of(handle), id, value);
}

static void counter_float64(void *handle, uint64_t id, double value)
{
	const struct counter *counter = counter_of(nvtx_domain_of(handle), id, false);

	if (counter)
		show(counter, XS_VALUE_DOUBLE, 0, value);
	NEXT(counters, NVTX_COUNTER_FLOAT64, void (*)(void *, uint64_t, double),
	     nvtx_theirs_of(handle), id, value);
}

/* A number of any width, at any address. */
static void show_number(const struct counter *counter, const void *value)
{
	uint32_t bytes = numbers[counter->number].bytes, shift = 64 - 8 * bytes;
	uint8_t type = numbers[counter->number].type;
	uint64_t integer = 0;
	double real = 0;

	if (type != XS_VALUE_DOUBLE) {
		memcpy(&integer, value, bytes);
		if (type == XS_VALUE_S64)
			integer = (uint64_t)((int64_t)(integer << shift) >> shift);
	} else if (bytes == sizeof(float)) {
		real = itt_widened(value);
	} else {
		memcpy(&real, value, sizeof(real));
	}
	show(counter, type, (int64_t)integer, real);
}

static void counter_sample(void *handle, uint64_t id, const void *value, size_t size)
{
	const struct counter *counter = counter_of(nvtx_domain_of(handle), id, false);

	if (counter && value && size >= numbers[counter->number].bytes)
		show_number(counter, value);
	NEXT(counters, NVTX_COUNTER_SAMPLE, void (*)(void *, uint64_t, const void *, size_t),
	     nvtx_theirs_of(handle), id, value, size);
}

static void counter_no_value(void *handle, uint64_t id, uint8_t reason)
{
	const struct counter *counter = counter_of(nvtx_domain_of(handle), id, false);

	if (counter && reason == NVTX_COUNTER_IS_ZERO)
		show(counter, XS_VALUE_S64, 0, 0);
	NEXT(counters, NVTX_COUNTER_NO_VALUE, void (*)(void *, uint64_t, uint8_t),
	     nvtx_theirs_of(handle), id, reason);
}

/* The user's library has filled in its functions. */
static void take(struct nvtx_segment *segment)
{
	static void (*const ours[NVTX_COUNTERS_SIZE])(void) = {
		[NVTX_COUNTER_REGISTER] = NVTX_OURS(counter_register),
		[NVTX_COUNTER_INT64] = NVTX_OURS(counter_int64),
		[NVTX_COUNTER_FLOAT64] = NVTX_OURS(counter_float64),
		[NVTX_COUNTER_SAMPLE] = NVTX_OURS(counter_sample),
		[NVTX_COUNTER_NO_VALUE] = NVTX_OURS(counter_no_value),
	};

	for (size_t i = 0; i < NVTX_COUNTERS_SIZE && i < segment->count; i++) {
		intptr_t theirs = segment->slots[i];

		next_counters[i] = theirs > 1 || theirs < 0 ? (void (*)(void))theirs
							    : (void (*)(void))NULL;
		segment->slots[i] = (intptr_t)ours[i];
	}
}

EXPORT int InitializeInjectionNvtxExtension(struct nvtx_extension *extension)
{
	const struct xs_options *options = xs_collector_options();
	int (*users)(struct nvtx_extension *) = NULL;
	int result;

	*(void **)&users = nvtx_users("InitializeInjectionNvtxExtension");
	result = users && users(extension);
	if (!options || !xs_want_itt(options) || extension->size < sizeof(*extension) ||
	    extension->number != NVTX_EXTENSION_OF_COUNTERS || !extension->segment_count)
		return result;
	take(extension->segments);
	return 1;
}

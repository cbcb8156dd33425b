/*
 * NVTX: ranges and marks of NVIDIA's tools API, shown as tasks of ITT are.
 *
 * A program that uses NVTX opens the library that NVTX_INJECTION64_PATH names and hands it the
 * table of its functions. Pushed ranges nest, as tasks do; started ones are overlapped tasks. Where
 * the user names a library of his own there, it is in the table first, and we hand each call on.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "nvtx.h"
#include "shm.h"
#include "task_record.h"

/* tasks.c, values.c, threads.c */
void __itt_task_begin_overlapped(const __itt_domain *domain, __itt_id task, __itt_id parent,
				 __itt_string_handle *handle);
void __itt_task_end_overlapped(const __itt_domain *domain, __itt_id task);
void __itt_metadata_add(const __itt_domain *domain, __itt_id id, __itt_string_handle *key, int type,
			size_t count, void *data);
void __itt_metadata_str_add(const __itt_domain *domain, __itt_id id, __itt_string_handle *key,
			    const char *data, size_t length);
void __itt_marker(const __itt_domain *domain, __itt_id id, __itt_string_handle *handle, int scope);
void __itt_thread_set_name(const char *name);

/* What a program holds as a domain or registered text. theirs: what the user's library gave. */
struct object {
	union {
		__itt_domain *domain;
		__itt_string_handle *text;
	};
	void *theirs;
};

/* The user's library's functions; NULL: none. */
static void (*next_core[NVTX_CORE_SIZE])(void);
static void (*next_core2[NVTX_CORE2_SIZE])(void);

const char *nvtx_wide(char text[NVTX_WIDE_MAX], const wchar_t *wide)
{
	size_t n = 0;

	for (; wide && *wide && n < NVTX_WIDE_MAX - 5; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c < 0x80) {
			text[n++] = (char)c;
		} else if (c < 0x800) {
			text[n++] = (char)(0xc0 | c >> 6);
			text[n++] = (char)(0x80 | (c & 63));
		} else if (c < 0x10000) {
			text[n++] = (char)(0xe0 | c >> 12);
			text[n++] = (char)(0x80 | (c >> 6 & 63));
			text[n++] = (char)(0x80 | (c & 63));
		} else {
			text[n++] = (char)(0xf0 | (c >> 18 & 7));
			text[n++] = (char)(0x80 | (c >> 12 & 63));
			text[n++] = (char)(0x80 | (c >> 6 & 63));
			text[n++] = (char)(0x80 | (c & 63));
		}
	}
	text[n] = '\0';
	return text;
}

static __itt_string_handle *wide_text(const wchar_t *wide)
{
	char text[NVTX_WIDE_MAX];

	return itt_object(&itt_handles, nvtx_wide(text, wide));
}

static __itt_string_handle *plain_text(const char *text)
{
	return itt_object(&itt_handles, text);
}

static __itt_domain *default_domain(void)
{
	static _Atomic(__itt_domain *) known;
	__itt_domain *domain = atomic_load_explicit(&known, memory_order_acquire);

	if (!domain) {
		domain = __itt_domain_create("NVTX");
		atomic_store_explicit(&known, domain, memory_order_release);
	}
	return domain;
}

__itt_domain *nvtx_domain_of(const void *handle)
{
	const struct object *object = handle;

	return object && object->domain ? object->domain : default_domain();
}

void *nvtx_theirs_of(const void *handle)
{
	return handle ? ((const struct object *)handle)->theirs : NULL;
}

/* ---- categories ---- */

#define CATEGORIES 1024u /* a power of two; more have no names */

static struct category {
	_Atomic(const void *) domain; /* NULL: free */
	uint32_t number;
	_Atomic(__itt_string_handle *) name;
} categories[CATEGORIES];

static struct category *category_of(const __itt_domain *domain, uint32_t number, bool add)
{
	uint32_t place = (uint32_t)((uintptr_t)domain >> 4) + number * 0x9e3779b1u;

	for (uint32_t n = 0; n < 16; n++) {
		struct category *category = &categories[(place + n) & (CATEGORIES - 1)];
		const void *there = atomic_load_explicit(&category->domain, memory_order_acquire);

		if (there == domain && category->number == number)
			return category;
		if (there)
			continue;
		if (!add)
			return NULL;
		/* two threads that name two categories at one moment: one of the names may be lost
		 */
		category->number = number;
		if (atomic_compare_exchange_strong(&category->domain, &there, domain))
			return category;
	}
	return NULL;
}

static void name_category(const __itt_domain *domain, uint32_t number, __itt_string_handle *name)
{
	struct category *category = category_of(domain, number, true);

	if (category)
		atomic_store_explicit(&category->name, name, memory_order_release);
}

/* ---- what a range says of itself ---- */

static __itt_string_handle *message_of(const struct nvtx_attributes *attributes)
{
	if (!attributes || attributes->size < sizeof(*attributes))
		return plain_text(NULL);
	switch (attributes->message_type) {
	case NVTX_TEXT:
		return plain_text(attributes->message.text);
	case NVTX_WIDE:
		return wide_text(attributes->message.wide);
	case NVTX_REGISTERED:
		if (attributes->message.registered)
			return ((struct object *)attributes->message.registered)->text;
		return plain_text(NULL);
	default:
		return plain_text(NULL);
	}
}

static void add_values(const __itt_domain *domain, __itt_id id,
		       const struct nvtx_attributes *attributes)
{
	static const uint8_t types[NVTX_PAYLOADS] = {
		[NVTX_U64] = XS_VALUE_U64,	 [NVTX_S64] = XS_VALUE_S64,
		[NVTX_DOUBLE] = XS_VALUE_DOUBLE, [NVTX_U32] = XS_VALUE_U32,
		[NVTX_S32] = XS_VALUE_S32,	 [NVTX_FLOAT] = XS_VALUE_FLOAT,
	};
	int32_t type;

	if (!attributes || attributes->size < sizeof(*attributes))
		return;
	type = attributes->payload_type;
	if (type > 0 && type < NVTX_PAYLOADS)
		__itt_metadata_add(domain, id, plain_text("payload"), types[type], 1,
				   (void *)&attributes->payload);
	if (attributes->category) {
		const struct category *category = category_of(domain, attributes->category, false);
		const __itt_string_handle *name =
			category ? atomic_load_explicit(&category->name, memory_order_acquire)
				 : NULL;

		if (name)
			__itt_metadata_str_add(domain, id, plain_text("category"), name->strA, 0);
		else
			__itt_metadata_add(domain, id, plain_text("category"), XS_VALUE_U32, 1,
					   (void *)&attributes->category);
	}
}

/* The user's library knows registered texts by its own handles. */
static const struct nvtx_attributes *translated(const struct nvtx_attributes *attributes,
						struct nvtx_attributes *copy)
{
	if (!attributes || attributes->size < sizeof(*attributes) ||
	    attributes->message_type != NVTX_REGISTERED)
		return attributes;
	*copy = *attributes;
	copy->message.registered = nvtx_theirs_of(attributes->message.registered);
	return copy;
}

/* ---- ranges and marks ---- */

static const __itt_id no_id;

static __itt_id range_id(uint64_t number)
{
	return (__itt_id){ number, 0x7874766e /* nvtx */, 0 };
}

static uint64_t fresh_range(uint64_t theirs)
{
	static _Atomic uint64_t ranges;

	return theirs ? theirs : atomic_fetch_add_explicit(&ranges, 1, memory_order_relaxed) + 1;
}

static void mark(void *handle, __itt_string_handle *text)
{
	__itt_marker(nvtx_domain_of(handle), no_id, text, ITT_SCOPE_TASK);
}

static void push(void *handle, __itt_string_handle *text, const struct nvtx_attributes *attributes)
{
	const __itt_domain *domain = nvtx_domain_of(handle);

	__itt_task_begin(domain, no_id, no_id, text);
	add_values(domain, no_id, attributes);
}

static uint64_t start(void *handle, __itt_string_handle *text,
		      const struct nvtx_attributes *attributes, uint64_t theirs)
{
	const __itt_domain *domain = nvtx_domain_of(handle);
	uint64_t number = fresh_range(theirs);

	__itt_task_begin_overlapped(domain, range_id(number), no_id, text);
	add_values(domain, range_id(number), attributes);
	return number;
}

typedef const struct nvtx_attributes *attributes_t;

static void core_mark_ex(attributes_t attributes)
{
	struct nvtx_attributes copy;

	NEXT(core, NVTX_MARK_EX, void (*)(attributes_t), translated(attributes, &copy));
	mark(NULL, message_of(attributes));
}

static void core_mark_a(const char *text)
{
	NEXT(core, NVTX_MARK_A, void (*)(const char *), text);
	mark(NULL, plain_text(text));
}

static void core_mark_w(const wchar_t *text)
{
	NEXT(core, NVTX_MARK_W, void (*)(const wchar_t *), text);
	mark(NULL, wide_text(text));
}

/* The same for what returns something. */
#define ASK(table, place, otherwise, type, ...) \
	(next_##table[place] ? ((type)next_##table[place])(__VA_ARGS__) : (otherwise))

static uint64_t core_start_ex(attributes_t attributes)
{
	struct nvtx_attributes copy;

	return start(NULL, message_of(attributes), attributes,
		     ASK(core, NVTX_START_EX, 0, uint64_t (*)(attributes_t),
			 translated(attributes, &copy)));
}

static uint64_t core_start_a(const char *text)
{
	return start(NULL, plain_text(text), NULL,
		     ASK(core, NVTX_START_A, 0, uint64_t (*)(const char *), text));
}

static uint64_t core_start_w(const wchar_t *text)
{
	return start(NULL, wide_text(text), NULL,
		     ASK(core, NVTX_START_W, 0, uint64_t (*)(const wchar_t *), text));
}

static void core_end(uint64_t number)
{
	__itt_task_end_overlapped(default_domain(), range_id(number));
	NEXT(core, NVTX_END, void (*)(uint64_t), number);
}

static int core_push_ex(attributes_t attributes)
{
	struct nvtx_attributes copy;
	int depth = ASK(core, NVTX_PUSH_EX, NVTX_NO_PUSH_POP_TRACKING, int (*)(attributes_t),
			translated(attributes, &copy));

	push(NULL, message_of(attributes), attributes);
	return depth;
}

static int core_push_a(const char *text)
{
	int depth = ASK(core, NVTX_PUSH_A, NVTX_NO_PUSH_POP_TRACKING, int (*)(const char *), text);

	push(NULL, plain_text(text), NULL);
	return depth;
}

static int core_push_w(const wchar_t *text)
{
	int depth =
		ASK(core, NVTX_PUSH_W, NVTX_NO_PUSH_POP_TRACKING, int (*)(const wchar_t *), text);

	push(NULL, wide_text(text), NULL);
	return depth;
}

static int core_pop(void)
{
	__itt_task_end(default_domain());
	return ASK(core, NVTX_POP, NVTX_NO_PUSH_POP_TRACKING, int (*)(void), );
}

static void core_category_a(uint32_t number, const char *name)
{
	name_category(default_domain(), number, plain_text(name));
	NEXT(core, NVTX_CATEGORY_A, void (*)(uint32_t, const char *), number, name);
}

static void core_category_w(uint32_t number, const wchar_t *name)
{
	name_category(default_domain(), number, wide_text(name));
	NEXT(core, NVTX_CATEGORY_W, void (*)(uint32_t, const wchar_t *), number, name);
}

/* Another thread's records tell its own name: what this one calls it is a record of its own. */
static void name_other(uint32_t tid, const char *name)
{
	struct xs_thread_named_record *record;
	uint32_t id = name ? xs_name(name, 0) : 0;

	if (!id)
		return;
	record = xs_record_begin(sizeof(*record), XS_THREAD_NAMED, XS_SOURCE_ITT, 0, id,
				 XS_ROLE_OTHER);
	if (!record)
		return;
	record->event.tick = xs_tick(xs_use_tsc);
	record->tid = tid;
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

static void name_thread(uint32_t tid, const char *name)
{
	if (!xs_recording())
		return;
	if (tid == xs_thread_id())
		__itt_thread_set_name(name);
	else
		name_other(tid, name);
}

static void core_thread_a(uint32_t tid, const char *name)
{
	name_thread(tid, name);
	NEXT(core, NVTX_THREAD_A, void (*)(uint32_t, const char *), tid, name);
}

static void core_thread_w(uint32_t tid, const wchar_t *name)
{
	const __itt_string_handle *text = wide_text(name);

	name_thread(tid, text ? text->strA : NULL);
	NEXT(core, NVTX_THREAD_W, void (*)(uint32_t, const wchar_t *), tid, name);
}

static void domain_mark(void *domain, attributes_t attributes)
{
	struct nvtx_attributes copy;

	NEXT(core2, NVTX_DOMAIN_MARK, void (*)(void *, attributes_t), nvtx_theirs_of(domain),
	     translated(attributes, &copy));
	mark(domain, message_of(attributes));
}

static uint64_t domain_start(void *domain, attributes_t attributes)
{
	struct nvtx_attributes copy;

	return start(domain, message_of(attributes), attributes,
		     ASK(core2, NVTX_DOMAIN_START, 0, uint64_t (*)(void *, attributes_t),
			 nvtx_theirs_of(domain), translated(attributes, &copy)));
}

static void domain_end(void *domain, uint64_t number)
{
	__itt_task_end_overlapped(nvtx_domain_of(domain), range_id(number));
	NEXT(core2, NVTX_DOMAIN_END, void (*)(void *, uint64_t), nvtx_theirs_of(domain), number);
}

static int domain_push(void *domain, attributes_t attributes)
{
	struct nvtx_attributes copy;
	int depth = ASK(core2, NVTX_DOMAIN_PUSH, NVTX_NO_PUSH_POP_TRACKING,
			int (*)(void *, attributes_t), nvtx_theirs_of(domain),
			translated(attributes, &copy));

	push(domain, message_of(attributes), attributes);
	return depth;
}

static int domain_pop(void *domain)
{
	__itt_task_end(nvtx_domain_of(domain));
	return ASK(core2, NVTX_DOMAIN_POP, NVTX_NO_PUSH_POP_TRACKING, int (*)(void *),
		   nvtx_theirs_of(domain));
}

static void domain_category_a(void *domain, uint32_t number, const char *name)
{
	name_category(nvtx_domain_of(domain), number, plain_text(name));
	NEXT(core2, NVTX_DOMAIN_CATEGORY_A, void (*)(void *, uint32_t, const char *),
	     nvtx_theirs_of(domain), number, name);
}

static void domain_category_w(void *domain, uint32_t number, const wchar_t *name)
{
	name_category(nvtx_domain_of(domain), number, wide_text(name));
	NEXT(core2, NVTX_DOMAIN_CATEGORY_W, void (*)(void *, uint32_t, const wchar_t *),
	     nvtx_theirs_of(domain), number, name);
}

/* NULL: there is no memory; then the program uses the default domain, or no name. */
static void *object(__itt_domain *domain, __itt_string_handle *text, void *theirs)
{
	struct object *made = xs_arena(sizeof(*made));

	if (!made)
		return NULL;
	if (domain)
		made->domain = domain;
	else
		made->text = text;
	made->theirs = theirs;
	return made;
}

static void *register_a(void *domain, const char *text)
{
	return object(NULL, plain_text(text),
		      ASK(core2, NVTX_REGISTER_A, NULL, void *(*)(void *, const char *),
			  nvtx_theirs_of(domain), text));
}

static void *register_w(void *domain, const wchar_t *text)
{
	return object(NULL, wide_text(text),
		      ASK(core2, NVTX_REGISTER_W, NULL, void *(*)(void *, const wchar_t *),
			  nvtx_theirs_of(domain), text));
}

static void *domain_create_a(const char *name)
{
	return object(__itt_domain_create(name), NULL,
		      ASK(core2, NVTX_DOMAIN_CREATE_A, NULL, void *(*)(const char *), name));
}

static void *domain_create_w(const wchar_t *name)
{
	const __itt_string_handle *text = wide_text(name);

	return object(__itt_domain_create(text ? text->strA : NULL), NULL,
		      ASK(core2, NVTX_DOMAIN_CREATE_W, NULL, void *(*)(const wchar_t *), name));
}

static void domain_destroy(void *domain)
{
	NEXT(core2, NVTX_DOMAIN_DESTROY, void (*)(void *), nvtx_theirs_of(domain));
}

/* ---- the table ---- */

void nvtx_note(nvtx_get_module *get, int module, void (**ret_before)(void), unsigned count)
{
	nvtx_place *table = NULL;
	unsigned size = 0;

	if (!get(module, &table, &size) || !table)
		return;
	for (unsigned i = 1; i < count && i < size; i++)
		ret_before[i] = table[i] ? *table[i] : NULL;
}

void nvtx_take(nvtx_get_module *get, int module, void (*const *ours)(void), void (**next)(void),
	       unsigned count, bool others)
{
	nvtx_place *table = NULL;
	unsigned size = 0;

	if (!get(module, &table, &size) || !table)
		return;
	for (unsigned i = 1; i < count && i < size; i++) {
		if (!table[i] || !ours[i])
			continue;
		next[i] = others && *table[i] != next[i] ? *table[i] : NULL;
		*table[i] = ours[i];
	}
}

void *nvtx_users(const char *function)
{
	const char *path = getenv(XS_ENV_NVTX_INJECTION);
	void *library = path && path[0] ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;

	return library ? dlsym(library, function) : NULL;
}

/* Of the user; it comes first. */
static bool load_users(const char *function, nvtx_get_table *get)
{
	int (*initialize)(nvtx_get_table *) = NULL;

	*(void **)&initialize = nvtx_users(function);
	return initialize && initialize(get);
}

/* Ranges, marks and names: shown as ITT's. */
static void take_ranges(nvtx_get_module *get, bool others)
{
	static void (*const core[NVTX_CORE_SIZE])(void) = {
		[NVTX_MARK_EX] = NVTX_OURS(core_mark_ex),
		[NVTX_MARK_A] = NVTX_OURS(core_mark_a),
		[NVTX_MARK_W] = NVTX_OURS(core_mark_w),
		[NVTX_START_EX] = NVTX_OURS(core_start_ex),
		[NVTX_START_A] = NVTX_OURS(core_start_a),
		[NVTX_START_W] = NVTX_OURS(core_start_w),
		[NVTX_END] = NVTX_OURS(core_end),
		[NVTX_PUSH_EX] = NVTX_OURS(core_push_ex),
		[NVTX_PUSH_A] = NVTX_OURS(core_push_a),
		[NVTX_PUSH_W] = NVTX_OURS(core_push_w),
		[NVTX_POP] = NVTX_OURS(core_pop),
		[NVTX_CATEGORY_A] = NVTX_OURS(core_category_a),
		[NVTX_CATEGORY_W] = NVTX_OURS(core_category_w),
		[NVTX_THREAD_A] = NVTX_OURS(core_thread_a),
		[NVTX_THREAD_W] = NVTX_OURS(core_thread_w),
	};
	static void (*const core2[NVTX_CORE2_SIZE])(void) = {
		[NVTX_DOMAIN_MARK] = NVTX_OURS(domain_mark),
		[NVTX_DOMAIN_START] = NVTX_OURS(domain_start),
		[NVTX_DOMAIN_END] = NVTX_OURS(domain_end),
		[NVTX_DOMAIN_PUSH] = NVTX_OURS(domain_push),
		[NVTX_DOMAIN_POP] = NVTX_OURS(domain_pop),
		[NVTX_DOMAIN_CATEGORY_A] = NVTX_OURS(domain_category_a),
		[NVTX_DOMAIN_CATEGORY_W] = NVTX_OURS(domain_category_w),
		[NVTX_REGISTER_A] = NVTX_OURS(register_a),
		[NVTX_REGISTER_W] = NVTX_OURS(register_w),
		[NVTX_DOMAIN_CREATE_A] = NVTX_OURS(domain_create_a),
		[NVTX_DOMAIN_CREATE_W] = NVTX_OURS(domain_create_w),
		[NVTX_DOMAIN_DESTROY] = NVTX_OURS(domain_destroy),
	};

	nvtx_take(get, NVTX_CORE, core, next_core, NVTX_CORE_SIZE, others);
	nvtx_take(get, NVTX_CORE2, core2, next_core2, NVTX_CORE2_SIZE, others);
}

/* `function`: the name of the entry. */
static int initialize(const char *function, nvtx_get_table *get)
{
	const struct xs_options *options = xs_collector_options();
	const struct nvtx_callbacks *callbacks = get ? get(NVTX_TABLE_OF_CALLBACKS) : NULL;
	bool ranges = options && xs_want_itt(options), names = options && xs_want_device(options);
	bool others;

	if ((!ranges && !names) || !callbacks || callbacks->size < sizeof(*callbacks) ||
	    !callbacks->get_table)
		return get && load_users(function, get);
	nvtx_note(callbacks->get_table, NVTX_CORE, next_core, NVTX_CORE_SIZE);
	nvtx_note(callbacks->get_table, NVTX_CORE2, next_core2, NVTX_CORE2_SIZE);
	nvtx_cuda_note(callbacks->get_table);
	others = load_users(function, get);
	if (ranges)
		take_ranges(callbacks->get_table, others);
	if (names)
		nvtx_cuda_take(callbacks->get_table, others);
	return 1;
}

/* NVTX 3, in each library and program that has its header. */
EXPORT int InitializeInjectionNvtx2(nvtx_get_table *get)
{
	return initialize("InitializeInjectionNvtx2", get);
}

/* NVTX 2, a library. */
EXPORT int InitializeInjectionNvtx(nvtx_get_table *get)
{
	return initialize("InitializeInjectionNvtx", get);
}

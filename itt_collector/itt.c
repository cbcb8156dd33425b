/*
 * The ITT collector: what a program's static ittnotify calls once INTEL_LIBITTNOTIFY64 names this library.
 *
 * A process may hold several copies of the static part, in plug-ins that come and go: nothing of theirs is kept. Domains and handles
 * are ours and live as long as the process; those that a static part made before it found us get their ids on first use.
 */
#include <string.h>

#include "collector.h"
#include "itt_abi.h"
#include "strtab.h"

#define EXPORT __attribute__((visibility("default")))

/* What a task is called: the id of "domain::handle", for one domain. Immutable once it can be seen. */
struct task_name {
	uint32_t domain, id;
	struct task_name *next;
};

#define TABLE_SIZE 65536u

/* Name -> object, for the life of the process. Lookup takes no lock; a lost race of two inserts costs one object. */
struct table {
	_Atomic(void *) slot[TABLE_SIZE];
	_Atomic uint32_t count;
};
static struct table domains, handles;
static __itt_string_handle nameless = { .strA = "(no memory)" };

static uint32_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3ull;
	return (uint32_t)(hash ^ hash >> 32);
}

static void *new_domain(const char *name)
{
	__itt_domain *domain = xs_arena(sizeof(*domain) + strlen(name) + 1);

	if (domain) {
		domain->nameA = strcpy((char *)(domain + 1), name);
		domain->flags = 1;
	}
	return domain;
}

static void *new_handle(const char *name)
{
	__itt_string_handle *handle = xs_arena(sizeof(*handle) + strlen(name) + 1);

	if (handle)
		handle->strA = strcpy((char *)(handle + 1), name);
	return handle;
}

/* Both objects begin their life with the name behind them. */
static const char *name_behind(const void *object, size_t size)
{
	return (const char *)object + size;
}

static void *find_or_add(struct table *table, const char *name, size_t size, void *(*make)(const char *))
{
	uint32_t hash;
	void *fresh = NULL;

	if (!name)
		name = "";
	hash = hash_of(name);
	for (uint32_t probe = 0; probe < TABLE_SIZE; probe++) {
		_Atomic(void *) *slot = &table->slot[(hash + probe) % TABLE_SIZE];
		/* pairs with the release below: the object is complete */
		void *object = atomic_load_explicit(slot, memory_order_acquire);

		if (!object) {
			/* past this many names each call makes an object of its own, as the static part does */
			if (!fresh)
				fresh = make(name);
			if (!fresh ||
			    atomic_load_explicit(&table->count, memory_order_relaxed) > TABLE_SIZE / 4 * 3)
				return fresh;
			if (atomic_compare_exchange_strong_explicit(slot, &object, fresh, memory_order_release,
								    memory_order_acquire)) {
				atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
				return fresh;
			}
		}
		if (!strcmp(name_behind(object, size), name))
			return object;
	}
	return fresh;
}

EXPORT __itt_domain *__itt_domain_create(const char *name)
{
	return find_or_add(&domains, name, sizeof(__itt_domain), new_domain);
}

EXPORT __itt_string_handle *__itt_string_handle_create(const char *name)
{
	return find_or_add(&handles, name, sizeof(__itt_string_handle), new_handle);
}

/* The id of "domain::task", which belongs to the domain. */
static uint32_t intern_task(const char *domain_name, const char *task, uint32_t domain)
{
	size_t domain_length = strlen(domain_name), task_length = strlen(task);
	char short_text[512], *text = short_text;

	if (domain_length + task_length + 3 > sizeof(short_text))
		text = xs_arena(domain_length + task_length + 3);
	if (!text)
		return XS_STRING_FULL;
	memcpy(text, domain_name, domain_length);
	memcpy(text + domain_length, "::", 2);
	memcpy(text + domain_length + 2, task, task_length + 1);
	return xs_name(text, domain);
}

static __attribute__((noinline, cold)) uint32_t make_domain_id(__itt_domain *domain)
{
	const char *name = domain->nameA ? domain->nameA : "";
	uint32_t id = xs_name(name, 0);

	/* made while there is room: what its tasks are called when there is none for their names */
	__atomic_store_n(&domain->extra2, (void *)(uintptr_t)intern_task(name, "(too many names)", id), __ATOMIC_RELAXED);
	/* last: who sees the id finds the string behind it; pairs with the acquires below */
	__atomic_store_n(&domain->extra1, (int)id, __ATOMIC_RELEASE);
	return id;
}

static inline uint32_t domain_id(__itt_domain *domain)
{
	uint32_t id = (uint32_t)__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE);

	return __builtin_expect(!id, 0) ? make_domain_id(domain) : id;
}

/* First use of this handle in this domain. */
static __attribute__((noinline, cold)) uint32_t make_task_name(__itt_string_handle *handle, __itt_domain *domain)
{
	uint32_t scope = domain_id(domain);
	uint32_t id = intern_task(domain->nameA ? domain->nameA : "", handle->strA ? handle->strA : "", scope);
	struct task_name *name = xs_arena(sizeof(*name));

	if (id == XS_STRING_FULL)
		id = (uint32_t)(uintptr_t)__atomic_load_n(&domain->extra2, __ATOMIC_RELAXED);
	if (!name)
		return id;
	name->domain = scope;
	name->id = id;
	name->next = __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE);
	/* two threads that do this at once: one entry is lost and made again */
	__atomic_store_n(&handle->extra2, name, __ATOMIC_RELEASE);
	return id;
}

static uint32_t task_name(__itt_string_handle *handle, __itt_domain *domain)
{
	uint32_t id = domain_id(domain);

	/* pairs with the release in make_task_name() */
	for (struct task_name *name = __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE); name; name = name->next)
		if (name->domain == id)
			return name->id;
	return make_task_name(handle, domain);
}

/* A name that is not ready or missing, a step of the ring that ends, a thread's first event. */
static __attribute__((noinline)) void begin_long(__itt_domain *domain, __itt_string_handle *handle)
{
	struct xs_event *event = xs_record_begin(sizeof(*event), XS_BEGIN, XS_SOURCE_ITT, 0, 0, XS_ROLE_BEGIN);

	if (!event)
		return;
	if (!handle)
		handle = __itt_string_handle_create("(no name)"); /* its end will come all the same */
	if (!handle)
		handle = &nameless;
	event->name = task_name(handle, domain);
	event->tick = xs_tick(xs_use_tsc); /* last: our own work is not the task's */
	xs_record_end(sizeof(*event));
	xs_watch_begin(domain, domain->nameA ? domain->nameA : "", handle->strA ? handle->strA : "");
}

static __attribute__((noinline)) void end_long(__itt_domain *domain)
{
	uint64_t tick = xs_tick(xs_use_tsc); /* first, for the same reason */
	struct xs_event *event = xs_record_begin(sizeof(*event), XS_END, XS_SOURCE_ITT, 0, 0, XS_ROLE_END);

	if (!event)
		return;
	event->name = domain_id(domain);
	event->tick = tick;
	xs_record_end(sizeof(*event));
	xs_watch_end(domain);
}

EXPORT void __itt_task_begin(const __itt_domain *domain, __itt_id task, __itt_id parent, __itt_string_handle *handle)
{
	const struct task_name *name;

	(void)task, (void)parent;
	if (!domain || !domain->flags)
		return;
	/* pairs with the release in make_task_name() */
	name = handle ? __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE) : NULL;
	if (__builtin_expect(!name || name->domain != (uint32_t)__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE) ||
				     !xs_mark(XS_BEGIN, XS_SOURCE_ITT, name->id),
			     0))
		begin_long((__itt_domain *)domain, handle);
}

static void marker(const __itt_domain *domain, __itt_id id, __itt_string_handle *handle, int scope)
{
	(void)id, (void)scope;
	if (domain && domain->flags && handle)
		xs_watch_marker(domain->nameA ? domain->nameA : "", handle->strA ? handle->strA : "");
}

EXPORT void __itt_task_end(const __itt_domain *domain)
{
	uint32_t id;

	if (!domain || !domain->flags)
		return;
	id = (uint32_t)__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE);
	if (__builtin_expect(!id || !xs_mark(XS_END, XS_SOURCE_ITT, id), 0))
		end_long((__itt_domain *)domain);
}

static const struct {
	const char *name;
	void *function;
} functions[] = {
	{ "__itt_domain_create", __itt_domain_create },
	{ "__itt_domain_createA", __itt_domain_create },
	{ "__itt_string_handle_create", __itt_string_handle_create },
	{ "__itt_string_handle_createA", __itt_string_handle_create },
	{ "__itt_task_begin", __itt_task_begin },
	{ "__itt_task_end", __itt_task_end },
	{ "__itt_marker", marker },
};

/*
 * Called by each static part when it finds us. What is not collected gets the function that it would have without any
 * collector, and so does everything in a process that is not traced.
 */
EXPORT void __itt_api_init(struct itt_global *global, int groups)
{
	const struct xs_options *options = xs_collector_options();
	bool collect = options && xs_want_itt(options);

	(void)groups;
	if (!global || !global->api_list_ptr)
		return;
	for (struct itt_api_info *row = global->api_list_ptr; row->name; row++) {
		*row->func_ptr = row->null_func;
		for (size_t i = 0; collect && i < sizeof(functions) / sizeof(functions[0]); i++)
			if (!strcmp(row->name, functions[i].name))
				*row->func_ptr = functions[i].function;
	}
}

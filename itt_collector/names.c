/*
 * Domains, string handles and every other object that has a name.
 */
#include "itt.h"

#include <string.h>

#include "strtab.h"

#define TEXT_MAX (32u << 20) /* bytes of names that a process keeps */

static _Atomic uint64_t text_used;

/* Eight bytes at a time: the same name is looked up for every task of PyTorch. */
static uint32_t hash_of(const char *text, size_t length)
{
	const uint64_t factor = 0x9e3779b97f4a7c15ull;
	uint64_t hash = length * factor, word;

	for (; length >= 8; text += 8, length -= 8) {
		memcpy(&word, text, 8);
		hash = (hash ^ word) * factor;
		hash ^= hash >> 29;
	}
	word = 0;
	if (length & 4) {
		uint32_t part;

		memcpy(&part, text, 4);
		word = part;
		text += 4;
	}
	for (length &= 3; length; length--)
		word = word << 8 | (unsigned char)*text++;
	hash = (hash ^ word) * factor;
	return (uint32_t)(hash >> 32);
}

static struct itt_entry *new_entry(struct itt_table *table, const char *name, size_t length, uint32_t hash)
{
	size_t payload = (table->payload + 7) & ~(size_t)7;
	struct itt_entry *entry;
	char *text;

	if (atomic_fetch_add_explicit(&text_used, length + 1, memory_order_relaxed) + length + 1 > TEXT_MAX)
		return NULL;
	entry = xs_arena(sizeof(*entry) + payload + length + 1);
	if (!entry)
		return NULL;
	text = (char *)(entry + 1) + payload;
	memcpy(text, name, length); /* the arena is zeroed: it ends there */
	entry->hash = hash;
	entry->length = (uint32_t)length;
	entry->name = text;
	table->init(entry + 1, text);
	return entry;
}

static void *spare(struct itt_table *table)
{
	static const char name[] = "(too many names)";
	struct itt_entry *entry = atomic_load_explicit(&table->spare, memory_order_acquire), *none = NULL;

	if (entry)
		return entry + 1;
	entry = xs_arena(sizeof(*entry) + table->payload);
	if (!entry)
		return NULL;
	entry->name = name;
	table->init(entry + 1, name);
	return atomic_compare_exchange_strong(&table->spare, &none, entry) ? entry + 1 : none + 1;
}

void *itt_object(struct itt_table *table, const char *name)
{
	size_t length = name ? strnlen(name, XS_STRING_MAX) : 0;
	struct itt_entry *fresh = NULL;
	uint32_t hash;

	if (!name)
		return itt_object(table, "(no name)");
	hash = hash_of(name, length);
	for (uint32_t probe = hash;; probe++) {
		_Atomic(struct itt_entry *) *slot = &table->slots[probe & (table->size - 1)];
		/* pairs with the release below: the object is complete */
		struct itt_entry *entry = atomic_load_explicit(slot, memory_order_acquire);

		if (!entry) {
			if (!fresh && atomic_load_explicit(&table->count, memory_order_relaxed) < table->size / 4 * 3)
				fresh = new_entry(table, name, length, hash);
			if (!fresh)
				return spare(table);
			if (atomic_compare_exchange_strong_explicit(slot, &entry, fresh, memory_order_release,
								    memory_order_acquire)) {
				atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
				return fresh + 1;
			}
		}
		if (entry->hash == hash && entry->length == length && !memcmp(entry->name, name, length))
			return entry + 1;
	}
}

/* "first separator second" in `text` of XS_STRING_MAX bytes; what does not fit is cut. */
static void join(char *text, const char *first, const char *separator, const char *second)
{
	const char *const parts[] = { first, separator, second };
	size_t used = 0;

	for (size_t i = 0; i < 3; i++) {
		size_t n = strnlen(parts[i], XS_STRING_MAX - 1 - used);

		memcpy(text + used, parts[i], n);
		used += n;
	}
	text[used] = '\0';
}

void *itt_object_in(struct itt_table *table, const char *domain, const char *name)
{
	char text[XS_STRING_MAX];

	if (!domain || !*domain)
		return itt_object(table, name);
	join(text, domain, "::", name ? name : "(no name)");
	return itt_object(table, text);
}

uint32_t itt_join(const char *first, const char *separator, const char *second, uint32_t scope)
{
	char text[XS_STRING_MAX];

	join(text, first, separator, second);
	return xs_name(text, scope);
}

uint32_t itt_intern_in(const char *domain, const char *name, uint32_t scope)
{
	return itt_join(domain, "::", name ? name : "(no name)", scope);
}

/* ---- domains ---- */

bool itt_wanted(const char *domain)
{
	const struct xs_options *options = xs_collector_options();

	if (!options || options->chrome_itt)
		return options;
	if (!domain)
		return false;
	if ((options->chrome_ccl || options->ccl_summary) && !strncmp(domain, "oneCCL", 6))
		return true;
	return options->chrome_dnn && (!strncmp(domain, "dnnl", 4) || !strncmp(domain, "oneDNN", 6));
}

static void init_domain(void *payload, const char *name)
{
	__itt_domain *domain = payload;

	domain->nameA = name;
	domain->flags = itt_wanted(name);
}
ITT_TABLE(domains, 65536, __itt_domain, init_domain);

EXPORT __itt_domain *__itt_domain_create(const char *name)
{
	return itt_object(&domains, name);
}

static __attribute__((noinline, cold)) uint32_t make_domain_id(__itt_domain *domain)
{
	static struct itt_domain_info none = { XS_STRING_FULL, XS_STRING_FULL };
	const char *name = itt_domain_text(domain);
	uint32_t id = xs_name(name, 0);
	struct itt_domain_info *info;

	if (!id)
		return XS_STRING_FULL; /* not traced: no record will be written */
	info = xs_arena(sizeof(*info));
	if (info) {
		/* made while there is room: what its tasks are called when there is none for their names */
		info->full_name = itt_intern_in(name, "(too many names)", id);
		info->frame_name = xs_name(name, id);
	}
	__atomic_store_n(&domain->extra2, info ? info : &none, __ATOMIC_RELAXED);
	if (!itt_wanted(name))
		domain->flags = 0;
	/* last: who sees the id finds the string behind it; pairs with the acquires below and in tasks.c */
	__atomic_store_n(&domain->extra1, (int)id, __ATOMIC_RELEASE);
	return id;
}

uint32_t itt_domain_id(__itt_domain *domain)
{
	uint32_t id = (uint32_t)__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE);

	return __builtin_expect(!id, 0) ? make_domain_id(domain) : id;
}

uint32_t itt_frame_name(__itt_domain *domain)
{
	(void)itt_domain_id(domain);
	return domain->extra2 ? itt_domain_info(domain)->frame_name : XS_STRING_FULL;
}

/* ---- string handles ---- */

static void init_handle(void *payload, const char *name)
{
	((__itt_string_handle *)payload)->strA = name;
}
ITT_TABLE(handles, 262144, __itt_string_handle, init_handle);

EXPORT __itt_string_handle *__itt_string_handle_create(const char *name)
{
	return itt_object(&handles, name);
}

uint32_t itt_text(__itt_string_handle *handle)
{
	uint32_t id;

	if (!handle)
		return xs_name("(no name)", 0);
	id = (uint32_t)__atomic_load_n(&handle->extra1, __ATOMIC_ACQUIRE);
	if (!id) {
		id = xs_name(itt_handle_text(handle), 0);
		__atomic_store_n(&handle->extra1, (int)id, __ATOMIC_RELEASE);
	}
	return id;
}

/* First use of this handle in this domain. */
static __attribute__((noinline, cold)) struct itt_name *make_name(__itt_domain *domain, __itt_string_handle *handle)
{
	static struct itt_name none = { .id = XS_STRING_FULL };
	uint32_t scope = itt_domain_id(domain);
	uint32_t id = itt_intern_in(itt_domain_text(domain), itt_handle_text(handle), scope);
	struct itt_name *name = xs_arena(sizeof(*name));

	if (!name)
		return &none;
	if (id == XS_STRING_FULL && domain->extra2)
		id = itt_domain_info(domain)->full_name;
	name->domain = scope;
	name->id = id;
	if (!handle)
		return name;
	name->next = __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE);
	/* two threads that do this at once: one entry is lost and made again */
	__atomic_store_n(&handle->extra2, name, __ATOMIC_RELEASE);
	return name;
}

struct itt_name *itt_name_in(__itt_domain *domain, __itt_string_handle *handle)
{
	uint32_t id = itt_domain_id(domain);

	if (!handle)
		handle = __itt_string_handle_create("(no name)");
	/* pairs with the release in make_name() */
	for (struct itt_name *name = handle ? __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE) : NULL; name; name = name->next)
		if (name->domain == id)
			return name;
	return make_name(domain, handle);
}

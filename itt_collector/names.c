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
	/* the rest as the low bytes of a word */
	word = 0;
	if (length & 4) {
		uint32_t part;

		memcpy(&part, text + (length & 3), 4);
		word = part;
	}
	for (length &= 3; length;)
		word = word << 8 | (unsigned char)text[--length];
	hash = (hash ^ word) * factor;
	return (uint32_t)(hash >> 32);
}

/* A name in pieces. */
struct text {
	struct xs_part parts[3];
	uint32_t count, length, hash;
};

/* As hash_of(), of the pieces one after the other. */
static uint32_t hash_of_parts(const struct text *text)
{
	const uint64_t factor = 0x9e3779b97f4a7c15ull;
	uint64_t hash = text->length * factor, word = 0;
	uint32_t shift = 0;

	for (uint32_t i = 0; i < text->count; i++)
		for (uint32_t k = 0; k < text->parts[i].length; k++) {
			word |= (uint64_t)(unsigned char)text->parts[i].text[k] << shift;
			shift = (shift + 8) % 64;
			if (shift)
				continue;
			hash = (hash ^ word) * factor;
			hash ^= hash >> 29;
			word = 0;
		}
	hash = (hash ^ word) * factor;
	return (uint32_t)(hash >> 32);
}

/* Another piece; past XS_STRING_MAX the name is cut. */
static void add_part(struct text *text, const char *part)
{
	uint32_t n = (uint32_t)strnlen(part, XS_STRING_MAX - text->length);

	text->parts[text->count++] = (struct xs_part){ part, n };
	text->length += n;
}

static bool is_called(const struct itt_entry *entry, const struct text *text)
{
	const char *at = entry->name;

	if (entry->hash != text->hash || entry->length != text->length)
		return false;
	for (uint32_t i = 0; i < text->count; at += text->parts[i++].length)
		if (memcmp(at, text->parts[i].text, text->parts[i].length))
			return false;
	return true;
}

static struct itt_entry *new_entry(struct itt_table *table, const struct text *name)
{
	size_t payload = (table->payload + 7) & ~(size_t)7;
	struct itt_entry *entry;
	char *text, *at;

	if (atomic_fetch_add_explicit(&text_used, name->length + 1, memory_order_relaxed) +
		    name->length + 1 >
	    TEXT_MAX)
		return NULL;
	entry = xs_arena(sizeof(*entry) + payload + name->length + 1);
	if (!entry)
		return NULL;
	text = at = (char *)(entry + 1) + payload;
	for (uint32_t i = 0; i < name->count; at += name->parts[i++].length)
		memcpy(at, name->parts[i].text,
		       name->parts[i].length); /* the arena is zeroed: it ends there */
	entry->hash = name->hash;
	entry->length = name->length;
	entry->name = text;
	table->init(entry + 1, text);
	return entry;
}

static void *spare(struct itt_table *table)
{
	static const char name[] = "(too many names)";
	struct itt_entry *entry = atomic_load_explicit(&table->spare, memory_order_acquire),
			 *none = NULL;

	xs_count_unnamed();
	if (entry)
		return entry + 1;
	entry = xs_arena(sizeof(*entry) + table->payload);
	if (!entry)
		return NULL;
	entry->name = name;
	table->init(entry + 1, name);
	return atomic_compare_exchange_strong(&table->spare, &none, entry) ? entry + 1 : none + 1;
}

static void *object(struct itt_table *table, const struct text *name)
{
	_Atomic(struct itt_entry *) *slots = xs_table(table->slots);
	struct itt_entry *fresh = NULL;

	if (!slots)
		return spare(table);
	for (uint32_t probe = name->hash;; probe++) {
		_Atomic(struct itt_entry *) *slot = &slots[probe & (table->size - 1)];
		/* pairs with the release below: the object is complete */
		struct itt_entry *entry = atomic_load_explicit(slot, memory_order_acquire);

		if (!entry) {
			if (!fresh && atomic_load_explicit(&table->count, memory_order_relaxed) <
					      table->size / 4 * 3)
				fresh = new_entry(table, name);
			if (!fresh)
				return spare(table);
			if (atomic_compare_exchange_strong_explicit(slot, &entry, fresh,
								    memory_order_release,
								    memory_order_acquire)) {
				atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
				return fresh + 1;
			}
		}
		if (is_called(entry, name))
			return entry + 1;
	}
}

void *itt_object_of(struct itt_table *table, const char *text, size_t length)
{
	uint32_t n = (uint32_t)strnlen(text, length < XS_STRING_MAX ? length : XS_STRING_MAX);
	struct text name = {
		.parts = { { text, n } }, .count = 1, .length = n, .hash = hash_of(text, n)
	};

	return object(table, &name);
}

void *itt_object(struct itt_table *table, const char *name)
{
	return itt_object_of(table, name ? name : "(no name)", XS_STRING_MAX);
}

void *itt_object_joined(struct itt_table *table, const char *first, const char *separator,
			const char *second)
{
	struct text name = { .count = 0 };

	add_part(&name, first);
	add_part(&name, separator);
	add_part(&name, second);
	name.hash = hash_of_parts(&name);
	return object(table, &name);
}

void *itt_object_in(struct itt_table *table, const char *domain, const char *name)
{
	if (!domain || !*domain)
		return itt_object(table, name);
	return itt_object_joined(table, domain, "::", name ? name : "(no name)");
}

uint32_t itt_join(const char *first, const char *second, const char *third, uint32_t scope)
{
	struct text name = { .count = 0 };

	add_part(&name, first);
	add_part(&name, second);
	add_part(&name, third);
	return xs_name_parts(name.parts, name.count, scope);
}

uint32_t itt_intern_in(const char *domain, const char *name, uint32_t scope)
{
	return itt_join(domain, "::", name ? name : "(no name)", scope);
}

/* ---- domains ---- */

bool itt_wanted(const char *domain)
{
	const struct xs_options *options = xs_collector_options();

	if (!options || xs_want_all_itt(options))
		return options;
	return options->ccl_summary && domain && !strncmp(domain, "oneCCL", 6);
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
		/*
		 * made while there is room: what its tasks are called when there is none for their
		 * names
		 */
		info->full_name = itt_intern_in(name, "(too many names)", id);
		info->frame_name = xs_name(name, id);
	}
	__atomic_store_n(&domain->extra2, info ? info : &none, __ATOMIC_RELAXED);
	if (!itt_wanted(name))
		domain->flags = 0;
	/*
	 * last: who sees the id finds the string behind it; pairs with the acquires below and in
	 * tasks.c
	 */
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
ITT_TABLE_OF(, itt_handles, 262144, __itt_string_handle, init_handle);

EXPORT __itt_string_handle *__itt_string_handle_create(const char *name)
{
	return itt_object(&itt_handles, name);
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

/*
 * What a handle is called in a domain: the first few of its names hang on the handle, where one is
 * found at once; those in further domains are in a table, so that the thousandth is found as fast.
 */
#define LISTED 8u
#define PAIRS  (1u << 18)
XS_TABLE(pairs, PAIRS * sizeof(_Atomic(struct itt_name *)));
static _Atomic uint32_t pair_count;

static struct itt_name *new_name(__itt_domain *domain, __itt_string_handle *handle, uint32_t scope)
{
	uint32_t id = itt_intern_in(itt_domain_text(domain), itt_handle_text(handle), scope);
	struct itt_name *name = xs_arena(sizeof(*name));

	if (!name)
		return NULL;
	if (id == XS_STRING_FULL && domain->extra2)
		id = itt_domain_info(domain)->full_name;
	name->domain = scope;
	name->id = id;
	name->handle = handle;
	return name;
}

/* NULL: there is no room, or no memory. */
static struct itt_name *paired(__itt_domain *domain, __itt_string_handle *handle, uint32_t scope)
{
	_Atomic(struct itt_name *) *slots = xs_table(&pairs);
	uint64_t hash = ((uintptr_t)handle ^ (uint64_t)scope << 40) * 0x9e3779b97f4a7c15ull >> 32;
	struct itt_name *fresh = NULL;

	for (uint64_t probe = hash; slots; probe++) {
		_Atomic(struct itt_name *) *slot = &slots[probe & (PAIRS - 1)];
		/* pairs with the release below: the name is complete */
		struct itt_name *name = atomic_load_explicit(slot, memory_order_acquire);

		if (!name) {
			if (!fresh &&
			    atomic_load_explicit(&pair_count, memory_order_relaxed) < PAIRS / 4 * 3)
				fresh = new_name(domain, handle, scope);
			if (!fresh)
				return NULL;
			if (atomic_compare_exchange_strong_explicit(slot, &name, fresh,
								    memory_order_release,
								    memory_order_acquire)) {
				atomic_fetch_add_explicit(&pair_count, 1, memory_order_relaxed);
				return fresh;
			}
		}
		if (name->domain == scope && name->handle == handle)
			return name;
	}
	return NULL;
}

/* It is not in the handle's list, which has so many names. */
static __attribute__((noinline, cold)) struct itt_name *make_name(__itt_domain *domain,
								  __itt_string_handle *handle,
								  uint32_t listed)
{
	static struct itt_name none = { .id = XS_STRING_FULL };
	uint32_t scope = itt_domain_id(domain);
	struct itt_name *name = listed < LISTED ? NULL : paired(domain, handle, scope);

	if (name)
		return name;
	name = new_name(domain, handle, scope);
	if (!name)
		return &none;
	if (!handle)
		return name;
	name->next = __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE);
	/* two threads that do this at once: one entry is lost and made again */
	__atomic_store_n(&handle->extra2, name, __ATOMIC_RELEASE);
	return name;
}

struct itt_name *itt_name_in(__itt_domain *domain, __itt_string_handle *handle)
{
	uint32_t id = itt_domain_id(domain), listed = 0;

	if (!handle)
		handle = __itt_string_handle_create("(no name)");
	/* pairs with the release in make_name() */
	for (struct itt_name *name = handle ? __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE)
					    : NULL;
	     name; name = name->next, listed++)
		if (name->domain == id)
			return name;
	return make_name(domain, handle, listed);
}

/*
 * Tasks that are named by a function: its symbol, or the file and where it lies in that.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "itt.h"
#include "blocked.h"
#include "elf_symbols.h"

/* From the C library, where it is new enough. */
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/* What the loader calls the program: its first argument. */
static const char *program = "";

#ifdef __GLIBC__
/* Another C library, which may be there in its place, says nothing to constructors. */
__attribute__((constructor)) static void note_program(int count, char **arguments)
{
	if (_dl_find_object && count > 0 && arguments[0])
		program = arguments[0];
}
#endif

/* Address -> "symbol" or "module+0xoffset", looked up once. */
struct function_name {
	_Atomic uintptr_t address;
	_Atomic(__itt_string_handle *) handle;
};
#define FUNCTIONS 1024u

/* "0x…"; `text` has room for 20 bytes. */
static const char *hexadecimal(char *text, uintptr_t value)
{
	char *at = text + 19;

	*at = '\0';
	do
		*--at = "0123456789abcdef"[value & 15];
	while (value >>= 4);
	*--at = 'x';
	*--at = '0';
	return at;
}

/* Where a function lies; symbol NULL: it has none. */
struct place {
	const char *symbol, *file;
	uintptr_t base;
};

static bool find_by_loader(void *function, struct place *ret)
{
	struct xs_blocked blocked = xs_block();
	Dl_info info;
	bool found = xs_is_blocked(blocked) && dladdr(function, &info) && info.dli_fname;

	xs_unblock(blocked);
	if (found)
		*ret = (struct place){ info.dli_saddr == function ? info.dli_sname : NULL,
				       info.dli_fname, (uintptr_t)info.dli_fbase };
	return found;
}

/*
 * dladdr() waits for the loader's lock. A library's constructor may wait, while dlopen() holds
 * that, for a thread which comes here; and a thread that leaves by a jump, or is cancelled
 * anywhere, would keep it for ever. So only an old C library is asked, where signals can be kept
 * off.
 */
static bool find_function(void *function, struct place *ret)
{
	struct dl_find_object object;
	const struct link_map *map;

	if (!_dl_find_object)
		return find_by_loader(function, ret);
	if (_dl_find_object(function, &object))
		return false;
	map = object.dlfo_link_map;
	*ret = (struct place){ xs_elf_name_at(map, (uintptr_t)function),
			       map->l_name[0] ? map->l_name : program,
			       (uintptr_t)object.dlfo_map_start };
	return true;
}

static __itt_string_handle *name_function(void *function)
{
	struct place place;
	const char *file;
	char digits[20];

	if (!find_function(function, &place))
		return __itt_string_handle_create(hexadecimal(digits, (uintptr_t)function));
	if (place.symbol)
		return __itt_string_handle_create(place.symbol);
	file = strrchr(place.file, '/');
	return itt_object_joined(&itt_handles, file ? file + 1 : place.file, "+",
				 hexadecimal(digits, (uintptr_t)function - place.base));
}

__itt_string_handle *itt_function_handle(void *function)
{
	static struct function_name names[FUNCTIONS];
	struct function_name *name = &names[((uintptr_t)function >> 4) % FUNCTIONS];
	uintptr_t none = 0;
	__itt_string_handle *handle;

	if (!function)
		return NULL;
	if (atomic_load_explicit(&name->address, memory_order_relaxed) == (uintptr_t)function) {
		handle = atomic_load_explicit(&name->handle, memory_order_acquire);
		if (handle)
			return handle;
	}
	handle = name_function(function);
	if (atomic_compare_exchange_strong(&name->address, &none, (uintptr_t)function))
		atomic_store_explicit(&name->handle, handle, memory_order_release);
	return handle;
}

/*
 * How we come into an interpreter: by an audit hook, which CPython takes before it is initialised
 * (PEP 578). Nothing that a program can see changes: no module is imported, no path, variable or
 * argument is added, and -I, -S and -E make no difference. The hook waits for the first event of an
 * interpreter that is ready, and starts the tracing from there; likewise if the program ends its
 * interpreter and makes another.
 *
 * A process without the option, or without an interpreter, has no hook.
 */
#include "python_stacks.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "shm.h"
#include "sys.h"

struct py_api py_api;
struct xs_python py_here;

typedef int audit_hook(const char *event, struct py_object *arguments, void *data);
/*
 * A weak reference, which the loader settles: asking for a name that is not there would allocate
 * memory in programs that have nothing to do with Python.
 */
extern int PySys_AddAuditHook(audit_hook *hook, void *data) __attribute__((weak));

#pragma weak dladdr1 /* glibc's */

#define TRIES 4096u /* events of an interpreter that is not ready */

/*
 * What CPython keeps of a hook (the same in all versions). It takes the memory from the allocator
 * that there is before it is initialised, and gives it to the one of its end: with debug hooks
 * (-X dev, PYTHONMALLOC) that one ends the process. So ours leaves the list before, and comes back
 * after, for an interpreter that is made later.
 */
struct entry {
	struct entry *next;
	audit_hook *function;
	void *data;
};
static struct entry **list, *own; /* NULL: not found */

static enum { WAITING, STARTING, STARTED } state;
static uint32_t tries;

static int read_own(void *data, uint64_t address, void *to, size_t bytes)
{
	(void)data;
	memcpy(to, (const void *)address, bytes);
	return 0;
}

static bool is_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool is_the_end(const char *event)
{
	return event[0] == 'c' && is_prefix(event, "cpython._PySys_ClearAuditHooks");
}

/* The interpreter has ended, but for the rest of its Py_Finalize(): there may be another one. */
static void has_ended(void)
{
	own->next = *list;
	*list = own;
	tries = 0;
	state = WAITING;
}

static void leave_list(void)
{
	if (!own || *list != own)
		return;
	*list = own->next;
	/* is called once, when the list has been freed; without room there we hear of no other one
	 */
	(void)py_api.Py_AtExit(has_ended);
}

static int heard(const char *event, struct py_object *arguments, void *data)
{
	(void)arguments, (void)data;
	if (__builtin_expect(is_the_end(event), 0)) {
		leave_list();
		return 0;
	}
	if (__builtin_expect(state == STARTED, 1)) {
		if (event[0] == 's' && !strcmp(event, "sys.setprofile"))
			py_profile_taken();
		return 0;
	}
	if (state == STARTING || tries > TRIES || !py_api.Py_IsInitialized())
		return 0;
	tries++;
	state = STARTING; /* what we call is audited, too */
	state = (py_here.minor >= 12 ? py_monitor_start() : py_profile_start()) ? STARTED : WAITING;
	return 0;
}

/* As the interpreter's exported names tell it. */
static uint32_t minor_version(void)
{
	const uint32_t *version = dlsym(RTLD_DEFAULT, "Py_Version");

	if (version)
		return *version >> 24 == 3 ? *version >> 16 & 0xff : 0;
	if (dlsym(RTLD_DEFAULT, XS_PYTHON_SINCE_10))
		return 10;
	return dlsym(RTLD_DEFAULT, XS_PYTHON_SINCE_9) ? 9 : 8;
}

static bool find_functions(void)
{
#define PY_FIND(type, name, arguments)                              \
	if (!(*(void **)&py_api.name = dlsym(RTLD_DEFAULT, #name))) \
		return false;
	PY_FUNCTIONS(PY_FIND)
#undef PY_FIND
	py_api.none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
	py_api.function_of_c = dlsym(RTLD_DEFAULT, "PyCFunction_Type");
	py_api.code = dlsym(RTLD_DEFAULT, "PyCode_Type");
	return py_api.none && py_api.function_of_c && py_api.code;
}

/* In the interpreter's state the list is a pointer that was NULL before, and leads to us. */
static void add_hook(void *runtime)
{
	const ElfW(Sym) *symbol = NULL;
	void **now = runtime, **before;
	size_t size = 0;
	Dl_info info;

	if (dladdr1 && dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol)
		size = symbol->st_size;
	before = (void **)xs_sys(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((long)before < 0 && (long)before > -4096)
		size = 0;
	memcpy(before, now, size);
	(void)PySys_AddAuditHook(heard, NULL);
	for (size_t i = 0; i < size / sizeof(*now) && !own; i++) {
		struct entry *entry = before[i] ? NULL : now[i];

		if (entry && entry->function == heard) {
			list = (struct entry **)&now[i];
			own = entry;
		}
	}
	if (size)
		(void)xs_sys(SYS_munmap, before, size);
}

/* One that dlopen() brought has come when it was too late. */
static void at_end(void)
{
	const struct xs_options *options = xs_joined() ? xs_options_of_run() : NULL;

	if (!options || !options->python_stacks[0] || !xs_has_library("libpython3"))
		return;
	xs_tell_unseen(XS_SEEN_PYTHON);
	xs_tell_unseen(XS_UNSEEN_PYTHON_OPENED);
}

static __attribute__((constructor)) void loaded(void)
{
	static struct xs_hook at_the_end = { .function = at_end };
	const struct xs_options *options;
	void *runtime;

	if (!PySys_AddAuditHook) {
		xs_at_end(&at_the_end);
		return;
	}
	options = xs_collector_options();
	if (!options || !options->python_stacks[0])
		return;
	xs_tell_unseen(XS_SEEN_PYTHON);
	runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
	if (!runtime ||
	    xs_python_init(&py_here, read_own, NULL, (uintptr_t)runtime, minor_version()) ||
	    !find_functions() || py_here.free_threaded) {
		xs_tell_unseen(XS_UNSEEN_PYTHON);
		return;
	}
	/* later it may be called only with the lock of the interpreter, which we need not have */
	if (!py_api.Py_IsInitialized())
		add_hook(runtime);
}

/*
 * Three ITT tasks as a static part makes them, by dlopen(): for a program of musl, for which no
 * library of ours is compiled.
 */
#include <dlfcn.h>
#include <stdlib.h>

struct id {
	unsigned long long word[3];
};

int main(void)
{
	void *library = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_NOW);
	void *(*domain)(const char *), *(*name)(const char *), *of;
	void (*begin)(void *, struct id, struct id, void *), (*end)(void *);
	struct id none = { { 0 } };

	if (!library)
		return 1;
	*(void **)&domain = dlsym(library, "__itt_domain_create");
	*(void **)&name = dlsym(library, "__itt_string_handle_create");
	*(void **)&begin = dlsym(library, "__itt_task_begin");
	*(void **)&end = dlsym(library, "__itt_task_end");
	of = domain("musl");
	for (int i = 0; i < 3; i++) {
		begin(of, none, none, name("t"));
		end(of);
	}
	return 0;
}

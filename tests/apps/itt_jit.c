/*
 * A just-in-time compiler that tells what it has made, through the real jitprofiling.
 */
#include <jitprofiling.h>

#include "app.h"

static char code[4096];

static void load(const char *name, const char *source, size_t at, unsigned int size)
{
	iJIT_Method_Load method = {
		.method_id = iJIT_GetNewMethodID(),
		.method_name = (char *)(uintptr_t)name,
		.method_load_address = code + at,
		.method_size = size,
		.source_file_name = (char *)(uintptr_t)source,
	};

	iJIT_NotifyEvent(iJVM_EVENT_TYPE_METHOD_LOAD_FINISHED, &method);
	if (size)
		printf("method: %p %u %s\n", (void *)(code + at), size, name);
}

int main(void)
{
	iJIT_Method_Load no_id = { .method_name = code,
				   .method_load_address = code,
				   .method_size = 1 };

	printf("active: %d\n", iJIT_IsProfilingActive() == iJIT_SAMPLING_ON);
	load("compiled", NULL, 0, 64);
	load("ns::Class::method(int, \"text\")", "file.js", 64, 1000);
	load("gr\303\274n", NULL, 2000, 1);
	load("without code", NULL, 0, 0);
	(void)iJIT_NotifyEvent(iJVM_EVENT_TYPE_METHOD_LOAD_FINISHED, &no_id);
	(void)iJIT_NotifyEvent(iJVM_EVENT_TYPE_SHUTDOWN, NULL);
	return 0;
}

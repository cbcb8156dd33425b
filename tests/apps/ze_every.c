/*
 * ze_every FUNCTION=ARGUMENTS...: calls functions of Level Zero by their names, in the loader that
 * it is linked with. Over the loader's driver that does nothing (ZE_ENABLE_NULL_DRIVER=1) they can
 * be called in any order. Of ARGUMENTS each letter is an argument: p the address of zeros, which
 * are a count, a handle or a struct, and n the number 0.
 */
#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <stdio.h>
#include <string.h>

typedef ze_result_t any_function(void *, void *, void *, void *, void *, void *, void *, void *,
				 void *, void *, void *, void *);

int main(int argc, char **argv)
{
	static char zeros[1 << 16];
	void *values[12] = { NULL };
	any_function *function;

	if (zeInit(0))
		return 1;
	for (int i = 1; i < argc; i++) {
		const char *name = strtok(argv[i], "="), *arguments = strtok(NULL, "=");

		for (int k = 0; arguments && arguments[k] && k < 12; k++)
			values[k] = arguments[k] == 'p' ? zeros : NULL;
		*(void **)&function = dlsym(RTLD_DEFAULT, name);
		memset(zeros, 0, sizeof(zeros));
		if (function)
			printf("%s: %x\n", name,
			       function(values[0], values[1], values[2], values[3], values[4],
					values[5], values[6], values[7], values[8], values[9],
					values[10], values[11]));
	}
	return 0;
}

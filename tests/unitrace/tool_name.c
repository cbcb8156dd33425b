/*
 * Only for unitrace's temporal program, which looks into LD_PRELOAD for the directory of unitrace's
 * own library and takes the program `unitrace` from there: in that program LD_PRELOAD names this
 * library alone, as it stands.
 */
#include <dlfcn.h>
#include <stdlib.h>

static void __attribute__((constructor)) start(void)
{
	Dl_info info;

	if (dladdr((void *)(size_t)start, &info) && info.dli_fname)
		(void)setenv("LD_PRELOAD", info.dli_fname, 1);
}

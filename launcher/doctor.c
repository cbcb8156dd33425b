/*
 * --doctor: xstrace-doctor opens the drivers' libraries, which this program, linked statically,
 * cannot load.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "text.h"

int xs_doctor(const struct xs_options *options, char *const *argv)
{
	char path[PATH_MAX], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char **words;
	size_t count = 0;

	while (argv[count])
		count++;
	words = calloc(count + 4, sizeof(*words));
	if (!words || n <= 0 || xs_find_program(XS_PART_DOCTOR, path) < 0) {
		xs_tell("xstrace: xstrace-doctor is not where it belongs, in ../lib/xstrace beside "
			"this program\n");
		return XS_EXIT_SELF;
	}
	self[n] = '\0';
	words[0] = "xstrace-doctor";
	words[1] = options->json ? "json" : "text";
	words[2] = self;
	memcpy(words + 3, argv, count * sizeof(*words));
	xs_limits_restore(); /* those that applications have */
	execv(path, (char *const *)words);
	xs_tell("xstrace: %s: %s\n", path, strerror(errno));
	return XS_EXIT_SELF;
}

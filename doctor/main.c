/*
 *	xstrace-doctor text|json LAUNCHER [PROGRAM ARGS…]	xstrace --doctor
 *	xstrace-doctor probe KIND [LIBRARY]			what that traces (probe.c)
 */
#include <string.h>

#include "doctor.h"
#include "options.h"

int main(int argc, char **argv)
{
	bool json = argc > 2 && !strcmp(argv[1], "json");

	if (argc > 2 && !strcmp(argv[1], "probe"))
		return dr_probe(argv[2], argv[3]);
	if (argc < 3 || (!json && strcmp(argv[1], "text") != 0)) {
		fprintf(stderr, "xstrace-doctor: called by xstrace --doctor\n");
		return XS_EXIT_SELF;
	}
	dr_machine();
	dr_apis();
	if (argc > 3)
		dr_app(argv + 3);
	dr_try(argv[2]);
	return dr_print(json);
}

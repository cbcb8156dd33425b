/*
 * Directories that the user has named for results, and what is made below them. Links on the way
 * to them are the user's choice when the run begins. Later, and below them, there is none: who may
 * write somewhere on the way would else choose where this user makes files.
 */
#ifndef XS_BELOW_H
#define XS_BELOW_H

#include "run.h"

enum xs_base {
	XS_BASE_OUTPUT, /* --output-dir-path, --result-dir, or the working directory */
	XS_BASE_REPORT, /* where the reports of -o are */
	XS_BASE_PATH,	/* where the path itself says, links and all */
};

/* Where links lead now. */
void xs_below_resolve(struct xs_run *run);
void xs_below_fini(struct xs_run *run);
/*
 * The directory (O_PATH) in which `path` is to be made, and its name there. path: as the user is
 * told it, its last `depth` components below the base. A descriptor that the caller closes, or
 * -errno: -ENOTDIR where a link is.
 */
int xs_below_open(struct xs_run *run, enum xs_base base, const char *path, unsigned depth,
		  const char **ret_name);
/* Makes a directory there, mode 0777. 0 or -errno. */
int xs_below_make_directory(struct xs_run *run, enum xs_base base, const char *path,
			    unsigned depth);
/* Makes a file there, for reading and writing, mode 0666. The descriptor or -errno. */
int xs_below_create(struct xs_run *run, enum xs_base base, const char *path, unsigned depth);

#endif

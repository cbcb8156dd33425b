/*
 * The line that tells where a file is.
 */
#ifndef XS_STORED_H
#define XS_STORED_H

#include "output.h"

/*
 * For a file that is complete and closed: "[INFO] Timeline is stored in PATH", with what =
 * "Timeline is". `device` and `inode` are the file's. Whoever looks after traces may have removed,
 * moved or replaced it meanwhile: then the line says that instead. `error`: not 0 if the disk was
 * full.
 */
void xs_tell_stored(const char *what, const char *path, uint64_t device, uint64_t inode, int error);

/* The same after xs_output_close(); or that somebody has cut the file meanwhile. */
void xs_tell_output(const char *what, const char *path, const struct xs_output *out, int error);

#endif

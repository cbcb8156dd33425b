/*
 * Where programs of ours are; and how a path is shown and kept: from the root, so that it means the
 * same in another directory and looks alike in every line.
 */
#ifndef XS_PATHS_H
#define XS_PATHS_H

#include <stddef.h>

/*
 * The path from the root, without "." and doubled slashes; ".." only goes where it cannot be behind
 * a link. It need not exist; "" is the working directory. 0 or -errno; `out` always holds a text,
 * at worst the path as it was given.
 */
int xs_path_from_root(const char *path, char *out, size_t size);

/*
 * Where a program of ours is: beside this one, or in `folder` beside this one's, as in a build
 * directory. `out` has PATH_MAX bytes.
 */
void xs_path_of_program(const char *name, const char *folder, char *out);

#endif

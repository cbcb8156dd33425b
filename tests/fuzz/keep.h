/*
 * What a fuzz target makes once and uses again in each run: a traced process's files and their
 * mappings. Most of the time of a run went into making them.
 *
 * The drain side removes a process's files when it is done with the process: from keep_files(true)
 * on they stay. xs_shm_map_at() of a file that is mapped already gives the same mapping, and
 * munmap() leaves it. (All by the linker's --wrap.)
 */
#ifndef KEEP_H
#define KEEP_H

#include <stdbool.h>

void keep_files(bool keep);
/*
 * The same for those that the drain side makes beside them: a new one is the old one, emptied. For
 * targets that make none themselves.
 */
void keep_drain_files(void);

#endif

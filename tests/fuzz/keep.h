/*
 * What a fuzz target makes once and uses again in each run: a traced process's files and their mappings. Most of the time of a run went into making them.
 *
 * The drain side removes a process's files when it is done with the process; keep_restore() links them in again. mmap() of a file that is mapped
 * already gives the same mapping (the linker's --wrap), and munmap() leaves it.
 */
#ifndef KEEP_H
#define KEEP_H

#include "rundir.h"

/* All files of the run directory that belong to processes, as they are now. */
void keep_files(struct rundir *dir);
/* They are there again. */
void keep_restore(struct rundir *dir);


#endif

/*
 * A file that is there as a whole or not at all: it is written under a name of its own, beside the
 * place where it will be, and takes its name when it is complete. What ends the program before
 * removes it. One at a time.
 */
#ifndef XM_NEW_FILE_H
#define XM_NEW_FILE_H

#include <stddef.h>

/* Removes what is unfinished when a signal ends the program. To be called once. */
void xm_new_file_init(void);
/* A descriptor to write, or -errno: whoever closes it does so before the two below. */
int xm_new_file_open(const char *wanted);
/*
 * It is complete, and takes its name; where that is taken, one with a number: "all.json",
 * "all-2.json". path has PATH_MAX bytes: the name. 0, or -errno and it is removed.
 */
int xm_new_file_keep(const char *wanted, char *path);
/* It is removed. */
void xm_new_file_drop(void);

#endif

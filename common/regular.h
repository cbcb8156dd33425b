/*
 * Opening files that others have named: a traced program, a file that is looked at.
 */
#ifndef XS_REGULAR_H
#define XS_REGULAR_H

/*
 * For reading; -1 and errno. What is no file is not opened at all: opening is enough to arm a
 * watchdog, to rewind a tape, or to be bound to a terminal.
 */
int xs_open_regular(const char *path);

#endif

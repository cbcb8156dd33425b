/* What a command prints on stdout, by stdio. */
#ifndef XS_STREAMS_H
#define XS_STREAMS_H

#include <stdbool.h>

/*
 * Others with the same terminal or pipe may have made it non-blocking: from now on it waits for its
 * reader all the same. What they do with it stays as it was.
 */
void xs_stdout_waits(void);
/* Is all that has been printed on its way? If not, a line says so, unless nobody reads any more. */
bool xs_printed(const char *program);

#endif

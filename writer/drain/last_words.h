/*
 * Where stderr is a pipe, somebody may read until all have closed it: a shell's $(…), a script that
 * captures. Without us that is when the program's processes have.
 */
#ifndef XS_LAST_WORDS_H
#define XS_LAST_WORDS_H

#include "loop.h"

/*
 * To be called again and again when the application has ended: closes our stderr if it is a pipe or
 * socket which no process of the run has any more. A line says so.
 */
void xs_last_words(struct xs_loop *loop);

#endif

/*
 * What a process is, for people: see title.c.
 */
#ifndef XS_TITLE_H
#define XS_TITLE_H

#include "traced.h"

/* As it was when the process joined; `arguments` may change meanwhile. */
void xs_title_first(struct xs_process *process, const char *arguments, uint32_t length);
/* Looks what the process is called now, if it is time. */
void xs_title_look(struct xs_process *process);
/* One plain line, never empty. */
const char *xs_title_of(struct xs_process *process);
/* How many of at most `most` bytes of UTF-8 are whole characters. */
size_t xs_title_cut(const char *text, size_t length, size_t most);

#endif

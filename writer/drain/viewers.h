/*
 * Who looks at the run while it goes on (--top, --export): see viewers.c.
 */
#ifndef XS_VIEWERS_H
#define XS_VIEWERS_H

#include "loop.h"

/* Has somebody asked who is not served yet? */
bool xs_viewers_due(const struct xs_run *run);
/* Before rings are read: what is read from here on is counted for who looks. */
void xs_viewers_watch(struct xs_loop *loop);
/* Behind it: makes the picture that was asked for. */
void xs_viewers_serve(struct xs_loop *loop);

#endif

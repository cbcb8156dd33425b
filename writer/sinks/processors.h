/*
 * Kernels of processors, and what those have counted meanwhile: processors.c.
 */
#ifndef XS_PROCESSORS_H
#define XS_PROCESSORS_H

struct xs_run;

/* Nobody has asked for them, or they are written. */
void xs_processors_free(struct xs_run *run);

#endif

/*
 * What the fuzz targets of the drain side have in common: which outputs are asked for, and what is
 * made of them.
 */
#ifndef VERDICT_H
#define VERDICT_H

#include "rundir.h"

/* Each bit of the two is one option, or part of one. */
void verdict_options(struct xs_options *options, unsigned wishes, unsigned reports);
/*
 * What is not valid ends the program: a trace that is no trace, a JSON report that is no JSON. Then
 * removes it.
 */
void verdict(struct rundir *dir);

#endif

/*
 * The passes over all inputs, and what they have at hand.
 */
#ifndef XM_PASSES_H
#define XM_PASSES_H

#include "late.h"
#include "mend.h"
#include "report.h"
#include "tree.h"
#include "uncertainty.h"

struct xm_work {
	struct xm_merge *merge;
	struct xm_clocks *clocks;
	struct xm_mend *mend;
	struct xm_uncertainty *uncertainty;
	struct xm_mpi *mpi;
	struct xm_sink *sink;
	struct xm_tree *tree;
	struct xm_report *report;
	struct xm_late *late;
	struct xm_totals totals;
	uint64_t next_id;
	bool tied; /* clocks, by anything */
	int error; /* of the pass: -ENOMEM */
};

/* What is in the inputs, and what ties the clocks together. 0 or -ENOMEM. */
int xm_pass_first(struct xm_work *work);
/*
 * The same once more, after all is known that the first pass found out about the inputs: clocks are
 * tied by what is sure. 0 or -ENOMEM.
 */
int xm_pass_again(struct xm_work *work);
/*
 * Between the two, if clocks did not run evenly: as many passes as it takes until no message
 * arrives too early. The first of them finds how far the clocks can be off. 0 or -ENOMEM.
 */
int xm_pass_mend(struct xm_work *work);
/* Writes the events, if there is a sink, and finds what the report tells. 0 or -ENOMEM. */
int xm_pass_second(struct xm_work *work);
/* For a report: what ranks did while others waited for them. 0 or -ENOMEM. */
int xm_pass_late(struct xm_work *work);

#endif

/*
 * How far each rank was moved, and on what evidence: for the report, and for what the merged trace
 * says of its clocks.
 */
#ifndef XM_EVIDENCE_H
#define XM_EVIDENCE_H

#include "clocks.h"

/*
 * Members of an object, a comma before each: which calls tie the clock to others, and what proves
 * that it is not its host's.
 */
void xm_evidence_json(FILE *out, const struct xm_clock *clock);
/* The report's part: text, or a member of its object. */
void xm_evidence_report(FILE *out, const struct xm_merge *merge, const struct xm_clocks *clocks,
			bool json);
/* One line on stderr for each host whose ranks do not have one clock. */
void xm_evidence_say(const struct xm_merge *merge, const struct xm_clocks *clocks);

#endif

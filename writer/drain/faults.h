/*
 * Mapped files that are cut: see faults.c.
 */
#ifndef XS_FAULTS_H
#define XS_FAULTS_H

/* From here on what is cut off a mapped file reads as zero, instead of ending this process. */
void xs_faults_catch(void);
/* How many pages that were so far. */
unsigned xs_faults(void);

#endif

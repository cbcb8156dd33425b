/*
 * Where ranks wait for each other: by communicator and function, with the ranks that were waited
 * for.
 */
#ifndef XM_REPORT_H
#define XM_REPORT_H

#include "mpi.h"

struct xm_report;

struct xm_late;
struct xm_report *xm_report_create(struct xm_late *late);
void xm_report_sent(struct xm_report *report, uint64_t comm, const struct xm_end *work);
/* A wait of a row that late progress made longer; as xm_late_solve() tells it. */
void xm_report_late(void *report, uint32_t row, int32_t who, int32_t partner, uint64_t ns);
/* The parts of an xm_mpi_sink; times are true. */
void xm_report_call(struct xm_report *report, uint64_t comm, const struct xm_function *function,
		    const struct xm_end *end);
void xm_report_message(struct xm_report *report, uint64_t comm, const struct xm_function *send,
		       const struct xm_function *receive, const struct xm_end *from,
		       const struct xm_end *to);
void xm_report_collective(struct xm_report *report, const struct xm_collective *collective);
/* mpi: knows what communicators are called. */
void xm_report_print(const struct xm_report *report, const struct xm_mpi *mpi, FILE *out,
		     bool json);
void xm_report_free(struct xm_report *report);

#endif

/*
 * Which kernels ran when, on which device: in memory that all processes share which SOFTCUDA_SHM
 * names the same file. What samples devices in one of them sees what the others execute.
 */
#ifndef SOFTCUDA_HISTORY_H
#define SOFTCUDA_HISTORY_H

#include "driver.h"

struct sc_past {
	uint64_t start, end; /* as CUPTI stamps them */
	uint64_t blocks, threads;
	uint32_t device;
};

void sc_history_open(const char *path);
/* A kernel is about to start; begin returns its start, and a place for end. */
uint64_t sc_history_begin(const struct sc_cmd *cmd, int *ret_place);
void sc_history_end(const struct sc_cmd *cmd, int place);
/* Up to which time it is known what the device has done. */
uint64_t sc_history_known(uint32_t device) SC_SHARED;
/* The n-th kernel that ended, of all devices. False: there is none, or it is too long ago. */
bool sc_history_past(uint64_t n, struct sc_past *ret) SC_SHARED;
uint64_t sc_history_count(void) SC_SHARED;

#endif

/*
 * XPTI's framework in software: what a runtime calls to tell of its events. It loads subscribers
 * and calls them as the real one does, and keeps events' metadata in the memory layout of the real
 * one's. tests/test_xpti.py runs it; tests/clients/xpti_abi.cpp compares the layouts.
 */
#ifndef SOFTXPTI_H
#define SOFTXPTI_H

#include "xpti_abi.h"

/*
 * A stream of the runtime's, which subscribers are told of; `version`: the framework's own. With 1
 * the Unified Runtime is of version 0.12.
 */
uint8_t soft_stream(const char *name, unsigned version);
void soft_notify(uint8_t stream, uint16_t type, const struct xpti_event *event, uint64_t instance,
		 const void *data);
/* Another pair of the event's metadata. */
void soft_text(struct xpti_event *event, const char *key, const char *text);
void soft_number(struct xpti_event *event, const char *key, uint64_t number);
void soft_clear(struct xpti_event *event);

#endif

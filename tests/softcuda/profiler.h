/*
 * The software CUDA's CUPTI (libcupti): what its parts share. A session is what one client has
 * enabled, its buffers, and what was dropped: number 0 is that of the calls without a subscriber,
 * the others belong to those who subscribed by the _v2 calls (CUPTI 13.3 and later).
 */
#ifndef SOFTCUDA_PROFILER_H
#define SOFTCUDA_PROFILER_H

#include "driver.h"

#include <cupti.h>

enum { SU_SUBSCRIBERS = 4, SU_SESSIONS = SU_SUBSCRIBERS + 1, SU_CBIDS = 1024, SU_KINDS = 64 };
enum { SU_EXTERNAL_KINDS = 8, SU_EXTERNAL_DEPTH = 64 };

struct su_subscriber {
	bool used, multiple;
	CUpti_CallbackFunc function;
	void *data;
	uint8_t on[CUPTI_CB_DOMAIN_SIZE][SU_CBIDS];
	_Atomic unsigned count[CUPTI_CB_DOMAIN_SIZE];
};
extern struct su_subscriber su_subscribers[SU_SUBSCRIBERS];
struct su_session *su_session_of(CUpti_SubscriberHandle handle); /* NULL: no such subscriber */

struct su_buffer {
	struct su_buffer *next;
	struct su_session *session;
	uint8_t *at, *told; /* the client's; as it is to be when all is told */
	size_t size, used, records, records_max;
};

struct su_session {
	bool used, kind[SU_KINDS], off[2][SU_CBIDS]; /* off: calls of driver and runtime */
	struct {
		struct sc_context *context;
		uint64_t on, off; /* kinds that differ from the session's */
	} contexts[16];
	CUpti_BuffersCallbackRequestFunc request;
	CUpti_BuffersCallbackCompleteFunc complete;
	CUpti_BuffersCallbackRequestFunc_v2 request_v2;
	CUpti_BuffersCallbackCompleteFunc_v2 complete_v2;
	struct su_buffer *current;
	uint64_t puts;
	_Atomic size_t dropped;
};
extern struct su_session su_sessions[SU_SESSIONS];

extern const char *const su_driver_callbacks[SU_CBIDS], *const su_runtime_callbacks[SU_CBIDS];
extern bool su_latency;
uint32_t su_version(void);
size_t su_record_size(unsigned kind, uint32_t version);
size_t su_size(unsigned kind);
bool su_wants(unsigned kind, const struct sc_context *context);
/* The thread that hands buffers back: its signals are those of the thread that calls this. */
void su_start_worker(void);
void su_put(unsigned kind, const struct sc_context *context, const void *record);
void su_flush_all(bool forced);
void su_hand_back(void);
void su_watch_fork(void);
void su_refresh(void); /* after anything was enabled or disabled */
void su_hooks_start(void);
void su_tell_objects(struct sc_tool *tool);
void su_tell_graphs(struct sc_tool *tool);
void su_put_graph(const struct sc_cmd *cmd);
void su_put_host(const struct sc_cmd *cmd);
bool su_unified(void); /* cuptiActivityConfigureUnifiedMemoryCounter() was called */
void su_put_external(uint32_t corr);
void su_dump(unsigned kind);
void su_callback(unsigned domain, unsigned cbid, const void *data);
bool su_hears(unsigned domain, unsigned cbid);
void su_call_back(struct sc_call *call, CUpti_ApiCallbackSite site);
bool su_hears_calls(void);

/* what a call of CUPTI begins with: a fault that was asked for, and the hooks */
#define SU_BEGIN()                                  \
	do {                                        \
		int fault_ = su_fault(__func__);    \
		if (fault_ >= 0)                    \
			return (CUptiResult)fault_; \
	} while (0)
int su_fault(const char *function);

#endif

/* NVTX, as CUPTI hears it: the library that NVTX_INJECTION64_PATH names is asked to fill in the
 * tables of NVTX's functions. Each makes callbacks of the NVTX domain, and records. */
#include "profiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <generated_nvtx_meta.h>

#define EXPORT	__attribute__((visibility("default")))
#define CBID(n) CUPTI_CBID_NVTX_##n

enum { DEPTH_MAX = 64 };

struct text { /* a domain, a registered string: what a handle stands for */
	struct text *next;
	char *name;
};

static _Atomic uint32_t last_id;
static __thread struct {
	uint32_t id;
	const struct text *domain;
} stack[DEPTH_MAX];
static __thread unsigned depth;

static struct text *text_make(const char *name)
{
	struct text *text = calloc(1, sizeof(*text));

	text->name = strdup(name ? name : "");
	return text;
}

static char *narrow(const wchar_t *wide)
{
	size_t size = wide ? wcslen(wide) * 4 + 1 : 1;
	char *text = calloc(1, size);

	if (wide && wcstombs(text, wide, size) == (size_t)-1)
		for (size_t i = 0; wide[i]; i++)
			text[i] = (char)(wide[i] < 128 ? wide[i] : '?');
	return text;
}

static void hear(unsigned cbid, const char *name, const void *params)
{
	CUpti_NvtxData data = { .functionName = name, .functionParams = params };

	if (su_hears(CUPTI_CB_DOMAIN_NVTX, cbid))
		su_callback(CUPTI_CB_DOMAIN_NVTX, cbid, &data);
}

static void put_data(uint32_t id, const nvtxEventAttributes_t *from)
{
	CUpti_ActivityMarkerData2 record = { .kind = CUPTI_ACTIVITY_KIND_MARKER_DATA, .id = id };

	if (!from || !su_wants(CUPTI_ACTIVITY_KIND_MARKER_DATA, NULL))
		return;
	record.flags = from->colorType ? CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB
				       : CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE;
	record.color = from->color;
	record.category = from->category;
	switch (from->payloadType) {
	case NVTX_PAYLOAD_TYPE_DOUBLE:
		record.payloadKind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
		record.payload.metricValueDouble = from->payload.dValue;
		break;
	case NVTX_PAYLOAD_TYPE_INT64:
		record.payloadKind = CUPTI_METRIC_VALUE_KIND_INT64;
		record.payload.metricValueInt64 = from->payload.llValue;
		break;
	default:
		record.payloadKind = CUPTI_METRIC_VALUE_KIND_UINT64;
		record.payload.metricValueUint64 = from->payload.ullValue;
	}
	su_put(CUPTI_ACTIVITY_KIND_MARKER_DATA, NULL, &record);
}

/* names stay: a record has no more than a pointer */
static void put(uint32_t id, unsigned flags, const struct text *domain, const char *name,
		const nvtxEventAttributes_t *from)
{
	CUpti_ActivityMarker2 record = { .kind = CUPTI_ACTIVITY_KIND_MARKER };

	if (!su_wants(CUPTI_ACTIVITY_KIND_MARKER, NULL))
		return;
	record.flags = (CUpti_ActivityFlag)flags;
	record.timestamp = sc_now();
	record.id = id;
	record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
	record.objectId.pt.processId = sc_pid;
	record.objectId.pt.threadId = sc_thread();
	record.name = flags & CUPTI_ACTIVITY_FLAG_MARKER_END ? NULL : strdup(name ? name : "");
	record.domain = domain ? domain->name : NULL;
	su_put(CUPTI_ACTIVITY_KIND_MARKER, NULL, &record);
	put_data(id, from);
}

static const char *name_of(const nvtxEventAttributes_t *from)
{
	if (!from)
		return "";
	switch (from->messageType) {
	case NVTX_MESSAGE_TYPE_ASCII:
		return from->message.ascii;
	case NVTX_MESSAGE_TYPE_UNICODE:
		return narrow(from->message.unicode);
	case NVTX_MESSAGE_TYPE_REGISTERED:
		return ((const struct text *)from->message.registered)->name;
	default:
		return "";
	}
}

static uint32_t new_id(void)
{
	return atomic_fetch_add(&last_id, 1) + 1;
}

static void mark(const struct text *domain, const char *name, const nvtxEventAttributes_t *from)
{
	put(new_id(), CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, domain, name, from);
}

static nvtxRangeId_t start(const struct text *domain, const char *name,
			   const nvtxEventAttributes_t *from)
{
	uint32_t id = new_id();

	put(id, CUPTI_ACTIVITY_FLAG_MARKER_START, domain, name, from);
	return id;
}

static int push(const struct text *domain, const char *name, const nvtxEventAttributes_t *from)
{
	int level = 0;

	if (depth == DEPTH_MAX)
		return NVTX_NO_PUSH_POP_TRACKING;
	for (unsigned i = 0; i < depth; i++)
		level += stack[i].domain == domain;
	stack[depth].domain = domain;
	stack[depth++].id = (uint32_t)start(domain, name, from);
	return level;
}

static int pop(const struct text *domain)
{
	int level = -1;

	for (unsigned i = 0; i < depth; i++)
		level += stack[i].domain == domain;
	for (unsigned i = depth; i-- > 0;) {
		if (stack[i].domain != domain)
			continue;
		put(stack[i].id, CUPTI_ACTIVITY_FLAG_MARKER_END, domain, NULL, NULL);
		memmove(&stack[i], &stack[i + 1], (--depth - i) * sizeof(stack[0]));
		return level;
	}
	return NVTX_NO_PUSH_POP_TRACKING;
}

#define HEAR(function, ...)                                  \
	do {                                                 \
		function##_params params_ = { __VA_ARGS__ }; \
		hear(CBID(function), #function, &params_);   \
	} while (0)

static void on_mark_a(const char *message)
{
	HEAR(nvtxMarkA, message);
	mark(NULL, message, NULL);
}

static void on_mark_w(const wchar_t *message)
{
	HEAR(nvtxMarkW, message);
	mark(NULL, narrow(message), NULL);
}

static void on_mark(const nvtxEventAttributes_t *from)
{
	HEAR(nvtxMarkEx, from);
	mark(NULL, name_of(from), from);
}

static nvtxRangeId_t on_start_a(const char *message)
{
	HEAR(nvtxRangeStartA, message);
	return start(NULL, message, NULL);
}

static nvtxRangeId_t on_start_w(const wchar_t *message)
{
	HEAR(nvtxRangeStartW, message);
	return start(NULL, narrow(message), NULL);
}

static nvtxRangeId_t on_start(const nvtxEventAttributes_t *from)
{
	HEAR(nvtxRangeStartEx, from);
	return start(NULL, name_of(from), from);
}

static void on_end(nvtxRangeId_t id)
{
	HEAR(nvtxRangeEnd, id);
	put((uint32_t)id, CUPTI_ACTIVITY_FLAG_MARKER_END, NULL, NULL, NULL);
}

static int on_push_a(const char *message)
{
	HEAR(nvtxRangePushA, message);
	return push(NULL, message, NULL);
}

static int on_push_w(const wchar_t *message)
{
	HEAR(nvtxRangePushW, message);
	return push(NULL, narrow(message), NULL);
}

static int on_push(const nvtxEventAttributes_t *from)
{
	HEAR(nvtxRangePushEx, from);
	return push(NULL, name_of(from), from);
}

static int on_pop(void)
{
	HEAR(nvtxRangePop, NULL);
	return pop(NULL);
}

static void put_name(CUpti_ActivityObjectKind kind, CUpti_ActivityObjectKindId id, const char *name)
{
	CUpti_ActivityName record = { .kind = CUPTI_ACTIVITY_KIND_NAME, .objectKind = kind };

	if (!su_wants(CUPTI_ACTIVITY_KIND_NAME, NULL))
		return;
	record.objectId = id;
	record.name = strdup(name);
	su_put(CUPTI_ACTIVITY_KIND_NAME, NULL, &record);
}

static void on_category(uint32_t category, const char *name)
{
	HEAR(nvtxNameCategoryA, category, name);
}

static void on_thread(uint32_t thread, const char *name)
{
	CUpti_ActivityObjectKindId id = { .pt = { sc_pid, thread } };

	HEAR(nvtxNameOsThreadA, thread, name);
	put_name(CUPTI_ACTIVITY_OBJECT_THREAD, id, name);
}

static void name_stream(CUstream stream, const char *name)
{
	const struct sc_stream *of = sc_stream_of(stream);
	CUpti_ActivityObjectKindId id = { .dcs = { 0, 0, 0 } };

	if (!of)
		return;
	id.dcs.deviceId = (uint32_t)of->context->device->ordinal;
	id.dcs.contextId = of->context->id;
	id.dcs.streamId = of->id;
	put_name(CUPTI_ACTIVITY_OBJECT_STREAM, id, name);
}

static void on_cu_device(CUdevice device, const char *name)
{
	CUpti_ActivityObjectKindId id = { .dcs = { (uint32_t)device, 0, 0 } };

	HEAR(nvtxNameCuDeviceA, device, name);
	put_name(CUPTI_ACTIVITY_OBJECT_DEVICE, id, name);
}

static void on_cu_context(CUcontext context, const char *name)
{
	const struct sc_context *of = (struct sc_context *)context;
	CUpti_ActivityObjectKindId id = { .dcs = { 0, 0, 0 } };

	HEAR(nvtxNameCuContextA, context, name);
	if (!of)
		return;
	id.dcs.deviceId = (uint32_t)of->device->ordinal;
	id.dcs.contextId = of->id;
	put_name(CUPTI_ACTIVITY_OBJECT_CONTEXT, id, name);
}

static void on_cu_stream(CUstream stream, const char *name)
{
	HEAR(nvtxNameCuStreamA, stream, name);
	name_stream(stream, name);
}

static void on_cu_event(CUevent event, const char *name)
{
	HEAR(nvtxNameCuEventA, event, name);
}

static void on_cuda_device(int device, const char *name)
{
	CUpti_ActivityObjectKindId id = { .dcs = { (uint32_t)device, 0, 0 } };

	HEAR(nvtxNameCudaDeviceA, device, name);
	put_name(CUPTI_ACTIVITY_OBJECT_DEVICE, id, name);
}

static void on_cuda_stream(cudaStream_t stream, const char *name)
{
	HEAR(nvtxNameCudaStreamA, stream, name);
	name_stream(stream, name);
}

static void on_cuda_event(cudaEvent_t event, const char *name)
{
	HEAR(nvtxNameCudaEventA, event, name);
}

static void on_domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *from)
{
	HEAR(nvtxDomainMarkEx, domain, { from });
	mark((struct text *)domain, name_of(from), from);
}

static nvtxRangeId_t on_domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *from)
{
	HEAR(nvtxDomainRangeStartEx, domain, { from });
	return start((struct text *)domain, name_of(from), from);
}

static void on_domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
	HEAR(nvtxDomainRangeEnd, domain, { id });
	put((uint32_t)id, CUPTI_ACTIVITY_FLAG_MARKER_END, (struct text *)domain, NULL, NULL);
}

static int on_domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *from)
{
	HEAR(nvtxDomainRangePushEx, domain, { from });
	return push((struct text *)domain, name_of(from), from);
}

static int on_domain_pop(nvtxDomainHandle_t domain)
{
	HEAR(nvtxDomainRangePop, domain);
	return pop((struct text *)domain);
}

static nvtxResourceHandle_t on_resource(nvtxDomainHandle_t domain, nvtxResourceAttributes_t *from)
{
	(void)domain, (void)from;
	hear(CBID(nvtxDomainResourceCreate), "nvtxDomainResourceCreate", NULL);
	return (nvtxResourceHandle_t)text_make("");
}

static void on_domain_category(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
	(void)domain, (void)category, (void)name;
	hear(CBID(nvtxDomainNameCategoryA), "nvtxDomainNameCategoryA", NULL);
}

static nvtxStringHandle_t on_string(nvtxDomainHandle_t domain, const char *string)
{
	HEAR(nvtxDomainRegisterStringA, domain, string);
	return (nvtxStringHandle_t)text_make(string);
}

static nvtxStringHandle_t on_string_w(nvtxDomainHandle_t domain, const wchar_t *string)
{
	return on_string(domain, narrow(string));
}

static nvtxDomainHandle_t on_domain(const char *name)
{
	HEAR(nvtxDomainCreateA, name);
	return (nvtxDomainHandle_t)text_make(name);
}

static nvtxDomainHandle_t on_domain_w(const wchar_t *name)
{
	return on_domain(narrow(name));
}

static void on_domain_destroy(nvtxDomainHandle_t domain)
{
	HEAR(nvtxDomainDestroy, domain);
}

static const struct {
	NvtxCallbackModule module;
	unsigned id;
	void *function;
} functions[] = {
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx, on_mark },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA, on_mark_a },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkW, on_mark_w },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, on_start },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, on_start_a },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW, on_start_w },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, on_end },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, on_push },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, on_push_a },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW, on_push_w },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, on_pop },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameCategoryA, on_category },
	{ NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, on_thread },
	{ NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuDeviceA, on_cu_device },
	{ NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuContextA, on_cu_context },
	{ NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuStreamA, on_cu_stream },
	{ NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuEventA, on_cu_event },
	{ NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaDeviceA, on_cuda_device },
	{ NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaStreamA, on_cuda_stream },
	{ NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaEventA, on_cuda_event },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, on_domain_mark },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, on_domain_start },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, on_domain_end },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, on_domain_push },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, on_domain_pop },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainResourceCreate, on_resource },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainNameCategoryA, on_domain_category },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, on_string },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringW, on_string_w },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, on_domain },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW, on_domain_w },
	{ NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainDestroy, on_domain_destroy },
};

static int attach(NvtxGetExportTableFunc_t get_export_table)
{
	const NvtxExportTableCallbacks *callbacks = get_export_table(NVTX_ETID_CALLBACKS);

	if (!callbacks || callbacks->struct_size < sizeof(*callbacks))
		return 0;
	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		NvtxFunctionTable table;
		unsigned size;

		if (callbacks->GetModuleFunctionTable(functions[i].module, &table, &size) &&
		    functions[i].id < size && table[functions[i].id])
			*(void **)table[functions[i].id] = functions[i].function;
	}
	su_hooks_start();
	return 1;
}

/* what NVTX 3 asks for, and what version 2's library did; a tool that stands between calls the
 * others */
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
	return attach(get_export_table);
}

EXPORT int InitializeInjectionNvtx(NvtxGetExportTableFunc_t get_export_table)
{
	return attach(get_export_table);
}

EXPORT CUptiResult cuptiNvtxInitialize(void *pfnGetExportTable)
{
	SU_BEGIN();
	return attach((NvtxGetExportTableFunc_t)pfnGetExportTable) ? CUPTI_SUCCESS
								   : CUPTI_ERROR_UNKNOWN;
}

EXPORT CUptiResult cuptiNvtxInitialize2(void *pfnGetExportTable)
{
	return cuptiNvtxInitialize(pfnGetExportTable);
}

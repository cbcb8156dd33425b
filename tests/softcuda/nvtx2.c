/* NVTX 2 as a library (libnvToolsExt.so.1): functions that programs link with, whose tables the
 * library that NVTX_INJECTION64_PATH names fills in at the first call. NVTX 3 has all of this in
 * its header. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#define EXPORT __attribute__((visibility("default")))

/* 0 is no function's number */
static NvtxFunctionPointer core[NVTX_CBID_CORE_SIZE], core2[NVTX_CBID_CORE2_SIZE];
static NvtxFunctionPointer *core_table[NVTX_CBID_CORE_SIZE], *core2_table[NVTX_CBID_CORE2_SIZE];

static int module_table(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned *size)
{
	if (module != NVTX_CB_MODULE_CORE && module != NVTX_CB_MODULE_CORE2)
		return 0;
	*table = module == NVTX_CB_MODULE_CORE ? core_table : core2_table;
	if (size)
		*size = module == NVTX_CB_MODULE_CORE ? NVTX_CBID_CORE_SIZE : NVTX_CBID_CORE2_SIZE;
	return 1;
}

static const void *export_table(uint32_t id)
{
	static const NvtxExportTableCallbacks callbacks = { sizeof(callbacks), module_table };

	return id == NVTX_ETID_CALLBACKS ? &callbacks : NULL;
}

static void attach(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
	NvtxInitializeInjectionNvtxFunc_t initialize = NULL;

	for (unsigned i = 1; i < NVTX_CBID_CORE_SIZE; i++)
		core_table[i] = &core[i];
	for (unsigned i = 1; i < NVTX_CBID_CORE2_SIZE; i++)
		core2_table[i] = &core2[i];
	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjectionNvtx");
	if (initialize)
		(void)initialize(export_table);
}

static void *attached(NvtxFunctionPointer *function)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, attach);
	return (void *)*function;
}

#define FUNCTION(table, id, result, otherwise, name, declared, passed) \
	EXPORT result name declared;                                   \
	EXPORT result name declared                                    \
	{                                                              \
		result(*function) declared = attached(&table[id]);     \
                                                                       \
		return function ? function passed : otherwise;         \
	}

FUNCTION(core, NVTX_CBID_CORE_MarkA, void, (void)0, nvtxMarkA, (const char *message), (message))
FUNCTION(core, NVTX_CBID_CORE_MarkEx, void, (void)0, nvtxMarkEx,
	 (const nvtxEventAttributes_t *event), (event))
FUNCTION(core, NVTX_CBID_CORE_RangeStartA, nvtxRangeId_t, 0, nvtxRangeStartA, (const char *message),
	 (message))
FUNCTION(core, NVTX_CBID_CORE_RangeStartEx, nvtxRangeId_t, 0, nvtxRangeStartEx,
	 (const nvtxEventAttributes_t *event), (event))
FUNCTION(core, NVTX_CBID_CORE_RangeEnd, void, (void)0, nvtxRangeEnd, (nvtxRangeId_t id), (id))
FUNCTION(core, NVTX_CBID_CORE_RangePushA, int, -1, nvtxRangePushA, (const char *message), (message))
FUNCTION(core, NVTX_CBID_CORE_RangePushEx, int, -1, nvtxRangePushEx,
	 (const nvtxEventAttributes_t *event), (event))
FUNCTION(core, NVTX_CBID_CORE_RangePop, int, -1, nvtxRangePop, (void), ())
FUNCTION(core, NVTX_CBID_CORE_NameCategoryA, void, (void)0, nvtxNameCategoryA,
	 (uint32_t category, const char *name), (category, name))
FUNCTION(core, NVTX_CBID_CORE_NameOsThreadA, void, (void)0, nvtxNameOsThreadA,
	 (uint32_t thread, const char *name), (thread, name))
FUNCTION(core2, NVTX_CBID_CORE2_DomainCreateA, nvtxDomainHandle_t, NULL, nvtxDomainCreateA,
	 (const char *name), (name))
FUNCTION(core2, NVTX_CBID_CORE2_DomainMarkEx, void, (void)0, nvtxDomainMarkEx,
	 (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event), (domain, event))
FUNCTION(core2, NVTX_CBID_CORE2_DomainRangePushEx, int, -1, nvtxDomainRangePushEx,
	 (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event), (domain, event))
FUNCTION(core2, NVTX_CBID_CORE2_DomainRangePop, int, -1, nvtxDomainRangePop,
	 (nvtxDomainHandle_t domain), (domain))

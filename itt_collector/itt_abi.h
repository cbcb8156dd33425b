/*
 * The facts of the ITT API's binary interface that a collector needs.
 *
 * No Debian package carries the headers, so they are stated here. Source: Intel's ittapi 3.26
 * (ittnotify.h, ittnotify_config.h and the legacy header): the layouts of the structures that pass
 * between client and collector, 64-bit, Linux, and the protocol of ittnotify_static.c (the static
 * part looks up __itt_api_init in the collector and hands it its table of pointers).
 */
#ifndef XS_ITT_ABI_H
#define XS_ITT_ABI_H

#include <pthread.h>
#include <stddef.h>

typedef struct ___itt_domain {
	volatile int flags; /* 0: disabled */
	const char *nameA;
	void *nameW;
	int extra1;   /* the collector's: interned name */
	void *extra2; /* the collector's: id of "domain::(too many names)" */
	struct ___itt_domain *next;
} __itt_domain;

typedef struct ___itt_string_handle {
	const char *strA;
	void *strW;
	int extra1;   /* the collector's: interned text, 0: not yet */
	void *extra2; /* the collector's: struct itt_name, the newest first */
	struct ___itt_string_handle *next;
} __itt_string_handle;

typedef struct ___itt_id {
	unsigned long long d1, d2, d3;
} __itt_id;

typedef struct __itt_counter_info {
	const char *nameA;
	void *nameW;
	const char *domainA;
	void *domainW;
	int type;   /* __itt_metadata_type */
	long index; /* 0, or the collector's */
	int extra1;
	void *extra2; /* the collector's: struct counter */
	struct __itt_counter_info *next;
} __itt_counter_info;

typedef struct ___itt_histogram {
	const __itt_domain *domain;
	const char *nameA;
	void *nameW;
	int x_type, y_type; /* __itt_metadata_type */
	int extra1;	    /* the collector's: interned "domain::name" */
	void *extra2;
	struct ___itt_histogram *next;
} __itt_histogram;

typedef struct ___itt_track_group {
	__itt_string_handle *name;
	struct ___itt_track *track;
	int tgtype;
	int extra1;
	void *extra2;
	struct ___itt_track_group *next;
} __itt_track_group;

typedef struct ___itt_track {
	__itt_string_handle *name;
	__itt_track_group *group;
	int ttype;
	int extra1; /* the collector's: interned name */
	void *extra2;
	struct ___itt_track *next;
} __itt_track;

typedef struct ___itt_clock_info {
	unsigned long long clock_freq; /* Hz */
	unsigned long long clock_base;
} __itt_clock_info;

typedef void (*__itt_get_clock_info_fn)(__itt_clock_info *info, void *data);

typedef struct ___itt_clock_domain {
	__itt_clock_info info;
	__itt_get_clock_info_fn fn;
	void *fn_data;
	int extra1;
	void *extra2;
	struct ___itt_clock_domain *next;
} __itt_clock_domain;

/* __itt_context_type: strings below ITT_CONTEXT_NUMBER, integers from there on */
enum itt_context_type {
	ITT_CONTEXT_UNKNOWN,
	ITT_CONTEXT_NAME_A,
	ITT_CONTEXT_NAME_W,
	ITT_CONTEXT_DEVICE_A,
	ITT_CONTEXT_DEVICE_W,
	ITT_CONTEXT_UNITS_A,
	ITT_CONTEXT_UNITS_W,
	ITT_CONTEXT_PCI_ADDR_A,
	ITT_CONTEXT_PCI_ADDR_W,
	ITT_CONTEXT_TID,
	ITT_CONTEXT_MAX_VALUE,
	ITT_CONTEXT_BANDWIDTH_FLAG,
	ITT_CONTEXT_LATENCY_FLAG,
	ITT_CONTEXT_OCCUPANCY_FLAG,
	ITT_CONTEXT_ON_THREAD_FLAG,
	ITT_CONTEXT_IS_ABS_FLAG,
	ITT_CONTEXT_CPU_INSTRUCTIONS_FLAG,
	ITT_CONTEXT_CPU_CYCLES_FLAG,
};

typedef struct ___itt_context_metadata {
	int type; /* enum itt_context_type */
	void *value;
} __itt_context_metadata;

typedef struct ___itt_section_info {
	const char *name;
	int type;
	size_t flags;
	void *start_addr;
	size_t size, file_offset;
} __itt_section_info;

typedef struct ___itt_module_object {
	unsigned int version;
	__itt_id module_id;
	int module_type;
	const char *module_name;
	void *module_buffer;
	size_t module_size;
	__itt_section_info *section_array;
	size_t section_number;
} __itt_module_object;

enum itt_scope {
	ITT_SCOPE_UNKNOWN,
	ITT_SCOPE_GLOBAL,
	ITT_SCOPE_TRACK_GROUP,
	ITT_SCOPE_TRACK,
	ITT_SCOPE_TASK,
	ITT_SCOPE_MARKER
};

/* One row of the table of a statically linked ittnotify; ends with name NULL. */
struct itt_api_info {
	const char *name;
	void **func_ptr;
	void *init_func;
	void *null_func;
	int group;
};

struct itt_global {
	unsigned char magic[8];
	unsigned long version_major, version_minor, version_build;
	volatile long api_initialized, mutex_initialized, atomic_counter;
	pthread_mutex_t mutex;
	void *lib;
	void *error_handler;
	const char **dll_path_ptr;
	struct itt_api_info *api_list_ptr;
};

/*
 * Those entry points that are called from more than one file. The same name gives the same object.
 */
__itt_domain *__itt_domain_create(const char *name);
__itt_string_handle *__itt_string_handle_create(const char *name);
void __itt_task_begin(const __itt_domain *domain, __itt_id task, __itt_id parent,
		      __itt_string_handle *name);
void __itt_task_end(const __itt_domain *domain);

#endif

/*
 * The facts of the ITT API's binary interface that a collector needs.
 *
 * No Debian package carries the headers, so they are stated here. Source: Intel's ittapi 3.26 (ittnotify.h, ittnotify_config.h): the
 * layouts of __itt_domain, __itt_string_handle, __itt_id, ___itt_api_info and the head of ___itt_global, 64-bit, Linux, and the
 * protocol of ittnotify_static.c (the static part looks up __itt_api_init in the collector and hands it its table of pointers).
 */
#ifndef XS_ITT_ABI_H
#define XS_ITT_ABI_H

#include <pthread.h>

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
	int extra1;   /* the collector's */
	void *extra2; /* the collector's: struct task_name */
	struct ___itt_string_handle *next;
} __itt_string_handle;

typedef struct ___itt_id {
	unsigned long long d1, d2, d3;
} __itt_id;

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

/* What the static part, or a client that looks names up itself, finds in a collector. */
__itt_domain *__itt_domain_create(const char *name);
__itt_string_handle *__itt_string_handle_create(const char *name);
void __itt_task_begin(const __itt_domain *domain, __itt_id task, __itt_id parent, __itt_string_handle *name);
void __itt_task_end(const __itt_domain *domain);
void __itt_api_init(struct itt_global *global, int groups);

#endif

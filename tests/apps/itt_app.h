/*
 * The two ITT calls that the traced programs make all the time, without the two ids that they
 * never use. (ittnotify.h is a system include: our warnings are not for it.)
 */
#ifndef XSTRACE_TESTS_ITT_APP_H
#define XSTRACE_TESTS_ITT_APP_H

#include <ittnotify.h>
#include "app.h"

#define task_begin(domain, name) __itt_task_begin(domain, __itt_null, __itt_null, name)
#define task_end(domain)	 __itt_task_end(domain)

#define finished_task(domain, name)       \
	do {                              \
		task_begin(domain, name); \
		task_end(domain);         \
	} while (0)

#endif

/*
 * What every Level Zero program here begins with: the driver, a device, a context, the module of
 * kernels. Errors end the program with the place, the call and the result, for where this is used
 * they are never what is tested.
 */
#ifndef XSTRACE_TESTS_ZE_APP_H
#define XSTRACE_TESTS_ZE_APP_H

#include <level_zero/ze_api.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "newer.h"

struct ze_app {
	ze_driver_handle_t driver;
	ze_device_handle_t device;
	ze_context_handle_t context;
	ze_module_handle_t module;
	unsigned char *module_bytes;
	size_t module_size;
};

/* Device `device` of the driver, or of its tiles number `tile` if that is not negative. */
void ze_app_open(struct ze_app *ret, unsigned device, int tile);
void ze_app_close(struct ze_app *app);
void ze_app_read_module(struct ze_app *app); /* ze_kernels.so as it was built */
ze_module_handle_t ze_app_module(const struct ze_app *app, ze_module_format_t format);
ze_kernel_handle_t ze_app_kernel(const struct ze_app *app, const char *name);
ze_event_pool_handle_t ze_app_pool(const struct ze_app *app, uint32_t count,
				   ze_event_pool_flags_t flags, bool counter_based);
ze_event_handle_t ze_app_event(ze_event_pool_handle_t pool, uint32_t index);
ze_command_queue_handle_t ze_app_queue(const struct ze_app *app, uint32_t ordinal, uint32_t index);
ze_command_list_handle_t ze_app_list(const struct ze_app *app, uint32_t ordinal, bool in_order);
ze_command_list_handle_t ze_app_immediate(const struct ze_app *app, uint32_t ordinal,
					  uint32_t index, bool in_order);
void *ze_app_host(const struct ze_app *app, size_t size);
void *ze_app_device(const struct ze_app *app, size_t size);
void *ze_app_shared(const struct ze_app *app, size_t size);
/* the loader's symbol, or, if it is too old to have it, what the driver says */
void *ze_app_function(const struct ze_app *app, const char *name);
ze_result_t ze_app_list_sync(const struct ze_app *app, ze_command_list_handle_t list,
			     uint64_t timeout);
void ze_app_arg(ze_kernel_handle_t kernel, uint32_t index, size_t size, const void *value);
_Noreturn void ze_app_fail(const char *file, int line, const char *call, ze_result_t result);

#define ZE_CHECK(call)                                                        \
	do {                                                                  \
		ze_result_t check_result = (call);                            \
		if (check_result != ZE_RESULT_SUCCESS)                        \
			ze_app_fail(__FILE__, __LINE__, #call, check_result); \
	} while (0)

#endif

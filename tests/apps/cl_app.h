/*
 * What every OpenCL program here begins with: the first device, a context, a program. Errors end
 * the program with the place, the call and OpenCL's number, for they are never what is tested.
 */
#ifndef XSTRACE_TESTS_CL_APP_H
#define XSTRACE_TESTS_CL_APP_H

#define CL_TARGET_OPENCL_VERSION	  300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: programs still use it */
#include <CL/cl.h>
#include "app.h"

struct cl_app {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
};

void cl_app_open(struct cl_app *ret, const char *source);
void cl_app_close(struct cl_app *app);
cl_kernel cl_app_kernel(const struct cl_app *app, const char *name);
cl_mem cl_app_buffer(const struct cl_app *app, size_t size);
_Noreturn void cl_app_fail(const char *file, int line, const char *call, cl_int err);

#define CHECK(call)                                                        \
	do {                                                               \
		cl_int check_err = (call);                                 \
                                                                           \
		if (check_err != CL_SUCCESS)                               \
			cl_app_fail(__FILE__, __LINE__, #call, check_err); \
	} while (0)

#define REQUIRE(condition)                                              \
	do {                                                            \
		if (!(condition))                                       \
			cl_app_fail(__FILE__, __LINE__, #condition, 0); \
	} while (0)

#endif

/* See cl_app.h. Linked into each OpenCL program that is itself linked with the loader. */
#include "cl_app.h"

void cl_app_fail(const char *file, int line, const char *call, cl_int err)
{
	fflush(stdout);
	fprintf(stderr, "%s:%d: %s: %s (%d)\n", file, line, err ? "failed" : "not true", call, err);
	_Exit(1);
}

static void build(struct cl_app *app, const char *source)
{
	cl_int err;

	app->program = clCreateProgramWithSource(app->context, 1, &source, NULL, &err);
	CHECK(err);
	if (clBuildProgram(app->program, 1, &app->device, "", NULL, NULL) != CL_SUCCESS) {
		char log[4096] = "";

		clGetProgramBuildInfo(app->program, app->device, CL_PROGRAM_BUILD_LOG,
				      sizeof(log) - 1, log, NULL);
		fprintf(stderr, "%s\n", log);
		exit(1);
	}
}

void cl_app_open(struct cl_app *ret, const char *source)
{
	cl_int err;

	CHECK(clGetPlatformIDs(1, &ret->platform, NULL));
	CHECK(clGetDeviceIDs(ret->platform, CL_DEVICE_TYPE_ALL, 1, &ret->device, NULL));
	ret->context = clCreateContext(NULL, 1, &ret->device, NULL, NULL, &err);
	CHECK(err);
	build(ret, source);
}

void cl_app_close(struct cl_app *app)
{
	CHECK(clReleaseProgram(app->program));
	CHECK(clReleaseContext(app->context));
}

cl_kernel cl_app_kernel(const struct cl_app *app, const char *name)
{
	cl_int err;
	cl_kernel kernel = clCreateKernel(app->program, name, &err);

	CHECK(err);
	return kernel;
}

cl_mem cl_app_buffer(const struct cl_app *app, size_t size)
{
	cl_int err;
	cl_mem buffer = clCreateBuffer(app->context, CL_MEM_READ_WRITE, size, NULL, &err);

	CHECK(err);
	return buffer;
}

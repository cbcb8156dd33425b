/*
 * Loaders, drivers and runtimes of the APIs that xstrace traces. Each is opened in a process of its
 * own: a driver that crashes, or prints, or waits, does so there.
 */
#include "doctor.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"

/* Opened by the names in turn; the text gets its path. */
static void *open_first(const char *const *names, FILE *out)
{
	for (; *names; names++) {
		void *library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
		struct link_map *map = NULL;

		if (!library)
			continue;
		if (!dlinfo(library, RTLD_DI_LINKMAP, &map) && map)
			fprintf(out, "path %s\n", map->l_name);
		return library;
	}
	return NULL;
}

/* The value behind "key " in the child's lines; false: there is no such line. */
static bool line_of(const char *text, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);

	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, key, n) && at[n] == ' ') {
			(void)snprintf(value, size, "%.*s", (int)strcspn(at + n + 1, "\n"),
				       at + n + 1);
			return true;
		}
	value[0] = '\0';
	return false;
}

/* ---- APIs for devices ---- */

static const struct api {
	const char *key, *name, *library[2];
	void (*find)(struct xs_found_list *list);
	size_t number; /* offset of the device's number in struct xs_found */
	unsigned missing;
	const char *todo_loader, *todo_driver;
} apis[] = {
	{ "opencl",
	  "OpenCL",
	  { "libOpenCL.so.1" },
	  xs_find_opencl,
	  offsetof(struct xs_found, opencl),
	  1,
	  "install a loader (Debian: ocl-icd-libopencl1)",
	  "install a driver (pocl-opencl-icd for processors, intel-opencl-icd, …) or set "
	  "OCL_ICD_VENDORS" },
	{ "level_zero",
	  "Level Zero",
	  { "libze_loader.so.1" },
	  xs_find_level_zero,
	  offsetof(struct xs_found, level_zero),
	  0,
	  "install a loader (Debian: libze1)",
	  "install Intel's driver (intel-level-zero-gpu, libze-intel-gpu1)" },
	{ "cuda",
	  "CUDA",
	  { "libcuda.so.1" },
	  xs_find_cuda,
	  offsetof(struct xs_found, cuda),
	  2,
	  "install NVIDIA's driver; in a container: --gpus all",
	  "look whether nvidia-smi finds the device" },
};
#define APIS (sizeof(apis) / sizeof(apis[0]))

static bool has_device[APIS];

static void look_at_api(FILE *out, const void *data)
{
	static struct xs_found_list list;
	const struct api *api = data;
	int count = 0;

	(void)open_first(api->library, out);
	(void)fflush(out);
	api->find(&list);
	for (uint32_t i = 0; i < list.count; i++) {
		if (*(const int *)((const char *)&list.device[i] + api->number) < 0)
			continue;
		if (!count++)
			fprintf(out, "first %s\n", list.device[i].name);
	}
	if (list.missing[api->missing])
		fprintf(out, "missing %s\n", list.missing[api->missing]);
	fprintf(out, "count %d\n", count);
}

static void tell_layers(const char *path)
{
	if (!dr_file_has(path, "OPENCL_LAYERS"))
		dr_say(DR_BAD, "OpenCL's loader",
		       "use ocl-icd 2.3 or later, or Khronos' loader (LD_LIBRARY_PATH)",
		       "%s knows no layers: programs that use it are not traced", path);
}

static void one_api(size_t which)
{
	const struct api *api = &apis[which];
	char text[4096], why[128], path[PATH_MAX], first[512], missing[256], count[16];
	struct dr_ended ended = dr_look(look_at_api, api, text, sizeof(text));
	bool is_there = line_of(text, "path", path, sizeof(path));

	(void)line_of(text, "first", first, sizeof(first));
	(void)line_of(text, "missing", missing, sizeof(missing));
	(void)line_of(text, "count", count, sizeof(count));
	has_device[which] = atoi(count) > 0;
	if (dr_why(&ended, why, sizeof(why)))
		dr_say(DR_BAD, api->name, "look whether programs that use it work without xstrace",
		       "%s: asking it for devices %s", is_there ? path : api->library[0],
		       dr_why(&ended, why, sizeof(why)));
	else if (!is_there)
		dr_say(DR_MISSING, api->name, api->todo_loader, "%s is not found", api->library[0]);
	else if (!has_device[which])
		dr_say(DR_MISSING, api->name, api->todo_driver, "%s has no device%s%s", path,
		       missing[0] ? ": " : "", missing);
	else
		dr_say(DR_OK, api->name, NULL, "%s: %s device%s, %s%s", path, count,
		       atoi(count) == 1 ? "" : "s", first, atoi(count) == 1 ? "" : ", …");
	if (is_there && !which)
		tell_layers(path);
}

bool dr_has(const char *api)
{
	for (size_t i = 0; i < APIS; i++)
		if (!strcmp(apis[i].key, api))
			return has_device[i];
	return false;
}

/* ---- libraries that are looked for by name alone ---- */

static const struct library {
	const char *name, *files[12];
	const char *good, *todo;
} libraries[] = {
	{ "CUPTI",
	  { "libcupti.so.14", "libcupti.so.13", "libcupti.so.12", "libcupti.so" },
	  "CUDA's activity can be had by it, where a program brings none of its own",
	  "nothing, if programs bring their own (PyTorch does); else CUDA's toolkit, or pip "
	  "install "
	  "nvidia-cuda-cupti" },
	{ "XPTI",
	  { "libxptifw.so" },
	  "SYCL's runtime can tell of itself",
	  "nothing without SYCL; a virtual environment or oneAPI that has SYCL's runtime brings "
	  "it" },
	{ "OMPT",
	  { "libomp.so.5", "libomp.so", "libiomp5.so" },
	  "clang's and Intel's OpenMP tell of themselves (gcc's libgomp does not)",
	  "nothing without OpenMP; programs of gcc: LD_PRELOAD=libomp.so.5 (Debian: libomp5)" },
};

static void look_at_library(FILE *out, const void *data)
{
	const struct library *library = data;

	(void)open_first(library->files, out);
}

static void one_library(const struct library *library)
{
	char text[PATH_MAX + 64], path[PATH_MAX];
	struct dr_ended ended = dr_look(look_at_library, library, text, sizeof(text));

	if (ended.status == 0 && line_of(text, "path", path, sizeof(path)))
		dr_say(DR_OK, library->name, NULL, "%s: %s", path, library->good);
	else
		dr_say(DR_MISSING, library->name, library->todo, "%s is not found",
		       library->files[0]);
}

/* ---- MPI ---- */

static const char *const mpi_files[] = { "libmpi_abi.so.0",
					 "libmpi.so.40",
					 "libmpi.so.12",
					 "libmpich.so.12",
					 "libmpi.so.80",
					 "libmpi.so",
					 NULL };
static char mpi_path[PATH_MAX];

static void look_at_mpi(FILE *out, const void *data)
{
	void *library = open_first(mpi_files, out);
	int (*version)(char *, int *) = NULL;
	char text[8192] = "";
	int length = 0;

	(void)data;
	(void)fflush(out);
	if (library)
		*(void **)&version = dlsym(library, "MPI_Get_library_version");
	if (version && !version(text, &length)) {
		text[sizeof(text) - 1] = '\0';
		for (char *c = text; *c; c++)
			if (*c == '\t')
				*c = ' ';
		fprintf(out, "version %.*s\n", (int)strcspn(text, "\n"), text);
	}
}

static const char *abi_of(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	return strstr(name, "libmpi_abi") ? "MPI 5's"
	       : strstr(name, ".so.40") || strstr(name, ".so.80") ||
			       dr_file_has(path, "ompi_mpi_comm_world")
		       ? "Open MPI's"
		       : "MPICH's";
}

const char *dr_mpi(void)
{
	return mpi_path[0] ? mpi_path : NULL;
}

static void mpi(void)
{
	char text[16384], version[256], why[128];
	struct dr_ended ended = dr_look(look_at_mpi, NULL, text, sizeof(text));

	(void)line_of(text, "path", mpi_path, sizeof(mpi_path));
	(void)line_of(text, "version", version, sizeof(version));
	if (dr_why(&ended, why, sizeof(why)) && mpi_path[0])
		dr_say(DR_NOTE, "MPI", "look whether its programs work without xstrace", "%s %s",
		       mpi_path, dr_why(&ended, why, sizeof(why)));
	else if (mpi_path[0])
		dr_say(DR_OK, "MPI", NULL, "%s: %s; ABI: %s", mpi_path,
		       version[0] ? version : "version not known", abi_of(mpi_path));
	else
		dr_say(DR_MISSING, "MPI",
		       "nothing, if your programs find theirs by modules or rpath; else install "
		       "one, or "
		       "set LD_LIBRARY_PATH",
		       "no MPI library is found by its name");
}

/* ---- Python ---- */

static void python(void)
{
	char *argv[] = { "python3", "-c",
			 "import sys; print('python', *sys.version_info[:2], sys.executable)",
			 NULL };
	char text[PATH_MAX + 64], path[PATH_MAX] = "";
	struct dr_ended ended = dr_run(argv, text, sizeof(text));
	int major = 0, minor = 0;

	if (ended.status || sscanf(text, "python %d %d %4095[^\n]", &major, &minor, path) < 3)
		dr_say(DR_MISSING, "Python", "nothing without Python programs",
		       "python3 is not in PATH");
	else if (major != 3 || minor < 8 || minor > 13)
		dr_say(DR_NOTE, "Python", "use 3.8 to 3.13 for --python-stacks",
		       "%s is %d.%d: its functions are not traced", path, major, minor);
	else
		dr_say(DR_OK, "Python", NULL, "%s %d.%d: --python-stacks shows its functions", path,
		       major, minor);
}

void dr_apis(void)
{
	dr_section("Loaders, drivers, runtimes", "apis");
	for (size_t i = 0; i < APIS; i++)
		one_api(i);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		one_library(&libraries[i]);
	mpi();
	python();
}

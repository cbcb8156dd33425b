#include "kinds.h"

const char *const xt_what_names[XT_WHATS] = { "task",	"call",	   "kernel", "copy",
					      "device", "request", "other" };

/* What a category says; HOST and WORK: its slices' names say more. */
enum { HOST = XT_WHATS, WORK, UNKNOWN };

static const struct {
	const char *category; /* string of JSON */
	uint8_t what;
} categories[] = {
	{ "\"cpu_op\"", HOST },
	{ "\"gpu_op\"", WORK },
	{ "\"mpi_request\"", XT_REQUEST },
	{ "\"kernel\"", XT_KERNEL },
	{ "\"gpu_memcpy\"", XT_COPY },
	{ "\"gpu_memset\"", XT_COPY },
	{ "\"cuda_runtime\"", XT_CALL },
	{ "\"cuda_driver\"", XT_CALL },
	{ "\"xpu_runtime\"", XT_CALL },
	{ "\"xpu_driver\"", XT_CALL },
	{ "\"mtia_runtime\"", XT_CALL },
	{ "\"user_annotation\"", XT_TASK },
	{ "\"gpu_user_annotation\"", XT_TASK },
	{ "\"python_function\"", XT_TASK },
	{ "\"sample\"", XT_TASK },
	{ "\"ac2g\"", XT_OTHER },
	{ "\"Trace\"", XT_OTHER },
	{ "\"overhead\"", XT_OTHER },
};

/* The functions of APIs: what they begin with, followed by a capital letter or by itself. */
static const struct {
	const char *prefix;
	bool capital;
} apis[] = { { "cl", true },	 { "ze", true },    { "zes", true },	{ "zet", true },
	     { "zex", true },	 { "cu", true },    { "cuda", true },	{ "hip", true },
	     { "ur", true },	 { "MPI_", false }, { "PMPI_", false }, { "MPIX_", false },
	     { "MPI::", false }, { "nccl", true },  { "nvml", true } };

static bool is_api(struct xf_text name)
{
	for (size_t i = 0; i < sizeof(apis) / sizeof(*apis); i++) {
		size_t n = strlen(apis[i].prefix);

		if (name.n > n && !memcmp(name.p, apis[i].prefix, n) &&
		    (!apis[i].capital || (name.p[n] >= 'A' && name.p[n] <= 'Z')))
			return true;
	}
	return false;
}

/* "…[123]" */
static int64_t bytes_of(struct xf_text name)
{
	size_t at = name.n;
	int64_t bytes;

	if (!at || name.p[--at] != ']')
		return -1;
	while (at && name.p[at - 1] >= '0' && name.p[at - 1] <= '9')
		at--;
	if (!at || name.p[at - 1] != '[')
		return -1;
	return xf_integer((struct xf_text){ name.p + at, name.n - 1 - at }, &bytes) ? bytes : -1;
}

static bool holds(struct xf_text name, const char *text)
{
	return memmem(name.p, name.n, text, strlen(text)) != NULL;
}

static bool moves_data(struct xf_text name)
{
	return holds(name, "Read") || holds(name, "Write") || holds(name, "Copy") ||
	       holds(name, "Fill") || holds(name, "Map") || holds(name, "Memcpy") ||
	       holds(name, "Memset");
}

static uint8_t of_category(const struct xt_trace *trace, uint32_t number)
{
	struct xf_text category = xt_name(&trace->names, number);

	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		if (xf_is(category, categories[i].category))
			return categories[i].what == HOST && trace->is_kineto ? XT_TASK
									      : categories[i].what;
	return category.n ? XT_OTHER : UNKNOWN;
}

static void look(struct xf_text string, struct xt_known *known)
{
	struct xf_text name = xf_inside(string);

	known->bytes = bytes_of(name);
	known->name = 1 + (is_api(name) ? (moves_data(name) ? XT_COPY : XT_CALL) : XT_KERNEL);
}

static enum xt_what of_work(const struct xt_known *known, int64_t *bytes)
{
	uint8_t name = known->name - 1;

	if (*bytes < 0)
		*bytes = known->bytes;
	if (name == XT_KERNEL)
		return *bytes >= 0 && known->bytes >= 0 ? XT_COPY : XT_KERNEL;
	return *bytes >= 0 || name == XT_COPY ? XT_COPY : XT_DEVICE;
}

enum xt_what xt_what(struct xt_kinds *kinds, const struct xt_trace *trace, struct xf_text name,
		     uint32_t number, uint32_t category, bool on_queue, int64_t *bytes)
{
	struct xt_known unnumbered = { 0 }, *known = &unnumbered;
	uint8_t of = UNKNOWN;

	if (category != XF_NONE &&
	    xf_room_for(&kinds->known, &kinds->room, category, sizeof(*kinds->known))) {
		known = &kinds->known[category];
		if (!known->category)
			known->category = 1 + of_category(trace, category);
		of = known->category - 1;
	}
	if (of < XT_WHATS)
		return of;
	known = &unnumbered;
	if (number != XF_NONE &&
	    xf_room_for(&kinds->known, &kinds->room, number, sizeof(*kinds->known)))
		known = &kinds->known[number];
	if (!known->name)
		look(name, known);
	if (of == WORK || (of == UNKNOWN && on_queue))
		return of_work(known, bytes);
	return known->name - 1 == XT_KERNEL ? XT_TASK : XT_CALL;
}

/*
 * Tasks as oneCCL makes them: in the domain oneCCL::API, with the message's size as metadata. Tasks
 *of oneDNN's and of another domain are among them. Each row of the report that there must be is
 *printed, the largest time first:
 *
 *	row: <function> <size> <calls>
 */
#include "itt_app.h"

static __itt_domain *api, *dnn, *other;
static __itt_string_handle *size_key, *count_key;

static const struct {
	const char *name;
	uint64_t size; /* UINT64_MAX: not told */
	int calls;
	long ms; /* each */
} rows[] = {
	{ "allreduce", 4000, 5, 12 }, { "bcast", 1ull << 33, 2, 20 },  { "allreduce", 64, 3, 6 },
	{ "bcast", 0, 2, 4 },	      { "barrier", UINT64_MAX, 4, 0 },
};

static void collective(const char *name, uint64_t size, long ms)
{
	uint32_t count = 7;

	task_begin(api, __itt_string_handle_create(name));
	__itt_metadata_add(api, __itt_null, count_key, __itt_metadata_u32, 1, &count);
	if (size != UINT64_MAX)
		__itt_metadata_add(api, __itt_null, size_key, __itt_metadata_u64, 1, &size);
	if (ms)
		sleep_ms(ms);
	__itt_task_end(api);
}

int main(void)
{
	api = __itt_domain_create("oneCCL::API");
	dnn = __itt_domain_create("dnnl::primitive::execute");
	other = __itt_domain_create("other");
	size_key = __itt_string_handle_create("send_size");
	count_key = __itt_string_handle_create("count");
	task_begin(other, __itt_string_handle_create("main"));
	/* the smallest first: the order is not that of their coming */
	for (size_t i = ARRAY_SIZE(rows); i--;) {
		for (int call = 0; call < rows[i].calls; call++) {
			collective(rows[i].name, rows[i].size, rows[i].ms);
			finished_task(dnn, __itt_string_handle_create("matmul"));
		}
	}
	task_end(other);
	/* never ended: not in the report */
	task_begin(api, __itt_string_handle_create("alltoall"));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		printf("row: oneCCL::API::%s ", rows[i].name);
		if (rows[i].size == UINT64_MAX)
			printf("- %d\n", rows[i].calls);
		else
			printf("%llu %d\n", (unsigned long long)rows[i].size, rows[i].calls);
	}
	return 0;
}

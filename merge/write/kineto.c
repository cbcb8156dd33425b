/*
 * What files of Kineto say beside their events, of all inputs together: devices under the numbers
 * that they have in the output, and which ranks there are.
 */
#include <inttypes.h>
#include <string.h>

#include "sink.h"

/* The number of a device's process in the output; as it was where nothing has run on it. */
static void put_number_of(FILE *out, const struct xm_input *input, struct xf_text id)
{
	uint32_t found = xf_map_find(&input->pids, id.p, id.n);

	if (found < input->pids.count)
		fprintf(out, "\"id\": %" PRIu32, input->processes[found].out_pid);
	else
		fprintf(out, "\"id\": %.*s", (int)id.n, id.p);
}

static void put_device(FILE *out, const struct xm_input *input, struct xf_text device)
{
	const char *p = xf_first(device);
	struct xf_text key, value;
	bool first = true;

	fputc('{', out);
	while (xf_member(&p, device.p + device.n, &key, &value)) {
		fputs(first ? "" : ",", out);
		first = false;
		if (xf_is(key, "id"))
			put_number_of(out, input, value);
		else
			fprintf(out, "\"%.*s\": %.*s", (int)key.n, key.p, (int)value.n, value.p);
	}
	if (input->rank >= 0)
		fprintf(out, "%s\"rank\": %" PRId64, first ? "" : ",", input->rank);
	fputc('}', out);
}

static void put_devices(FILE *out, const struct xm_merge *merge)
{
	bool first = true;

	fputs("\"deviceProperties\": [", out);
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i];
		struct xf_text all = { input->devices,
				       input->devices ? strlen(input->devices) : 0 },
			       device;
		const char *p = all.n ? xf_first(all) : NULL;

		while (p && xf_element(&p, all.p + all.n, &device)) {
			if (device.n < 2 || device.p[0] != '{')
				continue;
			fputs(first ? "" : ",", out);
			first = false;
			put_device(out, input, device);
		}
	}
	fputs("],", out);
}

static void put_ranks(FILE *out, const struct xm_merge *merge)
{
	int64_t size = 0, count = 0, last = -1; /* inputs of a rank lie side by side */

	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i];

		size = input->world_size > size ? input->world_size : size;
		if (input->rank < 0 || input->rank == last)
			continue;
		last = input->rank;
		if (!count)
			fprintf(out, "\"distributedInfo\": {\"rank\": %" PRId64 ",\"ranks\": [",
				input->rank);
		fprintf(out, "%s%" PRId64, count++ ? "," : "", input->rank);
	}
	if (count)
		fprintf(out, "],\"world_size\": %" PRId64 "},", size > count ? size : count);
}

void xm_put_kineto(FILE *out, const struct xm_merge *merge)
{
	put_devices(out, merge);
	put_ranks(out, merge);
	fputs("\"traceName\": \"merged\",", out);
}

/*
 * xstrace-devices: what xstrace itself, which is linked statically, cannot load a driver for.
 * xstrace calls it:
 *
 *	xstrace-devices list          --device-list
 *	xstrace-devices metrics       --metric-list
 *	xstrace-devices all           both
 *	xstrace-devices query GROUP   --metric-query: says what is wrong with it
 *	xstrace-devices sample GROUP  --metric-sampling: the same
 *	xstrace-devices stalls GROUP  --stall-sampling: the same
 *	xstrace-devices select LIST   --devices-to-sample: prints three masks, of OpenCL's, Level
 *	                              Zero's and CUDA's devices
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "devices.h"
#include "options.h"
#include "streams.h"

static const char *const apis[] = { "Level Zero", "OpenCL", "CUDA" };

static void print_device(uint32_t number, const struct xs_found *found)
{
	printf("Device #%u: %s\n", number, found->name);
	printf("  Type: %s\n  APIs: ", found->type ? found->type : "?");
	if (found->level_zero >= 0)
		printf("Level Zero (device %d)%s", found->level_zero,
		       found->opencl >= 0 || found->cuda >= 0 ? ", " : "");
	if (found->opencl >= 0)
		printf("OpenCL (device %d, %s)%s", found->opencl, found->platform,
		       found->cuda >= 0 ? ", " : "");
	if (found->cuda >= 0)
		printf("CUDA (device %d)", found->cuda);
	if (found->pci[0])
		printf("\n  PCI address: %s", found->pci);
	if (xs_found_uuid(found->uuid)) {
		printf("\n  UUID: ");
		for (int i = 0; i < 16; i++)
			printf("%02x%s", found->uuid[i],
			       i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
	}
	if (found->tiles)
		printf("\n  Tiles: %u", found->tiles);
	if (found->engines[0])
		printf("\n  Engines: %s", found->engines);
	printf("\n  Memory: %.1f GiB\n", (double)found->memory / (1u << 30));
	if (found->clock)
		printf("  Clock: %u MHz\n", found->clock);
}

static void list_devices(const struct xs_found_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		print_device(i, &list->device[i]);
	if (!list->count)
		puts("No device found.");
	for (int i = 0; i < 3; i++)
		if (list->missing[i])
			printf("%s: %s.\n", apis[i], list->missing[i]);
}

static int select_devices(const struct xs_found_list *list, const char *wanted)
{
	uint64_t opencl = 0, level_zero = 0, cuda = 0, highest = xs_highest_listed(wanted);
	bool some = false;

	for (uint32_t i = 0; i < list->count; i++)
		some |= xs_is_listed(wanted, i);
	if (!list->count)
		fprintf(stderr,
			"xstrace: --devices-to-sample %s: no device found here; no device work "
			"will be recorded\n",
			wanted);
	else if (highest >= list->count)
		fprintf(stderr,
			"xstrace: --devices-to-sample %s: there is no device %llu; the last one is "
			"%u, see xstrace --device-list; %s\n",
			wanted, (unsigned long long)highest, list->count - 1,
			some ? "the others are recorded"
			     : "no device is left: no work of devices is recorded");
	for (uint32_t i = 0; i < list->count; i++) {
		const struct xs_found *found = &list->device[i];

		if (!xs_is_listed(wanted, i))
			continue;
		if (found->opencl >= 0 && found->opencl < 64)
			opencl |= 1ull << found->opencl;
		if (found->level_zero >= 0)
			level_zero |= 1ull << found->level_zero;
		if (found->cuda >= 0)
			cuda |= 1ull << found->cuda;
	}
	printf("%llx %llx %llx\n", (unsigned long long)opencl, (unsigned long long)level_zero,
	       (unsigned long long)cuda);
	return 0;
}

static void print_metrics(void)
{
	bool cuda = xs_print_cuda_metrics();

	/* why Level Zero has none is not asked where CUDA has some */
	if (!cuda || !xs_each_metric_group(NULL, NULL))
		(void)xs_print_metrics();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word, *option;
		bool sampling;
	} checks[] = { { "query", "metric-query", false },
		       { "sample", "metric-sampling", true },
		       { "stalls", "stall-sampling", true } };
	static struct xs_found_list list;

	if (argc == 2 && !strcmp(argv[1], "metrics")) {
		xs_want_metrics();
		print_metrics();
		return xs_printed("xstrace") ? 0 : XS_EXIT_SELF;
	}
	if (argc < 2) {
		fprintf(stderr, "xstrace-devices: called by xstrace --device-list\n");
		return XS_EXIT_SELF;
	}
	for (size_t i = 0; argc == 3 && i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (strcmp(argv[1], checks[i].word))
			continue;
		xs_want_metrics();
		return xs_check_metrics(checks[i].option, argv[2], checks[i].sampling);
	}
	if (!strcmp(argv[1], "all"))
		xs_want_metrics();
	xs_find_level_zero(&list);
	xs_find_opencl(&list);
	xs_find_cuda(&list);
	if (argc == 3 && !strcmp(argv[1], "select"))
		return select_devices(&list, argv[2]);
	list_devices(&list);
	if (!strcmp(argv[1], "all"))
		print_metrics();
	return xs_printed("xstrace") ? 0 : XS_EXIT_SELF;
}

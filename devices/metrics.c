/*
 * What is wrong with a wish for hardware metrics is said before the program starts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"
#include "metric_sets.h"
#include "options.h"
#include "text.h"

/* ---- permissions ---- */

#define CAP_SYS_ADMIN_BIT 21
#define CAP_PERFMON_BIT	  38

static bool is_capable(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long bits = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &bits) == 1)
			break;
	if (status)
		fclose(status);
	return bits & (1ull << CAP_SYS_ADMIN_BIT | 1ull << CAP_PERFMON_BIT);
}

/* The kernel's drivers keep counters from all but root unless these are 0. */
static void tell_permissions(const char *option)
{
	static const char *const names[] = { "dev.i915.perf_stream_paranoid",
					     "dev.xe.observation_paranoid" };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int paranoid = 0;
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/sys/%s", names[i]);
		for (char *at = path; *at; at++)
			if (*at == '.')
				*at = '/';
		file = fopen(path, "re");
		if (file && fscanf(file, "%d", &paranoid) == 1 && paranoid && !is_capable())
			xs_tell("xstrace: --%s: this user may not read the GPU's counters; allow "
				"it "
				"with: sudo sysctl %s=0\n",
				option, names[i]);
		if (file)
			fclose(file);
	}
	if (xs_cuda_admin_only() && !is_capable())
		xs_tell("xstrace: --%s: this user may not read an NVIDIA GPU's counters; allow it "
			"with: echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | sudo "
			"tee /etc/modprobe.d/nvidia-profiling.conf, and start the machine anew\n",
			option);
}

/* ---- the group ---- */

struct seen {
	const char *wanted;
	size_t first; /* bytes of the first metric's name in it */
	bool sampling;
	uint32_t groups; /* of any kind */
	bool found, empty, other_kind;
	char nearest[256];
	size_t distance;
};

static void look_at(void *data, const char *name, uint32_t metrics, bool query, bool sampling)
{
	struct seen *seen = data;
	bool kind = seen->sampling ? sampling : query;
	size_t distance;

	seen->groups++;
	if (!strcmp(name, seen->wanted) ||
	    (strlen(name) == seen->first && !strncmp(name, seen->wanted, seen->first))) {
		seen->found |= kind && metrics;
		seen->empty |= kind && !metrics;
		seen->other_kind |= !kind;
		return;
	}
	distance = kind && metrics ? xs_edit_distance(name, seen->wanted, strlen(seen->wanted))
				   : SIZE_MAX;
	if (distance < seen->distance) {
		seen->distance = distance;
		(void)snprintf(seen->nearest, sizeof(seen->nearest), "%s", name);
	}
}

static int refuse(const char *option, const struct seen *seen)
{
	const char *wanted = seen->wanted;

	if (!seen->groups)
		xs_tell("xstrace: --%s: the driver has no metric group for its devices; on a GPU, "
			"their library (libigdmd) may be missing, or the right to read the "
			"counters\n",
			option);
	else if (seen->empty)
		xs_tell("xstrace: --%s: the metric group %s has no metric; choose another one by "
			"--group, see xstrace --metric-list\n",
			option, wanted);
	else if (seen->other_kind)
		xs_tell("xstrace: --%s: the metric group %s is %s; choose another one by --group, "
			"see xstrace --metric-list\n",
			option, wanted,
			seen->sampling ? "for queries, not for sampling"
				       : "for sampling, not for queries");
	else if (seen->nearest[0] && seen->distance <= strlen(wanted) / 2 + 1)
		xs_tell("xstrace: --%s: no device has a metric group %s; did you mean --group "
			"%s?\n",
			option, wanted, seen->nearest);
	else
		xs_tell("xstrace: --%s: no device has a metric group %s; choose another one by "
			"--group, see xstrace --metric-list\n",
			option, wanted);
	return XS_EXIT_SELF;
}

static void look_at_cuda(struct seen *seen)
{
	const char *name;

	for (size_t i = 0; (name = xs_metric_set_name(i)); i++)
		look_at(seen, name, 1, true, xs_metric_set(name, true));
}

/* All of them are groups of that kind, or programmable metrics. */
static int check_together(const char *option, const char *groups, bool sampling)
{
	char text[4 * XS_PATH_MAX];
	const char *problem;

	if (sampling && strchr(groups, ',') && strstr(groups, "EuStallSampling")) {
		xs_tell("xstrace: --%s: the metric group EuStallSampling goes with no other one, "
			"as its samples have no times; not %s\n",
			option, groups);
		return XS_EXIT_SELF;
	}
	problem = xs_groups_problem(groups, sampling, text, sizeof(text));
	if (problem)
		xs_tell("xstrace: --%s: %s\n", option, problem);
	return problem ? XS_EXIT_SELF : 0;
}

int xs_check_metrics(const char *option, const char *groups, bool sampling)
{
	struct seen seen;
	const char *missing;
	bool cuda = xs_has_cuda(), stalls = cuda && !strcmp(option, "stall-sampling");
	char text[XS_PATH_MAX], names[XS_METRIC_NAMES], *rest = text;

	(void)snprintf(text, sizeof(text), "%s", groups);
	tell_permissions(option);
	do {
		const char *name = strsep(&rest, ",");

		seen = (struct seen){ .wanted = name,
				      .first = strcspn(name, ":"),
				      .sampling = sampling,
				      .distance = SIZE_MAX };
		missing = xs_each_metric_group(look_at, &seen);
		if (cuda)
			look_at_cuda(&seen);
	} while (seen.found && rest);
	if (stalls || (cuda && xs_metric_names(groups, sampling, names)))
		return 0;
	if (seen.found)
		return check_together(option, groups, sampling);
	if (cuda || !missing)
		return refuse(option, &seen);
	xs_tell("xstrace: --%s: nothing is measured: Level Zero has no metrics, %s; the "
		"application runs, and what else was asked for is recorded\n",
		option, missing);
	return 0;
}

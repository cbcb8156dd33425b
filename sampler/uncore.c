/*
 * What memory controllers have moved, as the kernel counts it for the whole machine: the boxes
 * outside of the cores whose events are named in sysfs (uncore_imc…, amd_umc…).
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler.h"

#define DEVICES	 "sys/bus/event_source/devices"
#define MANY_CPU 16u /* that a box is counted by: one of each socket */

/* In either direction, as the kernel calls it; the first that there is. */
static const char *const reads[] = { "cas_count_read", "data_read", "data_reads" };
static const char *const writes[] = { "cas_count_write", "data_write", "data_writes" };

/* The file's first line; false: it is empty, or not there. */
static bool line_of(const struct xs_sources *sources, char *text, size_t size, const char *path,
		    const char *name)
{
	struct xs_source file = { .fd = { -1, -1 } };
	char full[PATH_MAX];

	(void)snprintf(full, sizeof(full), "%s/%s", path, name);
	file.fd[0] = xs_sources_open(sources, full);
	text[0] = '\0';
	if (file.fd[0] < 0)
		return false;
	(void)xs_source_read(&file, 0, text, size);
	(void)close(file.fd[0]);
	text[strcspn(text, "\n")] = '\0';
	return text[0];
}

/* "umask=0x3" goes where format/umask says: "config:8-15". */
static bool add_term(const struct xs_sources *sources, const char *path, const char *term,
		     uint64_t *config)
{
	int name = (int)strcspn(term, "=");
	uint64_t value = term[name] ? strtoull(term + name + 1, NULL, 0) : 1;
	char file[64], format[64];
	unsigned first;

	(void)snprintf(file, sizeof(file), "format/%.*s", name, term);
	if (!line_of(sources, format, sizeof(format), path, file) ||
	    sscanf(format, "config:%u", &first) != 1 || first > 63)
		return false;
	*config |= value << first;
	return true;
}

/* The event as the kernel takes it, and how many bytes each of its counts is. */
static bool find_event(const struct xs_sources *sources, const char *path, const char *event,
		       uint64_t *ret_config, double *ret_bytes)
{
	char text[256], name[64], unit[32], *at = text;

	(void)snprintf(name, sizeof(name), "events/%s", event);
	if (!line_of(sources, text, sizeof(text), path, name))
		return false;
	*ret_config = 0;
	for (char *term; (term = strsep(&at, ","));)
		if (!add_term(sources, path, term, ret_config))
			return false;
	(void)snprintf(name, sizeof(name), "events/%s.scale", event);
	*ret_bytes = line_of(sources, text, sizeof(text), path, name) ? strtod(text, NULL) : 64;
	(void)snprintf(name, sizeof(name), "events/%s.unit", event);
	if (line_of(sources, unit, sizeof(unit), path, name) && !strcmp(unit, "MiB"))
		*ret_bytes *= 1048576;
	return *ret_bytes > 0;
}

static void look_at_box(struct xs_source *source, uint64_t ns, uint64_t before)
{
	uint64_t count;

	for (int which = 0; which < 2; which++)
		if (source->fd[which] >= 0 &&
		    read(source->fd[which], &count, sizeof(count)) == sizeof(count))
			xs_source_tell_rate(source, which, count, ns, before);
}

/* -errno: it is not counted. */
static int open_event(const struct xs_sources *sources, const char *path, const char *const *names,
		      unsigned long type, int cpu, double *ret_bytes)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = (uint32_t)type };
	uint64_t config;
	int fd;

	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		if (!find_event(sources, path, names[i], &config, ret_bytes))
			continue;
		attr.config = config;
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

/* The box's part of the socket that the processor is in. False: this user may not count. */
static bool add_box(struct xs_sources *sources, const char *path, const char *box, int cpu)
{
	struct xs_source *source;
	double bytes = 0, others = 0;
	char text[32];
	unsigned long type;
	int in, out;

	if (!line_of(sources, text, sizeof(text), path, "type"))
		return true;
	type = strtoul(text, NULL, 10);
	in = open_event(sources, path, reads, type, cpu, &bytes);
	out = in < 0 ? -1 : open_event(sources, path, writes, type, cpu, &others);
	if (in < 0)
		return in != -EACCES && in != -EPERM;
	source = xs_source_new(sources, 10 * XS_MS, look_at_box);
	if (!source) {
		(void)close(in);
		if (out >= 0)
			(void)close(out);
		return true;
	}
	if (out >= 0 && others != bytes) { /* they have one scale in a source */
		(void)close(out);
		out = -1;
	}
	source->fd[0] = in;
	source->fd[1] = out;
	source->scale = bytes * 1e9;
	(void)snprintf(source->name[0], sizeof(source->name[0]),
		       "memory of %.40s at processor %d read [B/s]", box, cpu);
	(void)snprintf(source->name[1], sizeof(source->name[1]),
		       "memory of %.40s at processor %d written [B/s]", box, cpu);
	return true;
}

/* One processor of each socket counts for it: "0,28", or "0-1". */
static bool add_device(struct xs_sources *sources, const char *box)
{
	char path[PATH_MAX], cpus[256], *at = cpus;
	unsigned count = 0;

	(void)snprintf(path, sizeof(path), DEVICES "/%s", box);
	if (!line_of(sources, cpus, sizeof(cpus), path, "cpumask"))
		return true;
	for (char *range; count < MANY_CPU && (range = strsep(&at, ","));) {
		int first = 0, last = 0, found = sscanf(range, "%d-%d", &first, &last);

		for (int cpu = first;
		     found > 0 && cpu <= (found > 1 ? last : first) && count < MANY_CPU;
		     cpu++, count++)
			if (!add_box(sources, path, box, cpu))
				return false;
	}
	return true;
}

void xs_uncore_add(struct xs_sources *sources)
{
	char full[PATH_MAX];
	struct dirent *entry;
	bool may = true;
	DIR *dir;

	(void)snprintf(full, sizeof(full), "%s/" DEVICES, sources->root);
	dir = opendir(full);
	while (dir && may && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "uncore_imc", 10) ||
		    !strncmp(entry->d_name, "amd_umc", 7))
			may = add_device(sources, entry->d_name);
	if (dir)
		(void)closedir(dir);
	if (!may)
		fprintf(stderr, "[WARNING] --system-metrics: this user may not count what memory "
				"controllers move (sudo sysctl kernel.perf_event_paranoid=0)\n");
}

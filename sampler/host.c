/*
 * What Linux tells of the machine: /proc and /sys.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler.h"

#define MANY_DIR 64u

/* ---- processors: /proc/stat ---- */

/* user nice system idle iowait irq softirq steal, in ticks of all processors together */
static void look_at_processors(struct xs_source *source, uint64_t ns, uint64_t before)
{
	unsigned long long user, nice, system, idle, wait, irq, soft, steal;
	uint64_t busy, total;
	char text[512];

	(void)ns;
	if (!xs_source_read(source, 0, text, sizeof(text)) ||
	    sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
		   &idle, &wait, &irq, &soft, &steal) != 8)
		return;
	busy = user + nice + system + irq + soft + steal;
	total = busy + idle + wait;
	if (before && total > source->seen[1] && busy >= source->seen[0]) {
		xs_source_tell(source, 0,
			       100.0 * (double)(busy - source->seen[0]) /
				       (double)(total - source->seen[1]));
		source->seen[0] = busy;
		source->seen[1] = total;
	} else if (!before) {
		source->seen[0] = busy;
		source->seen[1] = total;
	}
}

/* ---- memory: /proc/meminfo ---- */

static bool find_kb(const char *text, const char *key, uint64_t *ret_bytes)
{
	const char *at = strstr(text, key);

	if (!at)
		return false;
	*ret_bytes = strtoull(at + strlen(key), NULL, 10) << 10;
	return true;
}

static void look_at_memory(struct xs_source *source, uint64_t ns, uint64_t before)
{
	uint64_t total, available;
	char text[4096];

	(void)ns;
	(void)before;
	if (xs_source_read(source, 0, text, sizeof(text)) && find_kb(text, "MemTotal:", &total) &&
	    find_kb(text, "MemAvailable:", &available) && available <= total)
		xs_source_tell(source, 0, (double)(total - available));
}

/* ---- values of one number each: energy, ports, frequency ---- */

static void look_at_energy(struct xs_source *source, uint64_t ns, uint64_t before)
{
	char text[64];

	if (xs_source_read(source, 0, text, sizeof(text)))
		xs_source_tell_energy(source, strtoull(text, NULL, 10), ns, before);
}

static void look_at_value(struct xs_source *source, uint64_t ns, uint64_t before)
{
	char text[64];

	(void)ns;
	(void)before;
	if (xs_source_read(source, 0, text, sizeof(text)))
		xs_source_tell(source, 0, strtod(text, NULL) * source->scale);
}

static void text_in(const struct xs_sources *sources, const char *path, char *text, size_t size)
{
	struct xs_source file = { .fd = { xs_sources_open(sources, path), -1 } };

	*text = '\0';
	if (file.fd[0] < 0)
		return;
	(void)xs_source_read(&file, 0, text, size);
	text[strcspn(text, "\n")] = '\0';
	close(file.fd[0]);
}

/* Each entry of a folder, sorted by nothing, but . and what begins so. */
static void each_in(struct xs_sources *sources, const char *path,
		    void (*add)(struct xs_sources *, const char *path, const char *entry))
{
	char full[PATH_MAX];
	struct dirent *entry;
	uint32_t count = 0;
	DIR *dir;

	(void)snprintf(full, sizeof(full), "%s/%s", sources->root, path);
	dir = opendir(full);
	while (dir && count++ < MANY_DIR && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			add(sources, path, entry->d_name);
	if (dir)
		closedir(dir);
}

/* ---- energy: powercap (RAPL) ---- */

/* "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it; "intel-rapl" itself has no energy. */
static void add_energy(struct xs_sources *sources, const char *path, const char *entry)
{
	char file[PATH_MAX], name[48], range[24];
	struct xs_source *source;

	if (strstr(entry, "-mmio")) /* the same, by another way */
		return;
	(void)snprintf(file, sizeof(file), "%s/%s/energy_uj", path, entry);
	source = xs_source_add(sources, file, XS_MS, look_at_energy);
	if (!source) {
		if (errno == EACCES)
			fprintf(stderr,
				"[WARNING] The energy of %s may be read by root only (sudo chmod "
				"a+r "
				"/%s)\n",
				entry, file);
		return;
	}
	(void)snprintf(file, sizeof(file), "%s/%s/name", path, entry);
	text_in(sources, file, name, sizeof(name));
	(void)snprintf(file, sizeof(file), "%s/%s/max_energy_range_uj", path, entry);
	text_in(sources, file, range, sizeof(range));
	source->wraps = strtoull(range, NULL, 10);
	source->scale = 1e3; /* uJ/ns */
	source->per_joule = 1e6;
	entry = strchr(entry, ':') ? strchr(entry, ':') + 1 : entry;
	(void)snprintf(source->name[0], sizeof(source->name[0]), "power of %s %s [W]", entry, name);
	(void)snprintf(source->name[1], sizeof(source->name[1]), "energy of %s %s [J]", entry,
		       name);
}

/* ---- network: /proc/net/dev, InfiniBand's ports ---- */

static void look_at_traffic(struct xs_source *source, uint64_t ns, uint64_t before)
{
	char text[64];

	for (int which = 0; which < 2; which++)
		if (xs_source_read(source, which, text, sizeof(text)))
			xs_source_tell_rate(source, which, strtoull(text, NULL, 10), ns, before);
}

/* in, out: files, each with a number that only rises, in words of so many bytes */
static void add_traffic(struct xs_sources *sources, const char *in, const char *out,
			const char *name, double words)
{
	struct xs_source *source = xs_source_add(sources, in, 10 * XS_MS, look_at_traffic);

	if (!source)
		return;
	source->fd[1] = xs_sources_open(sources, out);
	source->scale = words * 1e9;
	(void)snprintf(source->name[0], sizeof(source->name[0]), "%.64s received [B/s]", name);
	(void)snprintf(source->name[1], sizeof(source->name[1]), "%.64s sent [B/s]", name);
}

static void add_interface(struct xs_sources *sources, const char *path, const char *entry)
{
	char in[PATH_MAX], out[PATH_MAX];

	if (!strcmp(entry, "lo"))
		return;
	(void)snprintf(in, sizeof(in), "%s/%s/statistics/rx_bytes", path, entry);
	(void)snprintf(out, sizeof(out), "%s/%s/statistics/tx_bytes", path, entry);
	add_traffic(sources, in, out, entry, 1);
}

static void add_port(struct xs_sources *sources, const char *path, const char *entry)
{
	char in[PATH_MAX], out[PATH_MAX], name[64];
	const char *device = strstr(path, "infiniband/") + strlen("infiniband/");

	(void)snprintf(in, sizeof(in), "%s/%s/counters/port_rcv_data", path, entry);
	(void)snprintf(out, sizeof(out), "%s/%s/counters/port_xmit_data", path, entry);
	(void)snprintf(name, sizeof(name), "%.*s port %s", (int)strcspn(device, "/"), device,
		       entry);
	add_traffic(sources, in, out, name, 4); /* they count words of 32 bits */
}

static void add_adapter(struct xs_sources *sources, const char *path, const char *entry)
{
	char ports[PATH_MAX];

	(void)snprintf(ports, sizeof(ports), "%s/%s/ports", path, entry);
	each_in(sources, ports, add_port);
}

void xs_host_add(struct xs_sources *sources)
{
	struct xs_source *source;

	/* a tick of /proc/stat has 10 ms */
	source = xs_source_add(sources, "proc/stat", 50 * XS_MS, look_at_processors);
	if (source)
		(void)strcpy(source->name[0], "processors busy [%]");
	source = xs_source_add(sources, "proc/meminfo", 50 * XS_MS, look_at_memory);
	if (source)
		(void)strcpy(source->name[0], "memory used [B]");
	source = xs_source_add(sources, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
			       50 * XS_MS, look_at_value);
	if (source) {
		(void)strcpy(source->name[0], "frequency of processor 0 [MHz]");
		source->scale = 1e-3;
	}
	each_in(sources, "sys/class/powercap", add_energy);
	each_in(sources, "sys/class/net", add_interface);
	each_in(sources, "sys/class/infiniband", add_adapter);
}

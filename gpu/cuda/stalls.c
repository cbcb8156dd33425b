/*
 * --stall-sampling for CUDA: where in its kernels warps were found, and why they stalled.
 *
 * CUPTI's PC sampling, in the mode that leaves kernels as they are. It gathers samples by function
 * and place; what there is is fetched at launches, each quarter of a second, and before a module,
 * a context or the process ends. So samples belong to kernels by name, not to a run of them.
 *
 * One thread at a time calls CUPTI for a context, by a claim.
 */
#include <dlfcn.h>
#include <string.h>

#include "device_record.h"
#include "lock.h"
#include "profiler.h"
#include "shm.h"
#include "sys.h"

#define CONTEXTS 16u
#define PLACES	 256u /* of instructions, that are fetched at once */
#define REASONS	 64u
#define LOOK_MS	 250u
#define ISSUE	 "smsp__pcsamp_warps_issue_stalled_"
#define AT_ISSUE "_not_issued" /* counted among the others, too */

enum stage { UNUSED, READY, NEVER };

/* What CUPTI writes into. */
struct room {
	struct xs_pc_data data;
	struct xs_pc pc[PLACES];
	struct xs_pc_reason reason[PLACES][REASONS];
};

struct sampler {
	_Atomic(CUcontext) context;
	_Atomic uint64_t claim;
	_Atomic uint32_t stage;	 /* enum stage */
	_Atomic uint32_t moment; /* of the last look, xs_moment() */
	_Atomic bool runs;
	uint8_t device;
	uint32_t columns, count; /* of the reasons */
	uint32_t index[REASONS]; /* of each column's reason */
	char names[REASONS][XS_PC_REASON_NAME];
	struct room fetched, left; /* the latter for what is left when it ends */
};

static struct {
#define MEMBER(name, type, last, theirs, member) CUptiResult (*name)(struct type *);
	XS_PC_CALLS(MEMBER)
#undef MEMBER
} pc;

bool xs_cuda_stalls;
/* Not listed by XS_TABLE: nothing is begun any more where memory cannot be had. */
static struct xs_table table = { .size = CONTEXTS * sizeof(struct sampler) };

/* ---- reasons ---- */

static bool open_sampling(void)
{
	bool complete = xs_cupti.library;

#define TAKE(name, type, last, theirs, member)                               \
	if (complete)                                                        \
		*(void **)&pc.name = dlsym(xs_cupti.library, "cupti" #name); \
	complete = complete && pc.name;
	XS_PC_CALLS(TAKE)
#undef TAKE
	return complete;
}

static char *append(char *o, const char *text)
{
	size_t length = strlen(text);

	memcpy(o, text, length + 1);
	return o + length;
}

/* "…_stalled_long_scoreboard" is LongScoreboardStall, "…_stalled_selected" is Active. */
static char *put_reason(char *o, const char *name)
{
	bool upper = true;

	if (!strcmp(name, "selected"))
		return append(o, "\nActive[Events]");
	*o++ = '\n';
	for (; *name; name++) {
		if (*name != '_')
			*o++ = upper && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A')
								     : *name;
		upper = *name == '_';
	}
	return append(o, "Stall[Events]");
}

static bool is_wanted(const char *name)
{
	size_t length = strlen(name), end = strlen(AT_ISSUE);

	return !strncmp(name, ISSUE, strlen(ISSUE)) &&
	       (length < end || strcmp(name + length - end, AT_ISSUE) != 0);
}

static bool take_reasons(struct sampler *sampler, CUcontext context)
{
	size_t count = 0;
	struct xs_pc_reason_count number = { XS_PROF_HEAD(xs_pc_reason_count, count) };
	struct xs_pc_reasons reasons = { XS_PROF_HEAD(xs_pc_reasons, names) };
	char *names[REASONS], *text = (char *)&sampler->fetched, *o;
	uint32_t index[REASONS];

	number.context = reasons.context = context;
	number.count = &count;
	if (pc.PCSamplingGetNumStallReasons(&number) || !count || count > REASONS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		names[i] = sampler->names[i];
	reasons.count = count;
	reasons.index = index;
	reasons.names = names;
	if (pc.PCSamplingGetStallReasons(&reasons))
		return false;
	o = append(text, "PC sampling");
	sampler->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		sampler->names[i][XS_PC_REASON_NAME - 1] = '\0';
		if (!is_wanted(sampler->names[i]))
			continue;
		sampler->index[sampler->count++] = index[i];
		o = put_reason(o, sampler->names[i] + strlen(ISSUE));
	}
	sampler->columns = sampler->count ? xs_name(text, XS_METRICS_SCOPE) : 0;
	return sampler->columns;
}

/* ---- samples ---- */

static void prepare(struct room *room)
{
	memset(room, 0, sizeof(*room));
	room->data.size = XS_PROF_SIZE(xs_pc_data, full);
	room->data.room = PLACES;
	room->data.pc = room->pc;
	for (uint32_t i = 0; i < PLACES; i++) {
		room->pc[i].size = sizeof(room->pc[i]);
		room->pc[i].reasons = room->reason[i];
	}
}

static void write_place(const struct sampler *sampler, const struct xs_pc *place)
{
	uint32_t size = XS_STALLED_SIZE(sampler->count);
	struct xs_stalled_record *record = xs_record_begin(size, XS_STALLED, XS_SOURCE_CUDA, 0,
							   xs_cuda_symbol(place->name),
							   XS_ROLE_OTHER);

	if (!record)
		return;
	memset((char *)record + sizeof(*record), 0, size - sizeof(*record));
	record->event.tick = xs_tick(true);
	record->address = place->offset;
	record->columns = sampler->columns;
	record->count = (uint16_t)sampler->count;
	record->device = sampler->device;
	record->reserved = 0;
	for (size_t i = 0; i < place->count && i < REASONS; i++)
		for (uint32_t k = 0; k < sampler->count; k++)
			if (sampler->index[k] == place->reasons[i].index)
				record->value[k] = place->reasons[i].samples;
	xs_record_end(size);
}

static void write_places(const struct sampler *sampler, const struct room *room)
{
	for (size_t i = 0; i < room->data.count && i < PLACES; i++)
		if (room->pc[i].name)
			write_place(sampler, &room->pc[i]);
	if (room->data.dropped)
		xs_count_unsampled(room->data.dropped);
}

/* With the claim. */
static void fetch(struct sampler *sampler)
{
	struct xs_pc_get get = { XS_PROF_HEAD(xs_pc_get, data) };

	get.context = atomic_load(&sampler->context);
	get.data = &sampler->fetched.data;
	do {
		prepare(&sampler->fetched);
		if (pc.PCSamplingGetData(&get)) {
			/* where the hardware's buffer was full it is not known how many are lost */
			xs_count_unsampled(sampler->fetched.data.full);
			break;
		}
		write_places(sampler, &sampler->fetched);
	} while (sampler->fetched.data.left && sampler->fetched.data.count);
	atomic_store(&sampler->moment, xs_moment());
}

/* ---- beginning and end ---- */

static CUptiResult call(CUptiResult (*function)(struct xs_pc_context *), CUcontext context)
{
	struct xs_pc_context it = { XS_PROF_HEAD(xs_pc_context, context) };

	it.context = context;
	return function(&it);
}

static CUptiResult configure(struct sampler *sampler, CUcontext context, uint32_t period)
{
	struct xs_pc_attribute attributes[] = {
		{ .type = XS_PC_REASONS,
		  .data = { sampler->count, (uint64_t)(uintptr_t)sampler->index } },
		{ .type = XS_PC_MODE, .data = { XS_PC_CONTINUOUS } },
		{ .type = XS_PC_START_STOP, .data = { 1 } },
		{ .type = XS_PC_BUFFER, .data = { (uint64_t)(uintptr_t)&sampler->left.data } },
		{ .type = XS_PC_PERIOD, .data = { period } },
	};
	struct xs_pc_configure all = { XS_PROF_HEAD(xs_pc_configure, attributes) };

	all.context = context;
	all.count = sizeof(attributes) / sizeof(attributes[0]) - !period;
	all.attributes = attributes;
	return pc.PCSamplingSetConfigurationAttribute(&all);
}

/* -i in us as a power of two of cycles, of some 1.5 GHz; 0: CUPTI chooses. */
static uint32_t period_of(const struct xs_options *options)
{
	uint64_t cycles = options->sampling_interval * 1500u;
	uint32_t power = 5;

	while (options->sampling_interval && power < 31 && 1ull << (power + 1) <= cycles)
		power++;
	return options->sampling_interval ? power : 0;
}

/* With the claim. */
static void begin(struct sampler *sampler)
{
	CUcontext context = atomic_load(&sampler->context);
	enum xs_unseen why = XS_UNSEEN_METRIC_CUPTI;
	uint32_t device = 0;
	bool begun = false;

	if (xs_cupti.GetDeviceId)
		(void)xs_cupti.GetDeviceId(context, &device);
	sampler->device = (uint8_t)device;
	prepare(&sampler->left);
	if (open_sampling()) {
		why = XS_UNSEEN_METRIC_ACTIVE;
		begun = !call(pc.PCSamplingEnable, context) && take_reasons(sampler, context) &&
			!configure(sampler, context, period_of(xs_options_of_run()));
	}
	if (!begun)
		xs_tell_unseen(why);
	atomic_store(&sampler->moment, xs_moment());
	atomic_store(&sampler->stage, begun ? READY : NEVER);
}

static struct sampler *sampler_of(CUcontext context, bool make)
{
	struct sampler *samplers = make && !xs_is_sealed() ? xs_table(&table)
							   : atomic_load(&table.memory);

	for (uint32_t i = 0; samplers && i < CONTEXTS; i++) {
		CUcontext there = atomic_load(&samplers[i].context);

		if (there == context)
			return &samplers[i];
		if (!there && make &&
		    (atomic_compare_exchange_strong(&samplers[i].context, &there, context) ||
		     there == context))
			return &samplers[i];
	}
	return NULL;
}

/* A kernel that is to be sampled waits, for a while, until another thread has begun to. */
static bool take(struct sampler *sampler, bool wanted)
{
	uint32_t rounds = 0;

	while (!xs_claim(&sampler->claim))
		if (!wanted || atomic_load(&sampler->runs) ||
		    atomic_load(&sampler->stage) == NEVER || !xs_wait_a_bit(&rounds))
			return false;
	return true;
}

void xs_cuda_stalls_launch(CUcontext context)
{
	bool wanted = !xs_paused() && !atomic_load(&xs_cupti.stage);
	struct sampler *sampler = context && xs_cuda_own_process() ? sampler_of(context, wanted)
								   : NULL;
	struct xs_blocked blocked;

	if (!sampler || atomic_load(&sampler->stage) == NEVER ||
	    (atomic_load(&sampler->runs) == wanted &&
	     xs_moment() - atomic_load(&sampler->moment) < LOOK_MS) ||
	    xs_is_sealed() || xs_in_handler() || !take(sampler, wanted))
		return;
	blocked = xs_block(); /* libcupti makes threads that fetch samples */
	if (wanted && atomic_load(&sampler->stage) == UNUSED)
		begin(sampler);
	if (atomic_load(&sampler->stage) == READY) {
		if (atomic_load(&sampler->runs))
			fetch(sampler);
		if (atomic_load(&sampler->runs) != wanted &&
		    !call(wanted ? pc.PCSamplingStart : pc.PCSamplingStop, context))
			atomic_store(&sampler->runs, wanted);
	}
	xs_unblock(blocked);
	xs_unclaim(&sampler->claim);
}

/*
 * Fetches all that there is. for_good: also what the hardware still holds, for which CUPTI has to
 * be done with the context; the next launch begins anew.
 */
static void finish(struct sampler *sampler, bool for_good)
{
	CUcontext context = atomic_load(&sampler->context);

	if (!context || atomic_load(&sampler->stage) != READY || !xs_claim(&sampler->claim))
		return;
	if (for_good && atomic_exchange(&sampler->runs, false))
		(void)call(pc.PCSamplingStop, context);
	fetch(sampler);
	if (for_good && !call(pc.PCSamplingDisable, context)) {
		write_places(sampler, &sampler->left);
		atomic_store(&sampler->stage, UNUSED);
		atomic_store(&sampler->context, NULL);
	}
	xs_unclaim(&sampler->claim);
}

void xs_cuda_stalls_look(bool for_good)
{
	struct sampler *samplers = xs_cuda_stalls ? atomic_load(&table.memory) : NULL;

	for (uint32_t i = 0; samplers && i < CONTEXTS; i++)
		finish(&samplers[i], for_good);
}

void xs_cuda_stalls_context_ends(CUcontext context)
{
	struct sampler *sampler = xs_cuda_own_process() ? sampler_of(context, false) : NULL;

	if (sampler)
		finish(sampler, true);
}

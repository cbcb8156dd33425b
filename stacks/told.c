/*
 * Frames and stacks that are printed once, by numbers: who looks a hundred times a second finds the
 * same ones again and again.
 *
 *	M NUMBER BUILD-ID PATH		a file, as in main.c; a number may be given anew
 *	D NUMBER FILE ADDRESS		a frame; "-": in no file
 *	Y NUMBER ENTRY TEXT		a frame of Python's; ENTRY as in main.c
 *	K NUMBER CUT FRAME… / FRAME…	a stack, innermost first; 1: there are more frames; behind
 *					the slash those of Python's
 */
#include <stdlib.h>
#include <string.h>

#include "python_frames.h"
#include "stacks.h"

#define FRAMES	262144u	   /* a power of two, twice as many as there may be */
#define STACKS	65536u	   /* likewise */
#define NUMBERS (8u << 20) /* of frames in all stacks */
#define LONGEST (2 * XS_FRAMES_MAX + 2)

struct frame {
	uint64_t key, more; /* 0: free */
	uint32_t number;
};

struct stack {
	uint64_t hash; /* 0: free */
	uint32_t number, from, count;
};

static struct frame *frames;
static struct stack *stacks;
static uint32_t *numbers, frame_count, stack_count, number_count;
static uint32_t frames_told; /* numbers go on where modules have changed */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

bool xs_told_full(void)
{
	return frames_told >= FRAMES / 2 || stack_count >= STACKS / 2 ||
	       number_count >= NUMBERS - LONGEST;
}

void xs_told_forget(void)
{
	if (frames)
		memset(frames, 0, FRAMES * sizeof(*frames));
	frame_count = 0;
}

static bool make_room(void)
{
	if (!frames)
		frames = calloc(FRAMES, sizeof(*frames));
	if (!stacks)
		stacks = calloc(STACKS, sizeof(*stacks));
	if (!numbers)
		numbers = malloc(NUMBERS * sizeof(*numbers));
	return frames && stacks && numbers;
}

/* Its entry; *ret_new: it is still to be printed. NULL: no room. */
static struct frame *find_frame(uint64_t key, uint64_t more, bool *ret_new)
{
	uint64_t at = mix(mix(0, key), more);
	struct frame *frame;

	*ret_new = false;
	for (; (frame = &frames[at % FRAMES])->more; at++)
		if (frame->key == key && frame->more == more)
			return frame;
	if (frame_count >= FRAMES / 2)
		return NULL;
	frame_count++;
	*frame = (struct frame){ key, more, frames_told++ };
	*ret_new = true;
	return frame;
}

/* XS_NO_STACK: there is no room. */
static uint32_t native(uintptr_t address)
{
	bool new;
	struct frame *frame = find_frame(address, 1, &new);
	struct xs_module *module;

	if (!frame)
		return XS_NO_STACK;
	module = new ? xs_module_of(address - 1) : NULL;
	if (module) {
		xs_print_module(module);
		printf("D %u %zu %lx\n", frame->number, xs_module_number(module),
		       address - module->bias);
	} else if (new) {
		printf("D %u - %lx\n", frame->number, address);
	}
	return frame->number;
}

static uint32_t of_python(const struct xs_python_frame *python)
{
	uint64_t identity = xs_python_identity(python);
	bool new;
	struct frame *frame =
		find_frame(python->code * 2 + python->is_entry, identity > 1 ? identity : 2, &new);

	if (!frame)
		return XS_NO_STACK;
	if (new) {
		printf("Y %u %d ", frame->number, python->is_entry);
		xs_print_text(xs_python_text(python), "\n");
	}
	return frame->number;
}

static uint32_t tell(const uint32_t *list, uint32_t count, uint32_t natives, bool cut)
{
	uint64_t hash = cut + 1u, at;
	struct stack *stack;

	for (uint32_t i = 0; i < count; i++)
		hash = mix(hash, list[i]);
	hash = mix(hash, natives) | 1;
	for (at = hash; (stack = &stacks[at % STACKS])->hash; at++)
		if (stack->hash == hash && stack->count == count &&
		    !memcmp(numbers + stack->from, list, count * sizeof(*list)))
			return stack->number;
	if (xs_told_full())
		return XS_NO_STACK;
	*stack = (struct stack){ hash, stack_count++, number_count, count };
	memcpy(numbers + number_count, list, count * sizeof(*list));
	number_count += count;
	printf("K %u %d", stack->number, cut);
	for (uint32_t i = 0; i < natives; i++)
		printf(" %u", list[i]);
	printf(" /");
	for (uint32_t i = natives; i < count; i++)
		printf(" %u", list[i]);
	putchar('\n');
	return stack->number;
}

uint32_t xs_told_stack(const struct xs_thread *thread, bool *ret_cut)
{
	uintptr_t addresses[XS_FRAMES_MAX];
	uint32_t list[LONGEST], count = 0, natives;
	size_t n;

	*ret_cut = false;
	if (!thread->copied || !make_room())
		return XS_NO_STACK;
	n = xs_walk(thread, addresses, XS_FRAMES_MAX, ret_cut);
	for (size_t i = 0; i < n; i++)
		if ((list[count] = native(addresses[i])) != XS_NO_STACK)
			count++;
	natives = count;
	for (uint32_t i = 0; i < thread->python_count; i++)
		if ((list[count] = of_python(&thread->python[i])) != XS_NO_STACK)
			count++;
	return count ? tell(list, count, natives, *ret_cut || thread->python_more) : XS_NO_STACK;
}

/*
 * An API that nobody has: what the test of a new backend (test_additions.py) installs, outside of
 * the tree. Its loader hands the table of its functions to the library that TOY_INJECTION names.
 */
#ifndef TOY_API_H
#define TOY_API_H

#include <stdint.h>

typedef enum _toy_result {
	TOY_OK = 0,
	TOY_BAD_QUEUE = 7,
} toy_result;
typedef struct _toy_queue *toy_queue;

extern toy_result toyQueueCreate(uint32_t device, toy_queue *queue);
/* Runs at once, and says when by CLOCK_MONOTONIC. */
extern toy_result toyLaunch(toy_queue queue, const char *kernel, uint64_t *start, uint64_t *end);
extern toy_result toyQueueDestroy(toy_queue queue);

struct toy_functions {
	toy_result (*toyQueueCreate)(uint32_t device, toy_queue *queue);
	toy_result (*toyLaunch)(toy_queue queue, const char *kernel, uint64_t *start,
				uint64_t *end);
	toy_result (*toyQueueDestroy)(toy_queue queue);
};
typedef void (*toy_injection)(struct toy_functions *functions);

#endif

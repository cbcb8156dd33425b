#include "block.h"

#include <errno.h>
#include <stdlib.h>

#include "merge.h"

static bool grow(struct xm_bytes *bytes, size_t more)
{
	size_t room = bytes->length + more > 2 * bytes->room ? bytes->length + more + 4096
							     : 2 * bytes->room;
	char *data = realloc(bytes->data, room + XF_SLACK);

	if (!data)
		return false;
	bytes->data = data;
	bytes->room = room;
	return true;
}

char *xm_block_room(struct xm_block *block, struct xm_bytes *bytes, size_t more)
{
	if (bytes->room - bytes->length < more && !grow(bytes, more)) {
		block->error = -ENOMEM;
		return NULL;
	}
	return bytes->data + bytes->length;
}

struct xm_note *xm_block_note(struct xm_block *block, size_t size)
{
	size_t whole = (sizeof(struct xm_note) + size + 15) & ~(size_t)15;
	struct xm_note *note = (struct xm_note *)xm_block_room(block, &block->notes, whole);

	if (!note)
		return NULL;
	note->size = whole;
	note->place = block->text.length;
	note->lost = block->input->lost_read;
	block->notes.length += whole;
	return note;
}

const struct xm_note *xm_block_next(const struct xm_block *block, size_t *at)
{
	const struct xm_note *note = (const struct xm_note *)(block->notes.data + *at);

	if (*at == block->notes.length)
		return NULL;
	*at += note->size;
	return note;
}

static void forget(struct xm_bytes *bytes)
{
	bytes->length = 0;
	if (bytes->room <= XM_BLOCK_ROOM)
		return;
	free(bytes->data);
	bytes->data = NULL;
	bytes->room = 0;
}

void xm_block_clear(struct xm_block *block)
{
	forget(&block->text);
	forget(&block->notes);
	block->error = 0;
}

void xm_block_free(struct xm_block *block)
{
	free(block->text.data);
	free(block->notes.data);
}

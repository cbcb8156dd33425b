/*
 * What every file of the collector knows of this process.
 *
 * What must not survive a fork (the gate, the lock, the state) lives in one page that the kernel
 * wipes in the child.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "call_values.h"
#include "self.h"
#include "sys.h"

__thread struct xs_tls xs_tls __attribute__((tls_model("initial-exec")));
static struct xs_gate untraced = { .state = XS_OFF };
static struct xs_gate before_start;
struct xs_gate *xs_gate = &before_start;
static const _Atomic uint32_t not_paused;
const _Atomic uint32_t *xs_run_paused = &not_paused;
struct xs_doorbell *xs_bell;
bool xs_use_tsc;

/* for companion.h: by these names the inline functions of collector.h work in another library */
#define COMPANION(of) __attribute__((alias(of), visibility("default")))
extern __thread struct xs_tls xs_companion_tls
	__attribute__((tls_model("initial-exec"))) COMPANION("xs_tls");
extern struct xs_gate *xs_companion_gate COMPANION("xs_gate");
extern const _Atomic uint32_t *xs_companion_paused COMPANION("xs_run_paused");
extern bool xs_companion_use_tsc COMPANION("xs_use_tsc");

struct xs_self xs_self;
bool xs_log_calls;

/* NULL: there is no memory. */
static struct xs_gate *wiped_page(void)
{
	void *page = xs_map_memory(XS_PAGE);

	if (!page)
		return NULL;
	if (xs_sys(SYS_madvise, page, XS_PAGE, MADV_WIPEONFORK) == 0) /* Linux 4.14 */
		return page;
	(void)xs_sys(SYS_munmap, page, XS_PAGE);
	return NULL;
}

/* `gate` in the place of `expected`, unless another thread was faster. NULL: `instead`. */
static void put_gate(struct xs_gate *expected, struct xs_gate *gate, struct xs_gate *instead)
{
	if (!__atomic_compare_exchange_n(&xs_gate, &expected, gate ? gate : instead, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    gate)
		(void)xs_sys(SYS_munmap, gate, XS_PAGE);
}

/* From the C library, where it is new enough; musl, which a program may have, has neither. */
#pragma weak _r_debug
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

const struct link_map *xs_first_self(void)
{
	const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;
	struct dl_find_object own;

	if (!map || !_dl_find_object || _dl_find_object((void *)&xs_self, &own))
		return NULL;
	while (map && map != own.dlfo_link_map)
		map = map->l_next;
	if (map)
		return NULL;
	for (map = _r_debug.r_map; map && strcmp(map->l_name, own.dlfo_link_map->l_name) != 0;)
		map = map->l_next;
	return map ? map : own.dlfo_link_map;
}

void xs_gate_make(void)
{
	const char *run;
	bool traced;

	if (__atomic_load_n(&xs_gate, __ATOMIC_ACQUIRE) != &before_start)
		return;
	run = getenv(XS_ENV_RUN); /* empty: in a sandbox that allows no call of ours */
	traced = run && *run && !xs_first_self();
	put_gate(&before_start, traced ? wiped_page() : NULL, &untraced);
}

bool xs_gate_renew(void)
{
	struct xs_gate *page = wiped_page();

	if (page)
		put_gate(&untraced, page, &untraced);
	return page;
}

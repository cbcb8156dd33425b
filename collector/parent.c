/*
 * Whom the application has for a parent. It is the launcher; but a program that tells its parent
 * something (that it is ready, that it wants to be restarted) means the one who started xstrace,
 * and the launcher cannot pass that on: it does not see whether a signal was meant for it alone or
 * for the whole process group, which a shell that waits for it must not get. So the application is
 * told the pid that it would have without us.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "self.h"

__attribute__((visibility("default"))) pid_t getppid(void)
{
	const struct xs_control *control = xs_self.control;
	pid_t parent = (pid_t)syscall(SYS_getppid);

	/*
	 * none of its children, nor the application once its parent is another; no other system
	 * call is made: it may be in a sandbox
	 */
	if (control && parent == control->launcher_pid && xs_self.pid == control->app_pid)
		return atomic_load_explicit(&control->launcher_parent, memory_order_relaxed);
	return parent;
}

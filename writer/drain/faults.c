/*
 * Files that shrink while they are mapped. A traced process can cut its own ring file, anybody a
 * program's file whose symbols are read: the next access of what is gone is a SIGBUS. There is zero
 * from then on, as in memory that nobody has written, and whoever reads checks what he reads
 * anyway: nothing is jumped over, nothing is left half done.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "faults.h"
#include "shm.h"

static volatile sig_atomic_t faults;

static void on_fault(int number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(XS_PAGE - 1);

	(void)context;
	if (info->si_code == BUS_ADRERR &&
	    mmap((void *)page, XS_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		faults++;
	else
		(void)signal(number, SIG_DFL); /* it comes again */
}

void xs_faults_catch(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	(void)sigaction(SIGBUS, &action, NULL);
}

unsigned xs_faults(void)
{
	return (unsigned)faults;
}

/*
 * Classes of errors, as far as they tell what a call that failed has done.
 */
#include "mpi_record.h"
#include "mpi_wrap.h"

static int (*error_class)(int code, int *class);

void xs_mpi_errors_find(void)
{
	*(void **)&error_class = xs_mpi_find_in("PMPI_Error_class");
}

uint32_t xs_mpi_error_of(int32_t result)
{
	int class = result;

	if (xs_mpi_abi.codes_are_classes)
		return xs_mpi_class_of(&xs_mpi_abi, result);
	/* before MPI is initialised older libraries end the program when they are asked */
	if (!xs_mpi_world || !error_class || error_class(result, &class))
		return XS_MPI_ERR_UNNAMED;
	return xs_mpi_class_of(&xs_mpi_abi, class);
}

bool xs_mpi_is_of_arguments(uint32_t error)
{
	switch (error) {
	case XS_MPI_ERR_UNNAMED:
	case XS_MPI_ERR_UNKNOWN:
	case XS_MPI_ERR_TRUNCATE:
	case XS_MPI_ERR_OTHER:
	case XS_MPI_ERR_INTERN:
		return false;
	default:
		return true;
	}
}

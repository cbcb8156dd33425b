/* A few names, in place of all that the build makes: for the tests of what reads records. */
#include <stdint.h>

extern const char *const xs_mpi_names[];
extern const uint32_t xs_mpi_count;

const char *const xs_mpi_names[] = { "MPI_Send", "MPI_Irecv", "MPI_Wait", "MPI_Recv_init" };
const uint32_t xs_mpi_count = 4;

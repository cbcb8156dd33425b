/*
 * oneCCL's collectives on the host, two ranks or more: each number of rounds times an allreduce and
 * a broadcast of 1,000 floats, and a barrier. Rank r prints what it called.
 */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <mpi.h>
#include <oneapi/ccl.hpp>
#include <unistd.h>

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 3;
	const size_t count = 1000;
	int rank, size;

	ccl::init();
	MPI_Init(nullptr, nullptr);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	{
		ccl::kvs::address_type address;
		std::shared_ptr<ccl::kvs> kvs;
		if (!rank) {
			kvs = ccl::create_main_kvs();
			address = kvs->get_address();
		}
		MPI_Bcast(address.data(), (int)address.size(), MPI_BYTE, 0, MPI_COMM_WORLD);
		if (rank)
			kvs = ccl::create_kvs(address);
		auto comm = ccl::create_communicator(size, rank, kvs);
		std::vector<float> in(count, 1.0f), out(count);
		for (int i = 0; i < rounds; i++) {
			ccl::allreduce(in.data(), out.data(), count, ccl::reduction::sum, comm).wait();
			ccl::broadcast(out.data(), count, 0, comm).wait();
			ccl::barrier(comm);
		}
		/* one line, one write: the ranks share their output */
		printf("process: %d rank %d rounds %d bytes %zu sum %g\n", getpid(), rank, rounds,
		       count * sizeof(float), out[0]);
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}

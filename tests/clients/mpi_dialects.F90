! One program in each of MPI's three Fortran dialects: compiled with MPIF_H, USE_MPI or USE_MPI_F08. dialects DIRECTORY
! It says what its trace must hold, as apps/mpi_app.h does.
#ifdef USE_MPI_F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define STATUS type(MPI_Status)
#define SOURCE_OF(s) s%MPI_SOURCE
#else
#define COMM integer
#define REQUEST integer
#define DATATYPE integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define SOURCE_OF(s) s(MPI_SOURCE)
#endif

program dialects
#ifdef USE_MPI_F08
	use mpi_f08
#endif
#ifdef USE_MPI
	use mpi
#endif
	implicit none
#ifdef MPIF_H
	include 'mpif.h'
#endif
	character(len=1000) :: directory, path
	integer :: error, rank, ranks, other, here, there, i, elements
	double precision :: from(100), to(100)
	integer :: numbers(100), more(100)
	COMM :: turned
	REQUEST :: requests(2), one
	DATATYPE :: column
	STATUS :: came
#ifdef USE_MPI_F08
	STATUS :: statuses(2)
#else
	integer :: statuses(MPI_STATUS_SIZE, 2)
#endif

	from = 1
	numbers = 2
	call MPI_Init(error)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
	call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
	call get_command_argument(1, directory)
	write(path, '(a,"/said.",i0)') trim(directory), rank
	open(unit=9, file=path)
	call say('call MPI_Init', 0)
	call say('call MPI_Comm_rank comm=world', 0)
	call say('call MPI_Comm_size comm=world', 0)
	other = ieor(rank, 1)

	! blocking, with and without a status; 16 columns with gaps are 64 bytes
	call MPI_Type_vector(16, 1, 8, MPI_INTEGER, column, error)
	call say('call MPI_Type_vector', 0)
	call MPI_Type_commit(column, error)
	call say('call MPI_Type_commit', 0)
	if (rank < other) then
		call MPI_Send(from, 100, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, error)
		call say('call MPI_Send comm=world tag=7 count=100 bytes=800 peer=', other)
		call MPI_Send(from, 1, column, other, 8, MPI_COMM_WORLD, error)
		call say('call MPI_Send tag=8 count=1 bytes=64 peer=', other)
	else
		call MPI_Recv(to, 100, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, came, error)
		call say('call MPI_Recv comm=world tag=7 count=100 bytes=800 peer=', other)
		if (SOURCE_OF(came) /= other) call MPI_Abort(MPI_COMM_WORLD, 3, error)
		call MPI_Recv(to, 50, MPI_INTEGER, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
		call say('call MPI_Recv tag=8 count=16 bytes=64 peer=', other)
	end if
	call MPI_Sendrecv(numbers, 4, MPI_INTEGER, other, 9, more, 100, MPI_INTEGER, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, came, error)
	call say('call MPI_Sendrecv bytes=16 recv_tag=9 recv_bytes=16 recv_peer=', other)
	call MPI_Get_count(came, MPI_INTEGER, elements, error)
	call say('call MPI_Get_count', 0)
	if (elements /= 4) call MPI_Abort(MPI_COMM_WORLD, 4, error)
	call MPI_Type_free(column, error)
	call say('call MPI_Type_free', 0)

	! requests, with and without statuses
	do i = 1, 2
		call MPI_Irecv(more, 100, MPI_INTEGER, MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, requests(1), error)
		call say('call MPI_Irecv tag=20', 0)
		call MPI_Isend(numbers, 10 * i, MPI_INTEGER, other, 20, MPI_COMM_WORLD, requests(2), error)
		call say('call MPI_Isend tag=20 peer=', other)
		if (i == 1) call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
		if (i == 2) call MPI_Waitall(2, requests, statuses, error)
		call say('call MPI_Waitall count=2', 0)
		call say('done MPI_Isend tag=20 peer=', other)
		call say('done MPI_Irecv tag=20 peer=', other)
	end do
	call MPI_Irecv(more, 100, MPI_INTEGER, other, 21, MPI_COMM_WORLD, one, error)
	call say('call MPI_Irecv tag=21 peer=', other)
	call MPI_Ssend(numbers, 5, MPI_INTEGER, other, 21, MPI_COMM_WORLD, error)
	call say('call MPI_Ssend tag=21 bytes=20 peer=', other)
	call MPI_Wait(one, MPI_STATUS_IGNORE, error)
	call say('call MPI_Wait', 0)
	call say('done MPI_Irecv tag=21 count=5 bytes=20 peer=', other)

	! the ranks in another order
	here = ranks - 1 - rank
	there = ranks - 1 - other
	call MPI_Comm_split(MPI_COMM_WORLD, 0, here, turned, error)
	call say('call MPI_Comm_split comm=world new_comm=! seq=', 1)
	call MPI_Sendrecv(numbers, 3, MPI_INTEGER, there, 30, more, 3, MPI_INTEGER, there, 30, turned, MPI_STATUS_IGNORE, error)
	call say('call MPI_Sendrecv tag=30 recv_bytes=12 peer=', other)
	call MPI_Bcast(from, 3, MPI_DOUBLE_PRECISION, 0, turned, error)
	call say('call MPI_Bcast count=3 bytes=24 seq=1 root=', ranks - 1)
	call MPI_Comm_free(turned, error)
	call say('call MPI_Comm_free', 0)

	! collectives
	call MPI_Allreduce(from, to, 6, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
	call say('call MPI_Allreduce comm=world count=6 bytes=48 seq=', 2)
	call MPI_Allreduce(MPI_IN_PLACE, to, 7, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
	call say('call MPI_Allreduce comm=world count=7 bytes=56 seq=', 3)
	call MPI_Reduce(numbers, more, 2, MPI_INTEGER, MPI_MAX, 1, MPI_COMM_WORLD, error)
	call say('call MPI_Reduce root=1 count=2 bytes=8 seq=', 4)
	call MPI_Iallreduce(from, to, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, one, error)
	call say('call MPI_Iallreduce count=5 seq=', 5)
	call MPI_Wait(one, MPI_STATUS_IGNORE, error)
	call say('call MPI_Wait', 0)
	call say('done MPI_Iallreduce bytes=40 seq=', 5)
#ifdef USE_MPI_F08
	call MPI_Barrier(MPI_COMM_WORLD) ! the error is optional there
#else
	call MPI_Barrier(MPI_COMM_WORLD, error)
#endif
	call say('call MPI_Barrier comm=world seq=', 6)
	call MPI_Finalize(error)
	call say('call MPI_Finalize', 0)
	close(9)

contains

	! A text that ends with "=" goes on with the number.
	subroutine say(text, number)
		character(len=*), intent(in) :: text
		integer, intent(in) :: number

		if (text(len(text):) == '=') then
			write(9, '(a,i0)') text, number
		else
			write(9, '(a)') text
		end if
	end subroutine
end program

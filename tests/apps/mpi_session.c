/* MPI without MPI_Init: a session, and communicators of its process set. mpi_session DIRECTORY */
#include "mpi_app.h"

int main(int argc, char **argv)
{
	char path[4096], name[MPI_MAX_PSET_NAME_LEN];
	int number, length = sizeof(name), other, numbers[10] = { 0 };
	MPI_Session session;
	MPI_Group group;
	MPI_Comm all, again;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	MPI_Session_get_num_psets(session, MPI_INFO_NULL, &number);
	MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
	MPI_Group_rank(group, &rank);
	MPI_Group_size(group, &size);
	snprintf(path, sizeof(path), "%s/said.%d", argc > 1 ? argv[1] : ".", rank);
	said = fopen(path, "w");
	if (!said || number < 1)
		return 9;
	say("call MPI_Session_init");
	say("call MPI_Session_get_num_psets");
	say("call MPI_Session_get_nth_pset");
	say("call MPI_Group_from_session_pset");
	say("call MPI_Group_rank");
	say("call MPI_Group_size");
	MPI_Comm_create_from_group(group, "first", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all);
	say("call MPI_Comm_create_from_group new_comm=!");
	MPI_Comm_create_from_group(group, "second", MPI_INFO_NULL, MPI_ERRORS_RETURN, &again);
	say("call MPI_Comm_create_from_group new_comm=!");
	other = rank ^ 1;
	MPI_Sendrecv(numbers, 5, MPI_INT, other, 1, numbers + 5, 5, MPI_INT, other, 1, all,
		     MPI_STATUS_IGNORE);
	say("call MPI_Sendrecv comm=! peer=%d tag=1 bytes=20 recv_peer=%d recv_bytes=20", other,
	    other);
	MPI_Barrier(all);
	say("call MPI_Barrier comm=! seq=1");
	MPI_Bcast(numbers, 3, MPI_INT, 1, again);
	say("call MPI_Bcast comm=! bytes=12 root=1 seq=1");
	MPI_Comm_free(&again);
	say("call MPI_Comm_free");
	MPI_Comm_free(&all);
	say("call MPI_Comm_free");
	MPI_Group_free(&group);
	say("call MPI_Group_free");
	MPI_Session_finalize(&session);
	say("call MPI_Session_finalize");
	return fclose(said);
}

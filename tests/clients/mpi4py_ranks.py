"""Ranks of mpi4py, an even number of them; each says what its trace must hold, as apps/mpi_app.h does. mpi4py_ranks.py DIRECTORY"""

import array
import pickle
import sys

from mpi4py import MPI


def main():
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    other, even = rank ^ 1, rank % 2 == 0
    with open(f"{sys.argv[1]}/said.{rank}", "w") as file:

        def say(text):
            print(text, file=file)

        numbers, came = array.array("d", range(50)), array.array("d", [0] * 100)
        if even:
            world.Send([numbers, MPI.DOUBLE], dest=other, tag=7)
            say(f"call MPI_Send comm=world peer={other} tag=7 count=50 bytes=400")
        else:
            status = MPI.Status()
            world.Recv([came, MPI.DOUBLE], status=status)
            say(f"call MPI_Recv comm=world peer={other} tag=7 count=50 bytes=400")
            assert status.Get_source() == other and came[49] == 49
        request = world.Irecv([came, MPI.DOUBLE], source=MPI.ANY_SOURCE, tag=8)
        say("call MPI_Irecv tag=8")
        world.Isend([numbers, 3, MPI.DOUBLE], dest=other, tag=8).Wait()
        say(f"call MPI_Isend peer={other} tag=8 count=3 bytes=24")
        say(f"done MPI_Isend peer={other} tag=8 bytes=24")
        request.Wait()
        say(f"done MPI_Irecv peer={other} tag=8 count=3 bytes=24")

        # objects travel as what pickle makes of them
        what = {"a": list(range(100)), "rank": 0}
        length = len(pickle.dumps(what, pickle.HIGHEST_PROTOCOL))
        if even:
            world.send(what, dest=other, tag=9)
            say(f"call MPI_Send peer={other} tag=9 bytes={length}")
        else:
            assert world.recv(source=other, tag=9) == what
            say(f"call MPI_Mrecv peer={other} tag=9 bytes={length}")

        total = array.array("d", [0] * 50)
        world.Allreduce([numbers, MPI.DOUBLE], [total, MPI.DOUBLE])
        say("call MPI_Allreduce comm=world count=50 bytes=400 seq=1")
        half = world.Split(color=rank % 2, key=-rank)
        say("call MPI_Comm_split comm=world seq=2 new_comm=!")
        half.Bcast([total, 6, MPI.DOUBLE], root=0)
        say(f"call MPI_Bcast count=6 bytes=48 seq=1 root={size - 2 + rank % 2}")
        half.Free()
        gathered = array.array("d", [0] * 2 * size)
        world.Allgather([numbers, 2, MPI.DOUBLE], [gathered, 2, MPI.DOUBLE])
        say("call MPI_Allgather comm=world count=2 bytes=16 seq=3")
        world.Barrier()
        say("call MPI_Barrier comm=world seq=4")


if __name__ == "__main__":
    main()

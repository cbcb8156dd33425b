/*
 * The constants of each ABI. Sources: mpi.h of MPICH 4.0.2 (the ABI that MPICH, Intel MPI, MVAPICH
 * and Cray's MPI share), mpi.h of Open MPI 4.1.4 and 5.0, and the MPI 5.0 standard's chapter on the
 * ABI (mpi_abi.h of MPICH 5.0).
 */
#include "mpi_abi.h"

#include <string.h>

#include "mpi_record.h"

struct xs_mpi_abi xs_mpi_abi = { .handle_mask = UINT64_MAX };

static const struct xs_mpi_abi mpich = {
	.name = "MPICH",
	.handle_mask = UINT32_MAX,
	.int_handles = true,
	.world = 0x44000000,
	.self = 0x44000001,
	.comm_null = 0x04000000,
	.request_null = 0x2c000000,
	.byte = 0x4c00010d,
	.proc_null = -1,
	.any_source = -2,
	.root = -3,
	.undefined = -32766,
	.cart = 2,
	.graph = 1,
	.dist_graph = 3,
	.status_ignore = 1,
	.status = XS_MPI_STATUS_MPICH,
	.status_size = 20,
	.error_other = 15,
	.own_classes = true,
};

static const struct xs_mpi_abi open_mpi = {
	.name = "Open MPI",
	.handle_mask = UINT64_MAX,
	.proc_null = -2,
	.any_source = -1,
	.root = -4,
	.undefined = -32766,
	.cart = 1,
	.graph = 2,
	.dist_graph = 3,
	.status_ignore = 0,
	.status = XS_MPI_STATUS_OPEN,
	.status_size = 24,
	.error_other = 16,
	.codes_are_classes = true,
};

static const struct xs_mpi_abi standard = {
	.name = "MPI 5 ABI",
	.handle_mask = UINT64_MAX,
	.world = 0x101,
	.self = 0x102,
	.comm_null = 0x100,
	.request_null = 0x180,
	.byte = 0x247,
	.proc_null = -3,
	.any_source = -1,
	.root = -4,
	.undefined = -32766,
	.cart = 211,
	.graph = 212,
	.dist_graph = 213,
	.status_ignore = 0,
	.status = XS_MPI_STATUS_ABI,
	.status_size = 32,
	.error_other = 16,
};

uint32_t xs_mpi_class_of(const struct xs_mpi_abi *abi, int32_t class)
{
	/* MPICH's, by their numbers from 0 on */
	static const uint8_t own[] = {
		XS_MPI_ERR_UNNAMED,	XS_MPI_ERR_BUFFER,   XS_MPI_ERR_COUNT,
		XS_MPI_ERR_TYPE,	XS_MPI_ERR_TAG,	     XS_MPI_ERR_COMM,
		XS_MPI_ERR_RANK,	XS_MPI_ERR_ROOT,     XS_MPI_ERR_GROUP,
		XS_MPI_ERR_OP,		XS_MPI_ERR_TOPOLOGY, XS_MPI_ERR_DIMS,
		XS_MPI_ERR_ARG,		XS_MPI_ERR_UNKNOWN,  XS_MPI_ERR_TRUNCATE,
		XS_MPI_ERR_OTHER,	XS_MPI_ERR_INTERN,   [19] = XS_MPI_ERR_REQUEST,
		[28] = XS_MPI_ERR_INFO,
	};

	if (abi->own_classes)
		return class >= 0 && class < (int32_t)sizeof(own) ? own[class] : XS_MPI_ERR_UNNAMED;
	return (class > 0 && class <= XS_MPI_ERR_INTERN) || class == XS_MPI_ERR_INFO
		       ? (uint32_t)class
		       : XS_MPI_ERR_UNNAMED;
}

void xs_mpi_abi_choose(struct xs_mpi_abi *abi, const char *soname, void *(*find)(const char *name))
{
	void *world = find("ompi_mpi_comm_world");

	if (!strncmp(soname, "libmpi_abi.", 11)) {
		*abi = standard;
	} else if (world) {
		*abi = open_mpi;
		abi->world = (uintptr_t)world;
		abi->self = (uintptr_t)find("ompi_mpi_comm_self");
		abi->comm_null = (uintptr_t)find("ompi_mpi_comm_null");
		abi->request_null = (uintptr_t)find("ompi_request_null");
		abi->byte = (uintptr_t)find("ompi_mpi_byte");
	} else {
		*abi = mpich;
	}
}

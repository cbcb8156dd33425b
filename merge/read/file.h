/*
 * An input is opened once. Each pass reads the same bytes of it: those that were there then,
 * whatever is renamed or written meanwhile. What can be read only once (a pipe) is copied into a
 * temporary file without a name.
 */
#ifndef XM_FILE_H
#define XM_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* zstd: what RFC 8878 asks every reader to have room for; xstrace's own frames need 2^20 */
#define XM_WINDOW_LOG	  23u
#define XM_WINDOW_LOG_MIN 10u
#define XM_WINDOW_LOG_MAX 31u

struct xm_file {
	int fd;		     /* -1: not open */
	off_t size;	     /* bytes to read of it */
	unsigned window_log; /* a zstd frame may make its reader keep so much */
};

/*
 * `st` is what stat() says of the path. 0, -errno, or -EMEDIUMTYPE: it is neither a file nor a
 * pipe.
 */
int xm_file_open(struct xm_file *file, const char *path, const struct stat *st);
/*
 * Is the file still being written? Its drain process then holds a lock on it, which the kernel
 * releases when that process ends.
 */
bool xm_file_is_written(const struct xm_file *file);
/* It has grown: that counts, too. */
void xm_file_look_again(struct xm_file *file);
void xm_file_close(struct xm_file *file);

/* A file without a name in the directory for temporary ones: its descriptor, or -errno. */
int xm_temporary(void);

#endif

/* Between libxstrace-jit.so and libxstrace.so. */
#ifndef XS_JIT_H
#define XS_JIT_H

/* A method's code was made at run time. name may be NULL; size in bytes. */
void xs_jit_method(const char *name, const void *address, unsigned size);

#endif

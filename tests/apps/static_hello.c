/*
 * Linked statically: nothing can be preloaded into it, so it cannot be traced. It must run as it
 * always does, and the user must be told.
 */
#include <stdio.h>

int main(void)
{
	printf("hello, static\n");
	return 5;
}

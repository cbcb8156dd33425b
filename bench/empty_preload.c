/*
 * A preloaded library that does nothing: what loading one costs a program.
 */
__attribute__((visibility("default"))) int xs_empty_preload(void);

int xs_empty_preload(void)
{
	return 0;
}

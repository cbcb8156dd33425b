/*
 * gcc's AddressSanitizer refuses a program in which another library comes before it, as a preloaded
 * one does. The environment tells it not to (launcher/environment.c), and so does this, which its
 * runtime asks: a script may give ASAN_OPTIONS of its own to a program. What a program or its
 * environment says counts more.
 */
const char *__asan_default_options(void);

__attribute__((visibility("default"), no_sanitize("address", "undefined"))) const char *
__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

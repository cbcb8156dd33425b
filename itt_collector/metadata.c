/*
 * Metadata: what tasks, regions and frames, or the process, are given as arguments.
 */
#include <string.h>

#include "itt.h"
#include "blocked.h"
#include "format.h"

static const struct xs_id null_id;

static void add(const __itt_domain *domain, struct xs_id id, uint32_t key, uint32_t type,
		const void *values, size_t count)
{
	struct itt_args args;

	if (!itt_args_begin(&args, XS_ARGS, 0, itt_domain_id((__itt_domain *)domain), id))
		return;
	itt_arg(&args, key, type, values, count);
	itt_args_end(&args, 0);
}

EXPORT void __itt_metadata_add(const __itt_domain *domain, __itt_id id, __itt_string_handle *key,
			       int type, size_t count, void *data)
{
	if (itt_enabled(domain) && xs_recording() && type > 0 && type <= XS_VALUE_DOUBLE)
		add(domain, itt_id(id), itt_text(key), (uint32_t)type, data, count);
}

/* A length of 0, or one that cannot be, means up to the terminating 0. */
static size_t text_length(const char *data, size_t length)
{
	return !data ? 0 : length && length < SIZE_MAX / 2 ? length : strnlen(data, ITT_ARGS_MAX);
}

EXPORT void __itt_metadata_str_add(const __itt_domain *domain, __itt_id id,
				   __itt_string_handle *key, const char *data, size_t length)
{
	if (itt_enabled(domain) && xs_recording())
		add(domain, itt_id(id), itt_text(key), XS_VALUE_TEXT, data,
		    text_length(data, length));
}

static void add_with_scope(const __itt_domain *domain, int scope, __itt_string_handle *key,
			   uint32_t type, const void *data, size_t count)
{
	struct itt_args args;
	uint8_t extent = scope == ITT_SCOPE_GLOBAL	  ? XS_SCOPE_GLOBAL
			 : scope == ITT_SCOPE_TRACK_GROUP ? XS_SCOPE_PROCESS
							  : XS_SCOPE_THREAD;
	uint32_t key_id;

	if (!itt_enabled(domain) || !xs_recording())
		return;
	if (scope == ITT_SCOPE_TASK || scope == ITT_SCOPE_UNKNOWN) {
		add(domain, null_id, itt_text(key), type, data, count);
		return;
	}
	key_id = itt_text(key);
	if (!itt_args_begin(&args, XS_INSTANT, extent,
			    itt_intern_in(itt_domain_text(domain), "metadata",
					  itt_domain_id((__itt_domain *)domain)),
			    null_id))
		return;
	itt_arg(&args, key_id, type, data, count);
	itt_args_end(&args, 0);
}

EXPORT void __itt_metadata_add_with_scope(const __itt_domain *domain, int scope,
					  __itt_string_handle *key, int type, size_t count,
					  void *data)
{
	if (type > 0 && type <= XS_VALUE_DOUBLE)
		add_with_scope(domain, scope, key, (uint32_t)type, data, count);
}

EXPORT void __itt_metadata_str_add_with_scope(const __itt_domain *domain, int scope,
					      __itt_string_handle *key, const char *data,
					      size_t length)
{
	add_with_scope(domain, scope, key, XS_VALUE_TEXT, data, text_length(data, length));
}

static __attribute__((format(printf, 3, 0))) void add_formatted(const __itt_domain *domain,
								struct xs_id id, const char *format,
								va_list values)
{
	uint32_t key = xs_name("metadata", 0);
	struct itt_args args;
	size_t room, length;
	char *text;
	bool cut;

	if (!itt_args_begin(&args, XS_ARGS, 0, itt_domain_id((__itt_domain *)domain), id))
		return;
	text = itt_arg_open(&args, key, &room);
	if (text) {
		length = itt_format(text, room, format, values, &cut);
		itt_arg_written(&args, length, cut);
	}
	itt_args_end(&args, 0);
}

EXPORT void __itt_formatted_metadata_add(const __itt_domain *domain, __itt_string_handle *format,
					 ...)
{
	va_list values;

	if (!itt_enabled(domain) || !format || !format->strA || !xs_recording())
		return;
	va_start(values, format);
	add_formatted(domain, null_id, format->strA, values);
	va_end(values);
}

EXPORT void __itt_formatted_metadata_add_overlapped(const __itt_domain *domain, __itt_id id,
						    __itt_string_handle *format, ...)
{
	va_list values;

	if (!itt_enabled(domain) || !format || !format->strA || !xs_recording())
		return;
	va_start(values, format);
	add_formatted(domain, itt_id(id), format->strA, values);
	va_end(values);
}

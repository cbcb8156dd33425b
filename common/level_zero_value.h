/*
 * Values of Level Zero's metrics, as records hold them. Whoever includes this has zet_api.h.
 */
#ifndef XS_LEVEL_ZERO_VALUE_H
#define XS_LEVEL_ZERO_VALUE_H

#include <string.h>

#include "task_record.h"

/* The value's bits, and its enum xs_value_type. */
static inline uint64_t xs_level_zero_value(const zet_typed_value_t *value, uint8_t *ret_type)
{
	uint32_t bits;

	*ret_type = XS_VALUE_U64;
	switch ((int)value->type) {
	case ZET_VALUE_TYPE_UINT64:
		return value->value.ui64;
	case ZET_VALUE_TYPE_UINT32:
		return value->value.ui32;
	case ZET_VALUE_TYPE_BOOL8:
		return value->value.b8 != 0;
	case 6: /* of newer headers: 8 and 16 bits */
		return value->value.ui32 & 0xff;
	case 7:
		return value->value.ui32 & 0xffff;
	case ZET_VALUE_TYPE_FLOAT32:
		*ret_type = XS_VALUE_FLOAT;
		memcpy(&bits, &value->value.fp32, sizeof(bits));
		return bits;
	case ZET_VALUE_TYPE_FLOAT64:
		*ret_type = XS_VALUE_DOUBLE;
		return value->value.ui64;
	default:
		*ret_type = XS_VALUE_NONE;
		return 0;
	}
}

#endif

/*
 * value.h - values of pmix_info_t made and released, arrays within arrays included. The room
 * values turns a snapshot into what the standard calls a fabric, its devices and a request, without a server.
 *
 * What is made here is malloc'ed as the library does it, so PMIX_VALUE_DESTRUCT and PMIX_INFO_FREE of the
 * caller work, too; fab_value_free() is for answers that hold arrays of arrays, of which the library forgets
 * a part.
 */
#ifndef FAB_PMIX_ANSWERS_VALUE_H
#define FAB_PMIX_ANSWERS_VALUE_H

#include <pmix_common.h>

/* A copy of a string. */
pmix_status_t fab_value_string(pmix_value_t *value, const char *text);

/* A number, of one of the types PMIX_UINT32, PMIX_SIZE, PMIX_UINT64, PMIX_INT64. */
pmix_status_t fab_value_number(pmix_value_t *value, pmix_data_type_t type, uint64_t number);

/*
 * A field of a structure as the attribute `type` has it: a uint32_t as PMIX_UINT32 or PMIX_SIZE, a uint64_t
 * as PMIX_UINT64, an int64_t as PMIX_INT64, a const char * as PMIX_STRING.
 */
pmix_status_t fab_value_field(pmix_value_t *value, pmix_data_type_t type, const void *field);

/* `type`; the compiler refuses a field of a type that fab_value_field() does not read, as an array. */
#define FAB_FIELD_TYPE(type, field)                                                                          \
    _Generic((field), const char * : (type), uint32_t : (type), uint64_t : (type), int64_t : (type))

/*
 * An array of n zeroed elements: of type PMIX_UINT32, PMIX_STRING, PMIX_INFO, PMIX_GEOMETRY,
 * PMIX_ENDPOINT or PMIX_DATA_ARRAY. The elements are value->data.darray->array.
 */
pmix_status_t fab_value_array(pmix_value_t *value, pmix_data_type_t type, size_t n);

/* Release a value of the types above, or of any that points at nothing; it is PMIX_UNDEF afterwards. */
void fab_value_free(pmix_value_t *value);

/* Release n infos and the array itself. NULL allowed. */
void fab_infos_free(pmix_info_t *info, size_t n);

#endif

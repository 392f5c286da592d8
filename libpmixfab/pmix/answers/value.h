/*
 * value.h - make and free values of pmix_info_t, nested arrays included. The room values turns a snapshot
 * into the fabric, devices and request of the standard, without a server.
 *
 * Memory is from malloc(), as in the PMIx library. So PMIX_VALUE_DESTRUCT and PMIX_INFO_FREE work, too.
 * Answers with arrays of arrays need fab_value_free(), because the library leaks a part of them.
 */
#ifndef FAB_PMIX_ANSWERS_VALUE_H
#define FAB_PMIX_ANSWERS_VALUE_H

#include <pmix_common.h>

/* Make a copy of a string. */
pmix_status_t fab_value_string(pmix_value_t *value, const char *text);

/* Make a number of type PMIX_UINT32, PMIX_SIZE, PMIX_UINT64 or PMIX_INT64. */
pmix_status_t fab_value_number(pmix_value_t *value, pmix_data_type_t type, uint64_t number);

/*
 * Make a value of type `type` from a member of a struct:
 * - a uint32_t as PMIX_UINT32 or PMIX_SIZE
 * - a uint64_t as PMIX_UINT64
 * - an int64_t as PMIX_INT64
 * - a const char * as PMIX_STRING
 */
pmix_status_t fab_value_field(pmix_value_t *value, pmix_data_type_t type, const void *field);

/* `type`; does not compile for a member of a type that fab_value_field() does not read, such as an array. */
#define FAB_FIELD_TYPE(type, field)                                                                          \
    _Generic((field), const char * : (type), uint32_t : (type), uint64_t : (type), int64_t : (type))

/*
 * Make an array of n zeroed elements: of type PMIX_UINT32, PMIX_STRING, PMIX_INFO, PMIX_GEOMETRY,
 * PMIX_ENDPOINT or PMIX_DATA_ARRAY. The elements are value->data.darray->array.
 */
pmix_status_t fab_value_array(pmix_value_t *value, pmix_data_type_t type, size_t n);

/* Free a value of the types above, or of any without a pointer; it is PMIX_UNDEF afterwards. */
void fab_value_free(pmix_value_t *value);

/* Free n infos and the array itself. NULL is allowed. */
void fab_infos_free(pmix_info_t *info, size_t n);

#endif

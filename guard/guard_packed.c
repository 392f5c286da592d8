/* guard_packed.c - a reader of data that a client's library has packed; it trusts no count and no length. */
#include <string.h>

#include "guard/guard_priv.h"

#define MAX_DEPTH   6     /* of nested arrays and infos */
#define MAX_OBJECTS 16384 /* each takes up to half a kilobyte of memory, but few bytes of the message */

struct packed_type {
    pmix_data_type_t type;
    enum { PLAIN_BYTE, NUMBER, TYPED_NUMBER, OF_STRING, TEXT_NUMBER, NAME, OBJECT, ARRAY, INFO, QUERY } form;
    unsigned bits; /* of a number */
};

/* The types that tools send. The library can unpack others, too, but unused ones are rejected. */
static const struct packed_type known[] = {
    {PMIX_BOOL, PLAIN_BYTE, 0},
    {PMIX_BYTE, PLAIN_BYTE, 0},
    {PMIX_INT8, PLAIN_BYTE, 0},
    {PMIX_UINT8, PLAIN_BYTE, 0},
    {PMIX_COMMAND, PLAIN_BYTE, 0},
    {PMIX_POINTER, PLAIN_BYTE, 0}, /* not the address: a mark in its place */
    {PMIX_SCOPE, PLAIN_BYTE, 0},
    {PMIX_DATA_RANGE, PLAIN_BYTE, 0},
    {PMIX_PERSIST, PLAIN_BYTE, 0},
    {PMIX_PROC_STATE, PLAIN_BYTE, 0},
    {PMIX_LINK_STATE, PLAIN_BYTE, 0},
    {PMIX_INT16, NUMBER, 16},
    {PMIX_UINT16, NUMBER, 16},
    {PMIX_INT, NUMBER, 32},
    {PMIX_UINT, NUMBER, 32},
    {PMIX_INT32, NUMBER, 32},
    {PMIX_UINT32, NUMBER, 32},
    {PMIX_STATUS, NUMBER, 32},
    {PMIX_PROC_RANK, NUMBER, 32},
    {PMIX_INT64, NUMBER, 64},
    {PMIX_UINT64, NUMBER, 64},
    {PMIX_SIZE, NUMBER, 64},
    {PMIX_TIME, NUMBER, 64},
    {PMIX_DEVTYPE, NUMBER, 64},
    {PMIX_PID, TYPED_NUMBER, 32},
    {PMIX_STRING, OF_STRING, 0},
    {PMIX_FLOAT, TEXT_NUMBER, 0},
    {PMIX_DOUBLE, TEXT_NUMBER, 0},
    {PMIX_PROC, NAME, 0},
    {PMIX_BYTE_OBJECT, OBJECT, 0},
    {PMIX_DATA_ARRAY, ARRAY, 0},
    {PMIX_INFO, INFO, 0},
    {PMIX_QUERY, QUERY, 0},
};

static const struct packed_type *packed_find(pmix_data_type_t type)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].type == type)
            return &known[i];
    return NULL;
}

/* ---- numbers ------------------------------------------------------------------------------------ */

static bool packed_take(struct packed *in, size_t n)
{
    if (n > in->left)
        return false;
    in->at += n;
    in->left -= n;
    return true;
}

/* Seven bits per byte, the lowest first; the top bit means that more follow. The ninth byte has eight bits.
 */
static bool packed_number(struct packed *in, unsigned bits, uint64_t *out)
{
    const unsigned most = (bits + 6) / 7 < 9 ? (bits + 6) / 7 : 9;
    uint64_t value = 0;
    for (unsigned i = 0; i < most && i < in->left; i++) {
        const uint8_t byte = in->at[i];
        const bool last = i == 8 || byte < 0x80;
        value |= (uint64_t)(i == 8 ? byte : byte & 0x7f) << (7 * i);
        if (!last)
            continue;
        if (bits < 64 && value >> bits != 0)
            return false;
        *out = value;
        return packed_take(in, i + 1);
    }
    return false;
}

/* With its sign in the lowest bit. Counts are never below 0. */
static bool packed_length(struct packed *in, size_t *out)
{
    uint64_t value;
    if (!packed_number(in, 32, &value) || (value & 1) != 0)
        return false;
    *out = (size_t)(value >> 1);
    return true;
}

static bool packed_data_type(struct packed *in, pmix_data_type_t *type)
{
    uint64_t value;
    if (!packed_number(in, 16, &value))
        return false;
    *type = (pmix_data_type_t)value;
    return true;
}

/* ---- values ------------------------------------------------------------------------------------- */

static bool packed_text(struct packed *in, const char **out)
{
    size_t size;
    *out = NULL;
    if (!packed_length(in, &size) || size > in->left)
        return false;
    if (size == 0)
        return true;
    if (in->at[size - 1] != '\0')
        return false;
    *out = (const char *)in->at;
    return packed_take(in, size);
}

static bool packed_name(struct packed *in)
{
    const char *nspace;
    uint64_t rank;
    return packed_text(in, &nspace) && nspace != NULL && packed_number(in, 32, &rank);
}

static bool packed_object(struct packed *in)
{
    uint64_t size;
    return packed_number(in, 64, &size) && size <= INT32_MAX && packed_take(in, (size_t)size);
}

static bool packed_values(struct packed *in, pmix_data_type_t type, size_t n, unsigned depth);

/* Read an array; *of: the type of its elements. */
static bool packed_array(struct packed *in, unsigned depth, pmix_data_type_t *of)
{
    uint64_t n;
    if (!packed_data_type(in, of) || !packed_number(in, 64, &n))
        return false;
    if (*of == PMIX_UNDEF)
        return true;
    switch (*of) { /* types for which the library allocates nothing, but frees it; also empty arrays */
    case PMIX_COMMAND:
    case PMIX_DEVTYPE:
    case PMIX_DATA_ARRAY:
        return false;
    default:
        return n <= in->left && packed_values(in, *of, (size_t)n, depth);
    }
}

struct packed_info {
    const char *key;
    pmix_data_type_t type, of;
};

static bool packed_one_info(struct packed *in, unsigned depth, struct packed_info *out)
{
    uint64_t flags;
    *out = (struct packed_info){.of = PMIX_UNDEF};
    if (!packed_text(in, &out->key) || out->key == NULL || strlen(out->key) > PMIX_MAX_KEYLEN ||
        !packed_number(in, 32, &flags) || !packed_data_type(in, &out->type))
        return false;
    if (out->type == PMIX_UNDEF)
        return true;
    if (out->type == PMIX_DATA_ARRAY)
        return depth < MAX_DEPTH && packed_array(in, depth + 1, &out->of);
    return out->type != PMIX_INFO && out->type != PMIX_QUERY && packed_values(in, out->type, 1, depth + 1);
}

static bool packed_query(struct packed *in, unsigned depth)
{
    size_t n_keys;
    uint64_t n;
    const char *key;
    if (!packed_length(in, &n_keys) || n_keys > in->left)
        return false;
    for (size_t i = 0; i < n_keys; i++)
        if (!packed_text(in, &key) || key == NULL)
            return false;
    return packed_number(in, 64, &n) && n <= in->left &&
           (n == 0 || packed_values(in, PMIX_INFO, (size_t)n, depth + 1));
}

static bool packed_value(struct packed *in, const struct packed_type *type, unsigned depth)
{
    uint64_t number;
    const char *text;
    pmix_data_type_t of;
    struct packed_info info;
    switch (type->form) {
    case PLAIN_BYTE:
        return packed_take(in, 1);
    case NUMBER:
        return packed_number(in, type->bits, &number);
    case TYPED_NUMBER: /* it gives its number of bits */
        return packed_data_type(in, &of) && of == PMIX_UINT32 && packed_number(in, type->bits, &number);
    case OF_STRING:
        return packed_text(in, &text) && text != NULL;
    case TEXT_NUMBER:
        return packed_text(in, &text);
    case NAME:
        return ++in->objects <= MAX_OBJECTS && packed_name(in);
    case OBJECT:
        return packed_object(in);
    case ARRAY:
        return packed_array(in, depth + 1, &of);
    case INFO:
        return ++in->objects <= MAX_OBJECTS && packed_one_info(in, depth, &info);
    case QUERY:
        return ++in->objects <= MAX_OBJECTS && packed_query(in, depth);
    }
    return false;
}

static bool packed_values(struct packed *in, pmix_data_type_t type, size_t n, unsigned depth)
{
    const struct packed_type *found = packed_find(type);
    if (found == NULL || depth > MAX_DEPTH)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!packed_value(in, found, depth))
            return false;
    return true;
}

/* ---- data packed by one call --------------------------------------------------------------------- */

static bool packed_begin(struct packed *in, pmix_data_type_t type, size_t n)
{
    pmix_data_type_t told = PMIX_INT32;
    size_t there;
    if (in->described && (!packed_data_type(in, &told) || told != PMIX_INT32))
        return false;
    if (!packed_length(in, &there) || there != n)
        return false;
    return !in->described || (packed_data_type(in, &told) && told == type);
}

bool packed_skip(struct packed *in, pmix_data_type_t type, size_t n)
{
    return packed_begin(in, type, n) && packed_values(in, type, n, 0);
}

bool packed_byte(struct packed *in, pmix_data_type_t type, uint8_t *out)
{
    if (!packed_begin(in, type, 1) || in->left == 0)
        return false;
    *out = in->at[0];
    return packed_take(in, 1);
}

bool packed_statuses(struct packed *in, size_t n, pmix_status_t *out)
{
    uint64_t value;
    if (!packed_begin(in, PMIX_STATUS, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!packed_number(in, 32, &value))
            return false;
        out[i] = (pmix_status_t)((value & 1) != 0 ? ~(int64_t)(value >> 1) : (int64_t)(value >> 1));
    }
    return true;
}

bool packed_count(struct packed *in, size_t *out)
{
    uint64_t n;
    if (!packed_begin(in, PMIX_SIZE, 1) || !packed_number(in, 64, &n))
        return false;
    *out = (size_t)n;
    return true;
}

bool packed_string(struct packed *in, const char **out)
{
    return packed_begin(in, PMIX_STRING, 1) && packed_text(in, out);
}

bool packed_infos(struct packed *in, packed_info_fn check)
{
    size_t n;
    if (!packed_count(in, &n))
        return false;
    if (n == 0)
        return true;
    if (!packed_begin(in, PMIX_INFO, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct packed_info info;
        if (++in->objects > MAX_OBJECTS || !packed_one_info(in, 0, &info) ||
            (check != NULL && !check(info.key, info.type, info.of)))
            return false;
    }
    return true;
}

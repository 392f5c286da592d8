/*
 * guard_messages.c - check the first message of a new connection and its later requests: only valid messages
 * that fabricd answers reach the library.
 */
#include <ctype.h>
#include <string.h>

#include "guard/guard_priv.h"

/* ---- the first message ----------------------------------------------------------------------------- */

/* Kinds of connection. */
enum {
    CLIENT = 0,
    TOOL_WITHOUT_NAME = 3,
    TOOL_WITH_NAME,
    TOOL_STARTED, /* by a PMIx server */
    LAUNCHER_WITHOUT_NAME,
    LAUNCHER_WITH_NAME,
    LAUNCHER_STARTED,
    SINGLETON,
};

enum { NOT_DESCRIBED = 1, DESCRIBED = 2 }; /* kinds of buffers */

/* The unread rest of the message. */
struct first_rest {
    const char *at;
    size_t size;
};

static bool first_skip(struct first_rest *rest, size_t n)
{
    if (n > rest->size)
        return false;
    rest->at += n;
    rest->size -= n;
    return true;
}

/* Read a terminated string; NULL: the message ends first. */
static const char *first_string(struct first_rest *rest)
{
    const char *text = rest->at;
    return first_skip(rest, strnlen(text, rest->size) + 1) ? text : NULL;
}

static bool first_number(struct first_rest *rest, uint32_t *out)
{
    const uint8_t *b = (const uint8_t *)rest->at;
    if (!first_skip(rest, 4))
        return false;
    *out = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return true;
}

static bool first_byte(struct first_rest *rest, uint8_t *out)
{
    const char *at = rest->at;
    if (!first_skip(rest, 1))
        return false;
    *out = (uint8_t)*at;
    return true;
}

/* Read user and group, and the name, for the kinds that have them. */
static bool first_names(struct first_rest *rest, uint8_t kind, bool user, struct first_message *out)
{
    const bool client = kind == CLIENT || (kind == SINGLETON && PMIX_NUMERIC_VERSION >= 0x00050009);
    out->client = client && user;
    if (!out->client && (client || kind < TOOL_WITHOUT_NAME || kind > SINGLETON))
        return false;
    out->started = kind == TOOL_STARTED || kind == LAUNCHER_STARTED;
    if (kind != CLIENT && (!first_number(rest, &out->uid) || !first_number(rest, &out->gid)))
        return false;
    if (kind == TOOL_WITHOUT_NAME || kind == LAUNCHER_WITHOUT_NAME)
        return true;
    out->nspace = first_string(rest);
    return out->nspace != NULL && out->nspace[0] != '\0' && strlen(out->nspace) <= PMIX_MAX_NSLEN &&
           first_number(rest, &out->rank) && PMIX_RANK_IS_VALID(out->rank);
}

/* Accept three numbers separated by dots, except 2.0, whose message ends here. */
static bool first_version_is_sound(const char *version)
{
    const char *p = version;
    for (int dots = 0; dots < 2; dots++) {
        if (!isdigit((unsigned char)*p))
            return false;
        p += strspn(p, "0123456789");
        if (*p++ != '.')
            return false;
    }
    return isdigit((unsigned char)*p) && p - version < 16 && strncmp(version, "2.0.", 4) != 0;
}

/* Return whether all words, separated by commas, are among these. */
static bool first_words_are_of(const char *words, const char *const known[])
{
    for (;;) {
        size_t n = strcspn(words, ","), i = 0;
        while (known[i] != NULL && (strlen(known[i]) != n || strncmp(known[i], words, n) != 0))
            i++;
        if (known[i] == NULL)
            return false;
        if (words[n] == '\0')
            return true;
        words += n + 1;
    }
}

static bool first_infos_are_sound(const struct first_rest *rest, bool described)
{
    struct packed in = {.at = (const uint8_t *)rest->at, .left = rest->size, .described = described};
    return rest->size == 0 || packed_infos(&in, NULL);
}

bool first_message_read(const void *bytes, size_t size, bool user, struct first_message *out)
{
    static const char *const formats[] = {"v4", "v41", "v51", "v61", NULL};
    static const char *const formats_of_before[] = {"v4",  "v41", "v51", "v61", "v3",
                                                    "v21", "v20", "v12", NULL};
    static const char *const storages[] = {"hash", "ds12", "ds21", "shmem", "shmem2", NULL};
    struct first_rest rest = {bytes, size};
    uint32_t length;
    uint8_t kind, buffer;
    *out = (struct first_message){0};
    out->psec = first_string(&rest);
    if (out->psec == NULL || out->psec[0] == '\0' || !first_number(&rest, &length))
        return false;
    out->credential_bytes = out->credential = rest.at;
    out->credential_size = length;
    if (!first_skip(&rest, length))
        return false;
    if (length == 0 || memchr(out->credential, '\0', length) != out->credential + length - 1)
        out->credential = NULL;
    out->kind_at = size - rest.size;
    if (!first_byte(&rest, &kind) || !first_names(&rest, kind, user, out))
        return false;
    const char *version = first_string(&rest);
    const char *format = first_string(&rest);
    if (version == NULL || format == NULL || !first_byte(&rest, &buffer))
        return false;
    const char *storage = first_string(&rest);
    return storage != NULL && first_version_is_sound(version) &&
           first_words_are_of(format, user ? formats_of_before : formats) &&
           (buffer == NOT_DESCRIBED || buffer == DESCRIBED) && first_words_are_of(storage, storages) &&
           (user || first_infos_are_sound(&rest, buffer == DESCRIBED));
}

bool first_message_is_native(const struct first_message *first)
{
    uint32_t ids[2];
    if (first->credential_size < sizeof(ids))
        return false;
    memcpy(ids, first->credential_bytes, sizeof(ids));
    return ids[0] == first->uid && ids[1] == first->gid;
}

/* ---- requests ------------------------------------------------------------------------------------- */

/* The numbers of the commands that fabricd answers. */
enum {
    JOB_INFO = 0,
    GET = 4,
    FINALIZE = 5,
    LOOKUP = 7,
    REGISTER_EVENTS = 13,
    DEREGISTER_EVENTS = 14,
    QUERY = 15,
    FABRIC_REGISTER = 30,
    FABRIC_UPDATE = 31,
};

#define MOST_CODES 256

static bool request_queries(struct packed *in)
{
    size_t n;
    return packed_count(in, &n) && n <= in->left && (n == 0 || packed_skip(in, PMIX_QUERY, n));
}

static bool request_lookup(struct packed *in)
{
    size_t n;
    const char *key;
    if (!packed_skip(in, PMIX_UINT32, 1) || !packed_count(in, &n) || n > in->left)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!packed_string(in, &key) || key == NULL)
            return false;
    return packed_infos(in, NULL);
}

/* The library reads two of them without checking their types. */
static bool request_event_info(const char *key, pmix_data_type_t type, pmix_data_type_t of)
{
    if (strcmp(key, PMIX_EVENT_AFFECTED_PROC) == 0)
        return type == PMIX_PROC;
    if (strcmp(key, PMIX_EVENT_AFFECTED_PROCS) == 0)
        return type == PMIX_DATA_ARRAY && of == PMIX_PROC;
    return true;
}

static unsigned request_event(pmix_status_t code)
{
    return code == PMIX_FABRIC_UPDATE_PENDING ? REQUEST_PENDING
           : code == PMIX_FABRIC_UPDATED      ? REQUEST_UPDATED
                                              : 0;
}

/* Of events that the host does not raise, the library rejects only those of the system itself. */
static pmix_status_t request_events(struct packed *in, unsigned *events)
{
    pmix_status_t codes[MOST_CODES], rc = PMIX_SUCCESS;
    size_t n;
    if (!packed_count(in, &n) || n > MOST_CODES || (n > 0 && !packed_statuses(in, n, codes)) ||
        !packed_infos(in, request_event_info))
        return PMIX_ERR_BAD_PARAM;
    for (size_t i = 0; i < n; i++) {
        *events |= request_event(codes[i]);
        if (PMIX_SYSTEM_EVENT(codes[i]))
            rc = PMIX_ERR_NOT_SUPPORTED;
    }
    return rc;
}

static bool request_no_events(struct packed *in, unsigned *events)
{
    pmix_status_t code;
    for (size_t n = 0; in->left > 0; n++) {
        if (n == MOST_CODES || !packed_statuses(in, 1, &code))
            return false;
        *events |= request_event(code);
    }
    return true;
}

static pmix_status_t request_get(struct packed *in)
{
    const char *nspace, *key;
    if (!packed_string(in, &nspace) || !packed_skip(in, PMIX_PROC_RANK, 1) || !packed_infos(in, NULL) ||
        in->left == 0)
        return PMIX_ERR_BAD_PARAM;
    if (!packed_string(in, &key) || key == NULL)
        return PMIX_ERR_BAD_PARAM;
    return strncmp(key, FABRIC_KEYS, strlen(FABRIC_KEYS)) == 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

static pmix_status_t request_status(bool sound)
{
    return sound ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
}

pmix_status_t request_check(const void *bytes, size_t size, bool described, struct request *out)
{
    struct packed in = {.at = bytes, .left = size, .described = described};
    *out = (struct request){.command = UINT8_MAX};
    if (!packed_byte(&in, PMIX_COMMAND, &out->command))
        return PMIX_ERR_BAD_PARAM;
    switch (out->command) {
    case JOB_INFO:
    case FINALIZE:
        return PMIX_SUCCESS;
    case GET:
        return request_get(&in);
    case LOOKUP:
        return request_status(request_lookup(&in));
    case REGISTER_EVENTS:
        return request_events(&in, &out->events);
    case DEREGISTER_EVENTS:
        return request_status(request_no_events(&in, &out->events));
    case QUERY:
        return request_status(request_queries(&in));
    case FABRIC_REGISTER:
        return request_status(packed_infos(&in, NULL));
    case FABRIC_UPDATE:
        return request_status(packed_skip(&in, PMIX_SIZE, 1));
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
}

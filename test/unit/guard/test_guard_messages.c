/* What comes before the library reads it: first messages and requests, whole, damaged, and of those who are
 * not served. */
#include <pmix_common.h>
#include <pmix_version.h>

#include "guard/guard_priv.h"
#include "test/unit/test.h"

/* ---- first messages ------------------------------------------------------------------------------ */

/* A literal with its bytes; the end that C adds is none of them. */
#define BYTES(text) (text), sizeof(text) - 1

/* So that a sanitizer sees what is read behind it. */
static char *exact_copy(const char *bytes, size_t size)
{
    char *copy = malloc(size == 0 ? 1 : size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

#define CREDENTIAL "native\0\0\0\0\x08\0\0\0\0\0\0\0\0"
#define IDS        "\0\0\0\0\0\0\0\0"
#define NAMED      "job\0\0\0\0\x02"
#define MODULES    "4.2.2rc2\0v41\0\1hash\0"

static bool first_is_good(const char *bytes, size_t size, struct first_message *out)
{
    char *copy = exact_copy(bytes, size);
    struct first_message first;
    bool good = first_message_read(copy, size, false, &first);
    if (out != NULL)
        *out = (struct first_message){.rank = first.rank, .kind_at = first.kind_at, .started = first.started};
    free(copy);
    return good;
}

TEST(tools_and_launchers_are_served)
{
    struct first_message first;
    assert_true(first_is_good(BYTES(CREDENTIAL "\3" IDS MODULES), &first));
    assert_false(first.started);
    assert_true(first_is_good(BYTES(CREDENTIAL "\4" IDS NAMED MODULES), &first));
    assert_int_equal(first.rank, 2);
    assert_true(first_is_good(BYTES(CREDENTIAL "\5" IDS NAMED MODULES), &first));
    assert_true(first.started);
    assert_int_equal(first.kind_at, sizeof(CREDENTIAL) - 1);
    assert_true(first_is_good(BYTES(CREDENTIAL "\6" IDS MODULES), NULL));
    /* a singleton, which is no tool from 5.0.9 on */
    assert_int_equal(first_is_good(BYTES(CREDENTIAL "\x9" IDS NAMED MODULES), NULL),
                     PMIX_NUMERIC_VERSION < 0x00050009);
    assert_true(first_is_good(BYTES(CREDENTIAL "\3" IDS "6.1.1\0v61\0\1shmem2,hash\0"), NULL));
    /* with infos: a string and the number of a process */
    assert_true(first_is_good(
        BYTES(CREDENTIAL "\3" IDS MODULES "\2\2\4\4k\0\0\3\4v\0\x14pmix.ppid\0\0\5\x0e\xe4j"), NULL));
}

TEST(other_kinds_are_not)
{
    assert_false(first_is_good(BYTES(CREDENTIAL "\0" NAMED MODULES), NULL)); /* a client of a job */
    assert_false(first_is_good(BYTES(CREDENTIAL "\1" IDS MODULES), NULL));
    assert_false(first_is_good(BYTES(CREDENTIAL "\2" IDS MODULES), NULL));
    assert_false(first_is_good(BYTES(CREDENTIAL "\x0a" IDS NAMED MODULES), NULL));
    assert_false(first_is_good(BYTES(CREDENTIAL "\xff" IDS NAMED MODULES), NULL));
}

/* At one user's own server, also clients, and what was spoken before. */
TEST(of_one_user)
{
    static const char client[] = CREDENTIAL "\0" NAMED "3.2.5\0v3\0\1ds21,hash\0";
    struct first_message first;
    char *copy = exact_copy(client, sizeof(client) - 1);
    assert_true(first_message_read(copy, sizeof(client) - 1, true, &first));
    assert_true(first.client && !first.started);
    assert_string_equal(first.nspace, "job");
    assert_int_equal(first.rank, 2);
    for (size_t n = 0; n < sizeof(client) - 1; n++)
        assert_false(first_message_read(copy, n, true, &first));
    copy[sizeof(CREDENTIAL) - 1] = 1;
    assert_false(first_message_read(copy, sizeof(client) - 1, true, &first));
    free(copy);
    assert_false(first_message_read(BYTES(CREDENTIAL "\0" NAMED "4.2.2\0v9\0\1hash\0"), true, &first));
}

/* The bytes of the credential, as they lie in memory, and the numbers that it claims. */
TEST(native_credentials)
{
    const struct first_message good = {
        .credential_bytes = (uint32_t[]){7, 8}, .credential_size = 8, .uid = 7, .gid = 8};
    struct first_message first = good;
    assert_true(first_message_is_native(&first));
    first.uid = 8;
    assert_false(first_message_is_native(&first));
    first = good;
    first.gid = 7;
    assert_false(first_message_is_native(&first));
    first = good;
    first.credential_size = 7;
    assert_false(first_message_is_native(&first));
}

TEST(unknown_modules_and_versions)
{
    static const char *const bad[] = {
        "4.2.2 v9 hash",   "4.2.2 v12 hash", "4.2.2 v41, hash", "4.2.2 v41 nosuch", "4.2.2 v41 hash,x",
        "4.2.2 v41 hash,", "4 v41 hash",     "4.2 v41 hash",    "2.0.3 v41 hash",   "x.2.2 v41 hash"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char version[16], format[16], storage[16], message[256] = CREDENTIAL "\3" IDS;
        size_t n = sizeof(CREDENTIAL "\3" IDS) - 1;
        assert_int_equal(sscanf(bad[i], "%15s %15s %15s", version, format, storage), 3);
        n += (size_t)snprintf(message + n, 32, "%s%c%s%c\1%s", version, 0, format, 0, storage) + 1;
        assert_false(first_is_good(message, n, NULL));
    }
    assert_false(
        first_is_good(BYTES(CREDENTIAL "\3" IDS "4.2.2\0v41\0\0hash\0"), NULL)); /* no kind of buffer */
    assert_false(first_is_good(BYTES(CREDENTIAL "\3" IDS "4.2.2\0v41\0\3hash\0"), NULL));
}

TEST(lengths_that_no_message_has)
{
    static const char whole[] = CREDENTIAL "\4" IDS NAMED MODULES;
    for (size_t n = 0; n < sizeof(whole) - 1; n++)
        assert_false(first_is_good(whole, n, NULL));
    assert_false(first_is_good(BYTES("native\0\xff\xff\xff\xff\3" IDS MODULES), NULL)); /* a credential */
    assert_false(first_is_good(BYTES("native\0\x7f\0\0\0\3" IDS MODULES), NULL));
    assert_false(first_is_good(BYTES(CREDENTIAL "\4" IDS "\0\0\0\0\0" MODULES), NULL));          /* no name */
    assert_false(first_is_good(BYTES(CREDENTIAL "\4" IDS "j\0\xff\xff\xff\xff" MODULES), NULL)); /* no rank */
    assert_false(first_is_good(BYTES(CREDENTIAL "\3" IDS MODULES "\2\2\4\4k\0\0\3\4v\0"),
                               NULL)); /* one of two infos */
    assert_false(first_is_good(BYTES(CREDENTIAL "\3" IDS MODULES "\2\xff\xff\xff\x7f"), NULL));
}

/* ---- requests ------------------------------------------------------------------------------------ */

#define GET      "\2\4"
#define LOOKUP   "\2\7"
#define EVENTS   "\2\x0d"
#define QUERY    "\2\x0f"
#define REGISTER "\2\x1e"

static pmix_status_t request(const char *bytes, size_t size)
{
    char *copy = exact_copy(bytes, size);
    struct request out;
    pmix_status_t rc = request_check(copy, size, false, &out);
    free(copy);
    return rc;
}

TEST(what_tools_ask_passes)
{
    struct request out;
    assert_int_equal(request(BYTES(QUERY "\2\1\2\2\6ab\0\0")), PMIX_SUCCESS);
    assert_int_equal(request(BYTES(QUERY "\2\1\2\2\6ab\0\1\6k2\0\0\3\4v\0")), PMIX_SUCCESS); /* a qualifier */
    assert_int_equal(request(BYTES(QUERY "\2\0")), PMIX_SUCCESS);
    assert_int_equal(request(BYTES(LOOKUP "\2\0\2\1\2\4k\0\2\0")), PMIX_SUCCESS);
    assert_int_equal(request(BYTES(GET "\2\0\2\0\2\0\2\x14pmix.fab.\0")), PMIX_SUCCESS);
    assert_int_equal(request(BYTES(REGISTER "\2\0")), PMIX_SUCCESS);
    assert_int_equal(request(BYTES("\2\x1f\2\7")), PMIX_SUCCESS); /* an update */
    assert_int_equal(request(BYTES("\2\5")), PMIX_SUCCESS);       /* the end */
    /* an array of queries in an info, as relays send them */
    assert_int_equal(request(BYTES(LOOKUP "\2\0\2\1\2\4k\0\2\1\2\4q\0\0\x27\x29\1\2\4k\0\0")), PMIX_SUCCESS);
    /* types stand before the values */
    assert_int_equal(request_check("\x9\2\x22\x1f\x9\2\4\7", 8, true, &out), PMIX_SUCCESS);
    assert_int_equal(request_check("\x9\2\x22\x1f\x9\2\3\7", 8, true, &out), PMIX_ERR_BAD_PARAM);
}

TEST(codes_that_fabricd_raises)
{
    struct request out;
    /* -1, what is updated, -1000; the latter two in the other order, and twice */
    assert_int_equal(request_check(EVENTS "\2\3\6\1\xdd\2\xcf\x0f\2\0", 12, false, &out), PMIX_SUCCESS);
    assert_int_equal(out.events, REQUEST_UPDATED);
    assert_int_equal(request_check(EVENTS "\2\3\6\xdf\2\xdd\2\xdd\2\2\0", 13, false, &out), PMIX_SUCCESS);
    assert_int_equal(out.events, REQUEST_UPDATED | REQUEST_PENDING);
    assert_int_equal(request_check(EVENTS "\2\0\2\0", 6, false, &out), PMIX_SUCCESS); /* all codes */
    assert_int_equal(out.events, 0);
    assert_int_equal(request_check(EVENTS "\2\2\4\xdf\2\xcf\3\2\0", 11, false, &out),
                     PMIX_ERR_NOT_SUPPORTED);                                            /* the system's */
    assert_int_equal(request_check("\2\x0e\2\xdf\2\2\1", 7, false, &out), PMIX_SUCCESS); /* no more */
    assert_int_equal(out.events, REQUEST_PENDING);
}

TEST(other_commands_are_refused)
{
    static const uint8_t answered[] = {0, 4, 5, 7, 13, 14, 15, 30, 31};
    for (unsigned command = 0; command < 256; command++) {
        const char bytes[] = {2, (char)command};
        bool known = memchr(answered, (int)command, sizeof(answered)) != NULL;
        assert_true(known || request(bytes, 2) == PMIX_ERR_NOT_SUPPORTED);
    }
    assert_int_equal(request(BYTES(GET "\2\0\2\0\2\0\2\x10pmix.hn\0")), PMIX_ERR_NOT_FOUND); /* of a job */
}

TEST(counts_and_lengths_that_are_not_there)
{
    static const char *const damaged[] = {
        "0406", /* too many commands */
        "020f02ffffffffffffffff7f",
        "020f0205020206616200",
        "020f0201020206616200ff7f", /* queries, keys, qualifiers */
        "020f020102ff7f",
        "020f0201020206616263", /* keys; a string without its end */
        "020f02010202ffffffff0f",
        "020f0201020200", /* a string's length; a key that is none */
        "0207020002ff7f",
        "02070200020102000200", /* keys; one that is none */
        "0204020002000200",
        "02040200020002000200", /* no key to get; one that is none */
        "020d02ffffff7f",
        "020d020102a5020201021c706d69782e", /* codes */
        "021e02ffffffffffffffff7f",         /* infos */
        "021e0201020661620000feff",         /* ... of an unknown type */
        "021e020102066162000027030301",     /* ... an array that ends early */
        "021e0201020661620000271801",       /* ... of infos, which are none */
        "021e0201020661620000 1bffff7f",    /* ... bytes that are not there */
        "021f",
        "021f0280808080808080", /* an index */
    };
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        char bytes[64];
        size_t n = 0;
        for (const char *p = damaged[i]; p[0] != '\0'; p += 2) {
            unsigned byte;
            p += *p == ' ';
            assert_int_equal(sscanf(p, "%2x", &byte), 1);
            bytes[n++] = (char)byte;
        }
        if (request(bytes, n) != PMIX_ERR_BAD_PARAM)
            fail_msg("%s", damaged[i]);
    }
}

TEST(types_that_the_library_takes_for_granted)
{
    /* PMIX_EVENT_AFFECTED_PROC as a yes or no */
    assert_int_equal(request(BYTES(EVENTS "\2\1\2\xa5\2\2\1\2\x18pmix.evproc\0\0\1\1")), PMIX_ERR_BAD_PARAM);
    assert_int_equal(request(BYTES(EVENTS "\2\1\2\xa5\2\2\1\2\x18pmix.evproc\0\0\x16\4n\0\0")), PMIX_SUCCESS);
}

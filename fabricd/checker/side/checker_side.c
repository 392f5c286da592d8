/* checker_side.c - the checker's process: a few threads, each of which takes a question and answers it. */
#include <errno.h>
#include <linux/capability.h>
#include <munge.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabricd/base/work.h"
#include "fabricd/checker/checker.h"
#include "fabricd/process/child.h"

#define MOST_ADDRESSES 64 /* of a name */

static pthread_mutex_t reads = PTHREAD_MUTEX_INITIALIZER, writes = PTHREAD_MUTEX_INITIALIZER;

/* ---- the answers ---------------------------------------------------------------------------------- */

static void *side_open(const char *credential, struct checker_answer *out)
{
    void *bytes = NULL;
    int size = 0;
    munge_ctx_t ctx = munge_ctx_create();
    out->code = EMUNGE_NO_MEMORY;
    out->uid = (uid_t)-1;
    out->gid = (gid_t)-1;
    if (ctx == NULL)
        return NULL;
    out->code = (int)munge_decode(credential, ctx, &bytes, &size, &out->uid, &out->gid);
    if (munge_ctx_get(ctx, MUNGE_OPT_ADDR4, &out->origin) != EMUNGE_SUCCESS)
        out->origin.s_addr = INADDR_ANY;
    munge_ctx_destroy(ctx);
    out->bytes = bytes;
    out->size = bytes == NULL || size < 0 ? 0 : (size_t)size;
    return bytes;
}

/* What this host's munged says of itself. */
static void side_open_own(struct checker_answer *out)
{
    char *credential = NULL;
    out->code = (int)munge_encode(&credential, NULL, NULL, 0);
    if (out->code == EMUNGE_SUCCESS)
        free(side_open(credential, out));
    out->bytes = NULL;
    out->size = 0;
    free(credential);
}

/* The origin of a credential is an IPv4 address, so that is what is compared. */
static void *side_resolve(const char *name, struct checker_answer *out)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    struct in_addr *addresses = calloc(MOST_ADDRESSES, sizeof(*addresses));
    size_t n = 0;
    out->code = addresses == NULL ? EAI_MEMORY : getaddrinfo(name, NULL, &hints, &all);
    for (const struct addrinfo *one = out->code != 0 ? NULL : all; one != NULL && n < MOST_ADDRESSES;
         one = one->ai_next)
        if (one->ai_family == AF_INET)
            addresses[n++] = ((const struct sockaddr_in *)(const void *)one->ai_addr)->sin_addr;
    if (out->code == 0)
        freeaddrinfo(all);
    out->bytes = addresses;
    out->size = n * sizeof(*addresses);
    return addresses;
}

static int side_answer_question(const struct checker_question *question)
{
    struct checker_answer answer = {.number = question->number};
    void *bytes = NULL;
    size_t size;
    if (question->kind == CHECKER_CREDENTIAL)
        bytes = side_open(question->text, &answer);
    else if (question->kind == CHECKER_NAME)
        bytes = side_resolve(question->text, &answer);
    else
        side_open_own(&answer);
    uint8_t *put = checker_put_answer(&answer, &size);
    free(bytes);
    if (put == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_lock(&writes);
    const int rc = child_write(put, size);
    pthread_mutex_unlock(&writes);
    free(put);
    return rc;
}

/* ---- the questions -------------------------------------------------------------------------------- */

/* The next question, in *bytes. False: fabricd is gone, or there is no memory. */
static bool side_take(struct checker_question *question, void **bytes)
{
    uint8_t head[CHECKER_HEAD];
    size_t length = 0;
    *bytes = NULL;
    pthread_mutex_lock(&reads);
    const bool whole = fread(head, sizeof(head), 1, stdin) == 1 && (length = checker_length(head)) > 0 &&
                       (*bytes = malloc(length)) != NULL && fread(*bytes, length, 1, stdin) == 1;
    pthread_mutex_unlock(&reads);
    return whole && checker_read_question(*bytes, length, question) == PMIXFAB_OK;
}

static void side_answer_questions(void *arg)
{
    struct checker_question question;
    void *bytes;
    (void)arg;
    while (side_take(&question, &bytes) && side_answer_question(&question) == PMIXFAB_OK)
        free(bytes);
    _exit(0); /* with all threads: fabricd hears of it, and begins another one */
}

/* Of root nothing but the name is needed, which says whose credentials it may open. */
static bool side_drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    /* A unit's filter of calls refuses it; there the unit has bounded what it may. */
    return (syscall(SYS_capset, &header, none) == 0 || errno == EPERM) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* argv: fabricd --checker-child PID; questions come over descriptor 0, answers go to descriptor 3 */
int checker_child(int argc, char **argv)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    if (argc != 3 || !child_begin(argv[2]))
        return 1;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN); /* it ends when fabricd does not ask any more */
    if (!side_drop_rights())
        return 1;
    for (int i = 1; i < CHECKER_AT_ONCE; i++)
        if (work_run(NULL, side_answer_questions, NULL, NULL) == NULL)
            return 1;
    side_answer_questions(NULL);
    return 0;
}

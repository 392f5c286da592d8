/* error.c - error messages. */
#include "topo/base/error.h"

#include <stdio.h>
#include <string.h>

#include "topo/base/text.h"

const char *pmixfab_version(void)
{
    return PMIXFAB_VERSION;
}

const char *pmixfab_strerror(int err)
{
    static const char *const texts[] = {
        [-PMIXFAB_OK] = "success",
        [-PMIXFAB_ERR_INVAL] = "invalid argument",
        [-PMIXFAB_ERR_NOMEM] = "out of memory",
        [-PMIXFAB_ERR_IO] = "input or output failed",
        [-PMIXFAB_ERR_NOTFOUND] = "not found",
        [-PMIXFAB_ERR_SYNTAX] = "not in the expected form",
        [-PMIXFAB_ERR_CONFLICT] = "contradictory input",
        [-PMIXFAB_ERR_RANGE] = "a number or size is out of range",
        [-PMIXFAB_ERR_TRUNCATED] = "the data end too early",
        [-PMIXFAB_ERR_FOREIGN] = "data of another kind",
        [-PMIXFAB_ERR_OLDER] = "an older format that is no longer read",
        [-PMIXFAB_ERR_NEWER] = "a newer format that this version cannot read",
        [-PMIXFAB_ERR_CORRUPT] = "damaged data",
        [-PMIXFAB_ERR_BUSY] = "in use by another",
        [-PMIXFAB_ERR_PERM] = "not permitted",
        [-PMIXFAB_ERR_TIMEOUT] = "timed out",
        [-PMIXFAB_ERR_UNREACH] = "the daemon cannot be reached",
        [-PMIXFAB_ERR_PARTIAL] = "only a part of the fabric answered",
        [-PMIXFAB_ERR_UNSUPPORTED] = "not supported",
    };
    const int n = sizeof(texts) / sizeof(texts[0]);
    return err <= 0 && err > -n ? texts[-err] : "unknown error";
}

int fab_vfail(struct fab_err *err, int code, const char *fmt, va_list args)
{
    struct fab_err made; /* a separate buffer: the arguments may point at err->text */

    if (err == NULL)
        return code;
    if (vsnprintf(made.text, sizeof(made.text), fmt, args) < 0)
        made.text[0] = '\0';
    fab_text_clean(err->text, sizeof(err->text), made.text, strlen(made.text), NULL);
    return code;
}

int fab_fail(struct fab_err *err, int code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fab_vfail(err, code, fmt, args);
    va_end(args);
    return code;
}

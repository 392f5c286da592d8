/* ask.c - one question to the daemon, and its answer. */
#include "fabricctl/core/ask.h"

#include <string.h>

#include "fabricctl/core/suggest.h"

enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command)
{
    if (ctl->uri == NULL)
        return CTL_DONE;
    return ctl_usage("%s does not go over PMIx: --uri: run it on fabricd's own host, with --rundir", command);
}

/* The daemon refuses, and perhaps the name is a mistake that its message tells. */
static enum ctl_exit tell_refusal(const struct ctl *ctl, const char *why)
{
    const char *const names[] = {ctl->n_args > 0 ? ctl->args[0] : NULL, ctl->host, ctl->sw};
    char hint[CTL_SUGGESTION] = "";

    for (size_t i = 0; i < sizeof names / sizeof names[0] && hint[0] == '\0'; i++)
        if (names[i] != NULL && strstr(why, names[i]) != NULL)
            ctl_suggest(ctl, names[i], CTL_HOSTS | CTL_SWITCHES, hint);
    return ctl_error("%s%s", why, hint);
}

enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer)
{
    enum ctl_exit status = ctl_control_only(ctl, json_string_value(json_object_get(request, "op")));
    char why[CTL_WHY_SIZE];

    *answer = NULL;
    if (status != CTL_DONE)
        json_decref(request);
    else if (ctl_control_ask(ctl->rundir, request, seconds, answer, why) != CTL_DONE)
        status = tell_refusal(ctl, why);
    return status;
}

enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds,
                           enum ctl_exit (*show)(const struct ctl *ctl, const json_t *answer))
{
    json_t *answer;
    enum ctl_exit status = ctl_ask(ctl, request, seconds, &answer);

    if (status == CTL_DONE)
        status = show(ctl, answer);
    json_decref(answer);
    return status;
}

enum ctl_exit ctl_ask_stream(const struct ctl *ctl, json_t *request, struct ctl_control **control,
                             json_t **first)
{
    enum ctl_exit status = ctl_control_only(ctl, json_string_value(json_object_get(request, "op")));
    char why[CTL_WHY_SIZE];

    *control = NULL;
    *first = NULL;
    if (status == CTL_DONE && ctl_control_open(ctl->rundir, control, why) != CTL_DONE)
        status = ctl_error("%s", why);
    if (status != CTL_DONE) {
        json_decref(request);
        return status;
    }
    ctl_catch_interrupts();
    if (ctl_control_give(*control, request, -1, CTL_ANSWER_SECONDS, first, why) == CTL_DONE)
        return CTL_DONE;
    ctl_control_close(*control);
    *control = NULL;
    return ctl_error("%s", why);
}

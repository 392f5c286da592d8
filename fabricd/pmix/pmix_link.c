#include "fabricd/pmix/pmix_link.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "topo/base/text.h"

#define PATH_SIZE     4096
#define SETTINGS      "fabricd.json"
#define SETTINGS_MOST 65536

/* ---- settings --------------------------------------------------------------------------------------- */

static json_t *settings_text(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

/* The members of the group of this process, for the server's process, which cannot look users up. */
static json_t *settings_members(void)
{
    json_t *users = json_array();
    const struct group *group = getgrgid(getegid());
    for (char **name = group == NULL ? NULL : group->gr_mem; name != NULL && *name != NULL; name++) {
        const struct passwd *user = getpwnam(*name);
        if (user != NULL)
            json_array_append_new(users, json_integer(user->pw_uid));
    }
    return users;
}

int pmix_settings_write(const struct config *config, struct fab_err *err)
{
    char path[PATH_SIZE], beside[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/" SETTINGS, config->rundir);
    snprintf(beside, sizeof(beside), "%s/." SETTINGS ".new", config->rundir);
    json_t *all =
        json_pack("{s:i, s:o, s:b, s:o, s:i, s:i, s:i, s:o}", "role", (int)config->role, "host",
                  settings_text(config->host), "remote", config->role == ROLE_SCHEDULER && config->remote,
                  "listen", settings_text(config->pmix_listen), "port", (int)config->pmix_port, "log",
                  (int)config->log, "foreign_tools", (int)config->foreign_tools, "members",
                  config->foreign_tools == FOREIGN_GROUP ? settings_members() : json_null());
    char *text = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);
    const int failed = text == NULL ? ENOMEM : file_replace(path, beside, text, strlen(text));
    json_decref(all);
    free(text);
    return failed == 0 ? PMIXFAB_OK
                       : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written: %s", path, strerror(failed));
}

void pmix_settings_remove(const struct config *config)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/" SETTINGS, config->rundir);
    unlink(path);
}

static bool settings_trusted(const char *rundir, const char *path)
{
    struct stat dir, file;
    return stat(rundir, &dir) == 0 && lstat(path, &file) == 0 && S_ISREG(file.st_mode) &&
           (file.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           (file.st_uid == 0 || file.st_uid == dir.st_uid || file.st_uid == geteuid());
}

static int settings_take_members(const json_t *users, struct config *out)
{
    const size_t n = json_array_size(users);
    out->tool_users = calloc(n + 1, sizeof(*out->tool_users));
    if (out->tool_users == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        out->tool_users[i] = (uid_t)json_integer_value(json_array_get(users, i));
    out->n_tool_users = n;
    return PMIXFAB_OK;
}

static int settings_take(json_t *all, struct config *out)
{
    const char *host = json_string_value(json_object_get(all, "host"));
    const char *listen = json_string_value(json_object_get(all, "listen"));
    int role = 0, remote = 0, port = 0, log = 0, foreign = 0;
    if (json_unpack(all, "{s:i, s:b, s:i, s:i, s:i}", "role", &role, "remote", &remote, "port", &port, "log",
                    &log, "foreign_tools", &foreign) != 0 ||
        foreign < FOREIGN_YES || foreign > FOREIGN_GROUP || (role != ROLE_SCHEDULER && role != ROLE_NODE) ||
        port < 0 || port > UINT16_MAX || log < PMIXFAB_LOG_ERROR || log > PMIXFAB_LOG_DEBUG)
        return PMIXFAB_ERR_CORRUPT;
    out->role = (enum config_role)role;
    out->remote = remote != 0;
    out->pmix_port = (unsigned)port;
    out->log = (enum pmixfab_level)log;
    out->foreign_tools = (enum config_foreign)foreign;
    if ((host != NULL && config_text(&out->host, host) != PMIXFAB_OK) ||
        (listen != NULL && config_text(&out->pmix_listen, listen) != PMIXFAB_OK))
        return PMIXFAB_ERR_NOMEM;
    return foreign == FOREIGN_GROUP ? settings_take_members(json_object_get(all, "members"), out)
                                    : PMIXFAB_OK;
}

int pmix_settings_read(const char *rundir, struct config *out, char **text, struct fab_err *err)
{
    char path[PATH_SIZE];
    void *bytes = NULL;
    size_t size = 0;
    json_t *all = NULL;
    int rc = PMIXFAB_OK;
    if (text != NULL)
        *text = NULL;
    snprintf(path, sizeof(path), "%s/" SETTINGS, rundir);
    const int failed = file_read(path, SETTINGS_MOST, &bytes, &size);
    if (failed != 0)
        return fab_fail(err, failed == ENOENT || failed == ENOTDIR ? PMIXFAB_ERR_NOTFOUND : PMIXFAB_ERR_IO,
                        "%s: cannot be read: %s", path, strerror(failed));
    if (!settings_trusted(rundir, path)) {
        rc = fab_fail(err, PMIXFAB_ERR_PERM,
                      "%s: users other than root and the owner of the run directory may write it", path);
        goto cleanup;
    }
    all = json_loadb(bytes, size, 0, NULL);
    rc = all == NULL ? PMIXFAB_ERR_CORRUPT : settings_take(all, out);
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "%s: its format is not that of this version of fabricd: restart fabricd", path);
    else if (text != NULL)
        *text = strndup(bytes, size);

cleanup:
    json_decref(all);
    free(bytes);
    return rc;
}

/* ---- status ----------------------------------------------------------------------------------------- */

void pmix_state_write(const struct pmix_state *state, char line[PMIX_STATUS_MAX])
{
    json_t *all = json_pack("{s:i, s:s, s:s, s:I, s:i, s:i, s:b, s:b, s:b, s:b}", "pid", (int)state->pid,
                            "uri", state->uri, "failed", state->failed, "generation",
                            (json_int_t)state->generation, "connected", (int)state->connected, "subscribers",
                            (int)state->subscribers, "filtered", state->filtered, "confined", state->confined,
                            "bounded", state->bounded, "guarded", state->guarded);
    const size_t size = all == NULL ? 0 : json_dumpb(all, line, PMIX_STATUS_MAX - 2, JSON_COMPACT);
    line[size < PMIX_STATUS_MAX - 1 ? size : 0] = '\0';
    json_decref(all);
}

bool pmix_state_read(const char *line, size_t size, struct pmix_state *out)
{
    const char *uri = NULL, *failed = NULL;
    json_int_t generation = 0;
    int pid = 0, connected = 0, subscribers = 0, filtered = 0, confined = 0, bounded = 0, guarded = 0;
    json_t *all = json_loadb(line, size, 0, NULL);
    const bool good = json_unpack(all, "{s:i, s:s, s:s, s:I, s:i, s:i, s:b, s:b, s:b, s:b}", "pid", &pid,
                                  "uri", &uri, "failed", &failed, "generation", &generation, "connected",
                                  &connected, "subscribers", &subscribers, "filtered", &filtered, "confined",
                                  &confined, "bounded", &bounded, "guarded", &guarded) == 0 &&
                      pid > 0 && connected >= 0 && subscribers >= 0 && strlen(uri) < sizeof(out->uri);
    if (good) {
        *out = (struct pmix_state){.pid = pid,
                                   .generation = (uint64_t)generation,
                                   .connected = (unsigned)connected,
                                   .subscribers = (unsigned)subscribers,
                                   .filtered = filtered != 0,
                                   .confined = confined != 0,
                                   .bounded = bounded != 0,
                                   .guarded = guarded != 0};
        snprintf(out->uri, sizeof(out->uri), "%s", uri);
        fab_text_clean(out->failed, sizeof(out->failed), failed, strlen(failed), NULL);
    }
    json_decref(all);
    return good;
}

/* ---- the socket ------------------------------------------------------------------------------------- */

union passed {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool pmix_give_socket(int channel, int fd)
{
    char byte = fd >= 0;
    union passed passed = {.bytes = {0}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = passed.bytes;
        message.msg_controllen = sizeof(passed.bytes);
        passed.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&passed.header), &fd, sizeof(fd));
    }
    return sendmsg(channel, &message, MSG_NOSIGNAL) == 1;
}

bool pmix_take_socket(int channel, int *fd)
{
    char byte = 0;
    union passed passed = {.bytes = {0}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = passed.bytes,
                             .msg_controllen = sizeof(passed.bytes)};
    ssize_t n;
    *fd = -1;
    do
        n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == 1 && message.msg_controllen >= sizeof(struct cmsghdr) && passed.header.cmsg_type == SCM_RIGHTS &&
        passed.header.cmsg_level == SOL_SOCKET && passed.header.cmsg_len == CMSG_LEN(sizeof(*fd)))
        memcpy(fd, CMSG_DATA(&passed.header), sizeof(*fd));
    return n == 1;
}

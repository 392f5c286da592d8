/* front_child.c - a front that this process starts: a child of it, and where root starts it of another user.
 */
#include <errno.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/front/front_state.h"

/* The folder of the library's files, which a front of another user cannot make. */
static int make_folder(struct front *front, struct fab_err *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/pmix", front->config->rundir);
    if ((mkdir(path, 0755) != 0 && errno != EEXIST) || lchown(path, front->status.uid, front->gid) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%.200s: cannot be made for the user " FRONT_USER ": %s", path,
                        strerror(errno));
    return PMIXFAB_OK;
}

/* It may write below it only. */
void front_child_stop(struct front *front)
{
    char path[4096];
    if (front->config == NULL || front->config->front_unit)
        return;
    snprintf(path, sizeof(path), "%s/pmix", front->config->rundir);
    rmdir(path);
}

/* For the front's command line; "-": nobody. */
static void put_id(char text[16], bool known, unsigned id)
{
    if (known)
        snprintf(text, 16, "%u", id);
    else
        snprintf(text, 16, "-");
}

/* A service manager may keep of root's powers those that a process of another user needs. */
static bool front_may_be_another(void)
{
    static const unsigned long needed[] = {CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL};
    bool may = geteuid() == 0;
    for (size_t i = 0; may && i < sizeof(needed) / sizeof(needed[0]); i++)
        may = prctl(PR_CAPBSET_READ, needed[i], 0, 0, 0) == 1;
    return may;
}

/* Once: a directory of users that does not answer later must not decide as whom the next one runs. */
int front_find_users(struct front *front, struct fab_err *err)
{
    const bool unit = front->config->front_unit;
    const char *names[] = {unit || front_may_be_another() ? FRONT_USER : NULL, front->config->node_user};
    for (int i = 0; i < 2; i++) {
        struct passwd entry, *user = NULL;
        char buffer[4096];
        int failed = names[i] == NULL ? 0 : getpwnam_r(names[i], &entry, buffer, sizeof(buffer), &user);
        if (failed != 0)
            return fab_fail(err, PMIXFAB_ERR_IO, "the user %.60s cannot be looked up: %s", names[i],
                            strerror(failed));
        if (i == 0 && user != NULL) {
            front->status.separated = true;
            front->status.uid = user->pw_uid;
            front->gid = user->pw_gid;
        }
        if (i == 1)
            front->node_uid = user == NULL ? 0 : user->pw_uid;
    }
    if (unit && !front->status.separated)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "there is no user " FRONT_USER
                        ", as whom the unit of the front runs: systemd-sysusers");
    return PMIXFAB_OK;
}

/* Before the channel speaks it needs this only: whose child it is, and as whom it runs. */
static int front_spawn(struct front *front, int channel,
                       void (*done)(struct child_result *result, void *cbdata), struct fab_err *err)
{
    char daemon[16], uid[16], gid[16];
    if (front->status.separated && make_folder(front, err) != PMIXFAB_OK)
        return PMIXFAB_ERR_IO;
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    put_id(uid, front->status.separated, front->status.uid);
    put_id(gid, front->status.separated, front->gid);
    char *argv[] = {"fabricd", FRONT_CHILD_OPTION, daemon, uid, gid, NULL};
    const struct child_order order = {.what = "front",
                                      .argv = argv,
                                      .channel = channel,
                                      .logs = true,
                                      .many = true,
                                      .limit = 4096,
                                      .done = done,
                                      .cbdata = front};
    return child_start(front->base, &order, &front->child, err);
}

int front_child_start(struct front *front, void (*done)(struct child_result *result, void *cbdata),
                      int *channel, struct fab_err *err)
{
    int ends[2];
    *channel = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "front: no socket: %s", strerror(errno));
    const int rc = front_spawn(front, ends[1], done, err);
    close(ends[1]);
    if (rc == PMIXFAB_OK)
        *channel = ends[0];
    else
        close(ends[0]);
    return rc;
}

/*
 * export_names.c - the file of names beside an export.
 */
#include "fabricctl/export/export_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricctl/export/target.h"

/* Beside the file itself, as what it was before. False: without memory. */
static bool names_path(const char *output, char **path)
{
    struct stat st;
    char *real;
    bool good;

    if (output == NULL || strcmp(output, "-") == 0 || (stat(output, &st) == 0 && !S_ISREG(st.st_mode)))
        return true;
    real = realpath(output, NULL);
    good = asprintf(path, "%s.names", real != NULL ? real : output) >= 0;
    if (!good)
        *path = NULL;
    free(real);
    return good;
}

enum ctl_exit ctl_names_load(struct ctl_names *names, const char *output)
{
    size_t size;
    char *text;

    if (names->is != NULL)
        return CTL_DONE;
    names->is = json_object();
    if (names->is == NULL || !names_path(output, &names->path))
        return ctl_nomem();
    text = names->path != NULL ? ctl_target_read(names->path, &size) : NULL;
    if (names->path == NULL || (text == NULL && access(names->path, F_OK) != 0))
        return CTL_DONE;
    names->was = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    return json_is_object(names->was)
               ? CTL_DONE
               : ctl_error("not written: %s: no names of switches can be read there: move it away",
                           names->path);
}

enum ctl_exit ctl_names_save(const struct ctl_names *names)
{
    struct ctl_target target;
    enum ctl_exit status;
    char *text;

    if (names->path == NULL || json_equal(names->was, names->is))
        return CTL_DONE;
    text = json_dumps(names->is, JSON_INDENT(1));
    if (text == NULL)
        return ctl_nomem();
    status = ctl_target_open(names->path, &target);
    if (status == CTL_DONE)
        status = ctl_target_write(&target, text, strlen(text));
    if (status == CTL_DONE && fsync(target.fd) != 0)
        status = ctl_target_failed(&target, "cannot write");
    free(text);
    return ctl_target_close(&target, false, status);
}

void ctl_names_free(struct ctl_names *names)
{
    free(names->path);
    json_decref(names->was);
    json_decref(names->is);
}

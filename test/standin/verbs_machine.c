/* verbs_machine.c - reading the machine that is described. */
#include "test/standin/verbs_machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *standin_machine(void)
{
    json_error_t at;
    const char *path = getenv("STANDIN_VERBS");
    if (path == NULL)
        return NULL;
    json_t *machine = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
    if (machine == NULL) {
        fprintf(stderr, "STANDIN_VERBS: %s:%d:%d: %s\n", path, at.line, at.column, at.text);
        _exit(70);
    }
    return machine;
}

int standin_fails(const json_t *of, const char *operation)
{
    const json_t *how = json_object_get(json_object_get(of, "fails"), operation);
    const char *text = json_string_value(how);
    if (text != NULL && strcmp(text, "crash") == 0)
        abort();
    while (text != NULL && strcmp(text, "hang") == 0)
        pause();
    return (int)json_integer_value(how);
}

long standin_number(const json_t *of, const char *key, long otherwise)
{
    const json_t *value = json_object_get(of, key);
    return json_is_integer(value) ? (long)json_integer_value(value) : otherwise;
}

const char *standin_text(const json_t *of, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(of, key));
    return text != NULL ? text : otherwise;
}

__be64 standin_guid(const json_t *of, const char *key)
{
    return htobe64(strtoull(standin_text(of, key, "0"), NULL, 0));
}

json_t *standin_port(const json_t *device, unsigned number)
{
    return number == 0 ? NULL : json_array_get(json_object_get(device, "ports"), number - 1);
}

void standin_port_attr(const json_t *port, struct ibv_port_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->state = (enum ibv_port_state)standin_number(port, "state", IBV_PORT_ACTIVE);
    attr->max_mtu = IBV_MTU_4096;
    attr->active_mtu = (enum ibv_mtu)standin_number(port, "mtu", IBV_MTU_4096);
    attr->gid_tbl_len = (int)json_array_size(json_object_get(port, "gids"));
    attr->lid = (uint16_t)standin_number(port, "lid", 0);
    attr->sm_lid = 1;
    attr->active_width = (uint8_t)standin_number(port, "width", 2);
    attr->active_speed = (uint8_t)standin_number(port, "speed", 32);
    attr->phys_state = attr->state == IBV_PORT_ACTIVE ? 5 : 3;
    attr->link_layer = (uint8_t)standin_number(port, "link", IBV_LINK_LAYER_INFINIBAND);
    attr->pkey_tbl_len = 1;
}

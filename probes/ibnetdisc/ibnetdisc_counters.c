/* ibnetdisc_counters.c - what ports count, by queries to the performance management of their devices. */
#include <stdlib.h>
#include <string.h>

#include "probes/core/item.h"
#include "probes/ibnetdisc/ibnetdisc.h"
#include "probes/ibnetdisc/ibnetdisc_monitor.h"
#include "probes/ibnetdisc/ibnetdisc_smp.h"

#define COUNTERS_TIMEOUT_MS 200u
#define COUNTERS_RETRIES    2u
#define EXTENDED            0x600 /* of a ClassPortInfo's capabilities: counters of 64 bits */

static const struct {
    enum probe_counter counter;
    int field, extended; /* the latter 0: there is none */
} fields[] = {
    {COUNTER_SYMBOL_ERRORS, IB_PC_ERR_SYM_F, 0},
    {COUNTER_LINK_RECOVERIES, IB_PC_LINK_RECOVERS_F, 0},
    {COUNTER_LINK_DOWNED, IB_PC_LINK_DOWNED_F, 0},
    {COUNTER_RECEIVE_ERRORS, IB_PC_ERR_RCV_F, 0},
    {COUNTER_LOCAL_INTEGRITY, IB_PC_ERR_LOCALINTEG_F, 0},
    {COUNTER_BUFFER_OVERRUNS, IB_PC_ERR_EXCESS_OVR_F, 0},
    {COUNTER_REMOTE_ERRORS, IB_PC_ERR_PHYSRCV_F, 0},
    {COUNTER_DISCARDS, IB_PC_XMT_DISCARDS_F, 0},
    {COUNTER_SENT_WORDS, IB_PC_XMT_BYTES_F, IB_PC_EXT_XMT_BYTES_F},
    {COUNTER_RECEIVED_WORDS, IB_PC_RCV_BYTES_F, IB_PC_EXT_RCV_BYTES_F},
    {COUNTER_SENT_PACKETS, IB_PC_XMT_PKTS_F, IB_PC_EXT_XMT_PKTS_F},
    {COUNTER_RECEIVED_PACKETS, IB_PC_RCV_PKTS_F, IB_PC_EXT_RCV_PKTS_F},
};

/* Where the performance management of a port is; 0: nowhere. */
static uint16_t lid_of(const struct fab_inventory *inv, uint64_t guid, uint32_t num)
{
    const uint32_t n = fab_inventory_find(inv, guid);
    if (n == FAB_NONE)
        return 0;
    if (inv->nodes[n].kind == FAB_SWITCH)
        return inv->nodes[n].lid;
    const uint32_t port = fab_inventory_port(inv, n, num);
    return port == FAB_NONE ? 0 : inv->ports[port].lid;
}

/* Ask those that have a LID; the others stay unanswered. */
static int ask_attribute(struct smp_port *port, struct smp *questions, const uint16_t *lids,
                         const struct probe_reading *list, uint32_t n, uint16_t attribute,
                         struct fab_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        questions[i] = (struct smp){.lid = lids[i], .attribute = attribute, .modifier = list[i].num};
    return smp_ask(port, questions, n, n, err);
}

static void read_plain(const struct smp *question, struct probe_reading *reading)
{
    uint8_t data[IB_PC_DATA_SZ] = {0};
    memcpy(data, question->data, sizeof(question->data));
    reading->state = question->answered ? READING_GOOD : question->refused ? READING_REFUSED : READING_SILENT;
    for (size_t k = 0; question->answered && k < sizeof(fields) / sizeof(fields[0]); k++)
        reading->value[fields[k].counter] = mad_get_field(data, 0, fields[k].field);
}

static void read_extended(const struct smp *question, struct probe_reading *reading)
{
    uint8_t data[IB_PC_DATA_SZ] = {0};
    memcpy(data, question->data, sizeof(question->data));
    for (size_t k = 0; question->answered && k < sizeof(fields) / sizeof(fields[0]); k++)
        if (fields[k].extended != 0)
            reading->value[fields[k].counter] = mad_get_field64(data, 0, fields[k].extended);
}

static int read_all(struct smp_port *port, struct smp *questions, const uint16_t *lids,
                    struct probe_reading *list, uint32_t n, struct fab_err *err)
{
    uint16_t *extended = calloc(n + 1, sizeof(*extended));
    if (extended == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory");
    int rc = ask_attribute(port, questions, lids, list, n, CLASS_PORT_INFO, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (questions[i].answered && (probe_be(questions[i].data + 2, 2) & EXTENDED) != 0)
            extended[i] = lids[i];
    if (rc == PMIXFAB_OK)
        rc = ask_attribute(port, questions, lids, list, n, IB_GSI_PORT_COUNTERS, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (lids[i] != 0)
            read_plain(&questions[i], &list[i]);
    if (rc == PMIXFAB_OK)
        rc = ask_attribute(port, questions, extended, list, n, IB_GSI_PORT_COUNTERS_EXT, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        if (extended[i] != 0)
            read_extended(&questions[i], &list[i]);
    free(extended);
    return rc;
}

int ibnetdisc_counters(const struct probe_config *config, const struct fab_inventory *last,
                       struct probe_reading *list, uint32_t n, struct fab_err *err)
{
    umad_port_t at;
    struct smp_port *port = NULL;
    struct smp *questions = calloc(n + 1, sizeof(*questions));
    uint16_t *lids = calloc(n + 1, sizeof(*lids));
    uint32_t known = 0;
    int rc = PMIXFAB_OK;
    if (questions == NULL || lids == NULL) {
        free(questions);
        free(lids);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory for %u ports", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        lids[i] = list[i].state == READING_NONE ? lid_of(last, list[i].guid, list[i].num) : 0;
        known += lids[i] != 0;
    }
    if (known > 0) {
        rc = ibnetdisc_usable(config, &at, err);
        if (rc == PMIXFAB_OK) {
            rc = smp_open(&at, IB_PERFORMANCE_CLASS,
                          config->max_smps != 0 ? config->max_smps : IBNETDISC_MAX_SMPS, COUNTERS_TIMEOUT_MS,
                          COUNTERS_RETRIES, &port, err);
            if (rc == PMIXFAB_OK)
                rc = read_all(port, questions, lids, list, n, err);
            smp_close(port);
            umad_release_port(&at);
        }
    }
    free(questions);
    free(lids);
    return rc;
}

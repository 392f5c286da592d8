#include "probes/core/counter_values.h"

const struct probe_counter_kind probe_counter_kinds[PROBE_COUNTERS] = {
    [COUNTER_SYMBOL_ERRORS] = {"symbol_errors", "symbol errors", UINT16_MAX, true, 10},
    [COUNTER_LINK_RECOVERIES] = {"link_recoveries", "link recoveries", UINT8_MAX, true, 10},
    [COUNTER_LINK_DOWNED] = {"link_downed", "link downed", UINT8_MAX, true, 10},
    [COUNTER_RECEIVE_ERRORS] = {"receive_errors", "receive errors", UINT16_MAX, true, 10},
    [COUNTER_LOCAL_INTEGRITY] = {"local_integrity", "local integrity errors", 15, true, 10},
    [COUNTER_BUFFER_OVERRUNS] = {"buffer_overruns", "buffer overruns", 15, true, 10},
    [COUNTER_REMOTE_ERRORS] = {"remote_errors", "remote physical errors", UINT16_MAX, false, 100},
    [COUNTER_DISCARDS] = {"discards", "discards", UINT16_MAX, false, 100},
    [COUNTER_SENT_WORDS] = {"sent_words", "words sent", UINT64_MAX, false, 0},
    [COUNTER_RECEIVED_WORDS] = {"received_words", "words received", UINT64_MAX, false, 0},
    [COUNTER_SENT_PACKETS] = {"sent_packets", "packets sent", UINT64_MAX, false, 0},
    [COUNTER_RECEIVED_PACKETS] = {"received_packets", "packets received", UINT64_MAX, false, 0},
};

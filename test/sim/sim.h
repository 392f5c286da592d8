/*
 * sim.h - a whole site in one process, deterministic: the daemon's core with played clocks, timers, threads
 * and children, on a fabric that hands change.
 *
 *     struct sim *s = sim_new(seed, "fattree2:3,2,2");
 *     sim_configure(s, "changes", "retain_seconds", "2");
 *     sim_start(s);
 *     sim_pull(s, "leaf1", 1);
 *     sim_sweep(s);
 *     sim_advance(s, 2 * SIM_SECOND);
 *     sim_request(s, "{\"op\":\"history\"}")
 *     sim_free(s);
 *
 * Nothing here waits: sim_run_until_idle() runs what is due now, until the run queue is empty and no child is
 * under way; sim_advance() lets virtual time pass. The same seed gives the same journal, byte for byte. One
 * site at a time in a process. What goes wrong with the site itself (not with what is tested) ends the
 * process with a message.
 */
#ifndef FAB_TEST_SIM_H
#define FAB_TEST_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

#define SIM_MS     INT64_C(1000)
#define SIM_SECOND (1000 * SIM_MS)
#define SIM_HOUR   (3600 * SIM_SECOND)
#define SIM_DAY    (24 * SIM_HOUR)

/* ---- life -----------------------------------------------------------------------------------------------
 */

/* fabric: as test/fabrics/fabrics.h has it, or the path of a capture ("/..."); several, with "+" between
 * them, are planes of the same hosts: the switches of the second one are called "leaf1b", the HCAs
 * "node0001-2". */
struct sim *sim_new(uint64_t seed, const char *fabric);
void sim_free(struct sim *s); /* NULL allowed */

/* A setting over the site's own (it sweeps when it is asked to, and only then); value NULL: the default. A
 * key that stands several times in a configuration has its values separated by newlines. Read at the next
 * start or sim_reload(). */
void sim_configure(struct sim *s, const char *section, const char *key, const char *value);

/* Start the daemon and run until it is idle. 0, or the error; its reason is in the journal. */
int sim_start(struct sim *s);
void sim_stop(struct sim *s); /* in order, as SIGTERM does */
/* As SIGKILL, or (power) as a power failure: what was not synced is gone, so is the run directory. */
void sim_kill(struct sim *s, bool power);
/* Stop it, and take away all that it keeps: the next one counts anew. */
void sim_lose_everything(struct sim *s);
bool sim_runs(const struct sim *s);
/* From now on the store's disk works, is full (what takes room fails), or fails at each call that changes it.
 */
enum sim_disk { SIM_DISK_GOOD, SIM_DISK_FULL, SIM_DISK_FAILS };
void sim_disk(struct sim *s, enum sim_disk how);
void sim_reload(struct sim *s);              /* SIGHUP */
const char *sim_folder(const struct sim *s); /* where its files are */
const char *sim_rundir(const struct sim *s);
const char *sim_store(const struct sim *s);
const char *sim_settings(struct sim *s); /* the path of the configuration, as it is now */

/* ---- time ------------------------------------------------------------------------------------------------
 */

void sim_run_until_idle(struct sim *s);
void sim_advance(struct sim *s, int64_t microseconds);
int64_t sim_now(const struct sim *s);               /* of the real-time clock */
void sim_jump(struct sim *s, int64_t microseconds); /* the real-time clock alone */

/* ---- the fabric: what hands do
 * ------------------------------------------------------------------------------ */

/* Nodes are named as fabric_node_name() does: "leaf1", "node0001", "node0001-2". False: there is no such
 * thing. */
bool sim_pull(struct sim *s, const char *node, unsigned port); /* one cable; port 0: all of the node's */
bool sim_plug(struct sim *s, const char *node, unsigned port); /* what was pulled there; port 0: all */
bool sim_move(struct sim *s, const char *node, unsigned port, const char *to, unsigned to_port);
/* A new cable between two free ports: at the rate that they had, or at 4xQDR where one never had a cable. */
bool sim_link(struct sim *s, const char *a, unsigned a_port, const char *b, unsigned b_port);
/* Somebody switches a port off, or on again: its cable has no link meanwhile. */
bool sim_enable(struct sim *s, const char *node, unsigned port, bool enabled);
/* What a port counts (enum probe_counter). */
bool sim_count(struct sim *s, const char *node, unsigned port, unsigned counter, uint64_t value);
bool sim_exchange(struct sim *s, const char *a, unsigned a_port, const char *b,
                  unsigned b_port); /* the far ends */
bool sim_replace(struct sim *s, const char *node,
                 uint64_t guid);                /* another card or switch, cabled as it was */
bool sim_lose(struct sim *s, const char *node); /* the node goes for good */
bool sim_rename(struct sim *s, const char *node, const char *description);
bool sim_rate(struct sim *s, const char *node, unsigned port, unsigned width, const char *speed);
bool sim_state(struct sim *s, const char *node, unsigned port,
               unsigned state); /* enum fab_port_state, both ends */
unsigned sim_cable(struct sim *s, const char *a,
                   const char *b); /* the first port of `a` with a cable to `b`; 0: none */
/* Where sweeps are made from: what is not reached from there is not seen, and without a cable that is up they
 * fail. NULL, and at first: where most of the fabric is reached. */
bool sim_home(struct sim *s, const char *node);
/* Before the start: each switch has at least so many ports; a host has another one's cable in its second
 * port, in place of that one. */
void sim_room(struct sim *s, unsigned ports);
bool sim_second_port(struct sim *s, const char *node, const char *other);
/* How the sweeps from now on end: well, with an error, by a signal, hanging, or seeing all but this node. */
enum sim_sweeps { SIM_SWEEPS_GOOD, SIM_SWEEPS_FAIL, SIM_SWEEPS_CRASH, SIM_SWEEPS_HANG, SIM_SWEEPS_MISS };
void sim_sweeps(struct sim *s, enum sim_sweeps how, const char *missed);
/* The same of each light sweep: well, by a signal, hanging. */
void sim_light_sweeps(struct sim *s, enum sim_sweeps how);
void sim_sweeps_take(struct sim *s, int64_t microseconds); /* 20 ms without this */
void sim_manager(struct sim *s, const char *node); /* its port is the subnet manager's; NULL: there is none */

/* ---- hosts that deliver
 * --------------------------------------------------------------------------------------- */

/* The host delivers what it would report of its HCAs (test/fabrics/reports.h) with this firmware; the code of
 * the answer. */
int sim_deliver(struct sim *s, const char *host, const char *firmware);
/* The same of a recorded machine (probes/core/record.h), as JSON. */
int sim_deliver_record(struct sim *s, const char *record);
/* The bytes of such a delivery, in base64; before (may be NULL): of what has changed since that one. Until
 * the next call. */
const char *sim_delivery(const char *record, const char *before);
/* Bring such bytes in a credential that was made on a host by a user; the code of the answer. */
int sim_deliver_from(struct sim *s, const char *base64, const char *from, unsigned uid);

void sim_unresolved(struct sim *s, const char *host); /* no name server answers for it; NULL: for nobody */

/* ---- nodes: fabricd in the role node, on hosts of the site
 * -------------------------------------------------------------------- */

/* Configured and not started: it looks at recorded machines (probe "verbs:FILE") when it is asked to. It
 * lives as long as the site. */
struct sim_node *sim_node_new(struct sim *s, const char *host);
void sim_node_configure(struct sim_node *node, const char *section, const char *key, const char *value);
int sim_node_start(struct sim_node *node);
void sim_node_stop(struct sim_node *node);
void sim_node_kill(struct sim_node *node);
bool sim_node_runs(const struct sim_node *node);
void sim_node_reload(struct sim_node *node);
const char *sim_node_rundir(const struct sim_node *node);
void sim_node_cut(struct sim_node *node, bool cut);     /* its way to the scheduler */
void sim_node_munge(struct sim_node *node, bool hangs); /* its munged */
void sim_node_device(struct sim_node *node);            /* the kernel tells of a device */

/* ---- what operators ask
 * ------------------------------------------------------------------------------------------ */

/* A line of JSON to the control socket; the last line of the answer, which goes on standing until the next
 * call. The time that the answer takes passes. */
const char *sim_request(struct sim *s, const char *json);
/* For a test with a connection of its own: until there is something to read at fd, at most for so much
 * virtual time (false: there is not); and what callers have sent or closed reaches the daemon now. */
bool sim_readable(struct sim *s, int fd, int64_t microseconds);
void sim_look(struct sim *s);
const char *sim_request_of(struct sim *s, const char *rundir, const char *json);
/* A sweep, and the end of all that follows from it at once. False: it failed. */
bool sim_sweep(struct sim *s);
/* fabricctl with these arguments; its output and errors go on standing until the next call. */
int sim_ctl(struct sim *s, const char *const *argv, const char **out, const char **err);
/* Called where fabricctl waits for the daemon and nothing of it is left to do at this time: true, it did
 * something, so fabricctl looks again; false: time passes. NULL: nothing is called. Of a fabricctl
 * that waits for as long as it takes the reader has left after a day. */
void sim_on_wait(struct sim *s, bool (*fn)(void));

/* ---- texts
 * ----------------------------------------------------------------------------------------------------------
 */

/* A generated fabric as "net" (ibsim's) or "capture" (ibnetdiscover's); it goes on standing until the next
 * call. */
const char *sim_fabric(const char *spec, const char *form);
/* A plane's snapshot in a run directory, without a daemon: fabric_snapshot_file(). */
void sim_snapshot(const char *spec, bool facts, const char *folder, const char *name, unsigned index,
                  uint64_t generation);

/* The run directory of a daemon without a past that has swept the site as it is now, on a store of its own,
 * and ended; for sim_ctl_of(), until the next call. */
const char *sim_afresh(struct sim *s);
int sim_ctl_of(const char *rundir, const char *const *argv, const char **out, const char **err);

/* fabricd beside the daemon, with its settings and these arguments, which make it end by itself; its exit
 * status. What it says is in the journal. */
int sim_fabricd(struct sim *s, const char *const *argv);

/* What the daemon calls its children that are under way, one a line. */
const char *sim_children(struct sim *s);

/* ---- other programs: hooks, commands of exports
 * ---------------------------------------------------------------------------- */

/* Called when one is started: what the daemon calls it, its words and its environment (one a line), its
 * standard input. It ends well, soon and without a word, unless sim_program_ends() says otherwise before it
 * returns. fabricctl is not played: the real one runs in this process. */
typedef void (*sim_program_fn)(const char *what, const char *words, const char *environment,
                               const char *input);
void sim_programs(struct sim *s, sim_program_fn fn);
/* takes: microseconds, less than 0: it hangs; says: on its standard error. */
void sim_program_ends(struct sim *s, int status, int64_t takes, const char *says);

/* ---- what happened
 * ------------------------------------------------------------------------------------------------- */

/* Lines of virtual time, subject and text. */
const char *sim_journal(const struct sim *s);
void sim_note(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t sim_generation(const struct sim *s); /* that is served; 0: none */
/* After each generation this many rows of the cost matrices are compared with a plain search (4 unless it is
 * said otherwise), and the order of devices; a difference ends the process with the seed and the journal. 0:
 * none is, for what the search does not know: suppressed cables, other cost models. */
void sim_oracle(struct sim *s, unsigned rows);

/* ---- crashes
 * ------------------------------------------------------------------------------------------------------- */

/*
 * Play the story once for each place where the daemon's process can end: before each call of the store's disk
 * and each timer, event and thread. There the machine stops (power: what was not synced is lost); a daemon
 * that finds what is left starts, and keeps the rules: it serves each generation that was announced, uses no
 * number twice, moves no index. Returns how many places there were. A broken rule ends the process.
 */
struct sim_story {
    const char *fabric;
    void (*configure)(struct sim *s); /* NULL: as it is */
    void (*play)(struct sim *s);      /* after the start */
};
unsigned sim_crash_everywhere(uint64_t seed, const struct sim_story *story, bool power);

#endif

/* played.h - inside the simulation: what its files share. */
#ifndef FAB_TEST_SIM_PLAYED_H
#define FAB_TEST_SIM_PLAYED_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "fabricd/serving/plane_ref.h"
#include "probes/core/probe.h"
#include "test/sim/sim.h"
#include "topo/model/inventory.h"

/* It is the simulation that is wrong, or used wrongly: the journal, the reason, the end. */
_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- settings.c
 * ---------------------------------------------------------------------------------------------------------
 */

#define MOST_SETTINGS 64

struct settings {
    struct setting {
        char section[32], key[160], *value;
    } items[MOST_SETTINGS];
    unsigned n;
};
/* value NULL: the default; with newlines: several. */
void settings_set(struct settings *settings, const char *section, const char *key, const char *value);
void settings_write(const struct settings *settings, const char *path);
void settings_free(struct settings *settings);

/* ---- seam.c: clocks, timers, threads ----------------------------------------------------------------------
 */

/* A new world: nothing is set, the clocks begin. All runs in the order in which it was set, or (shuffle) in
 * an order that the seed deals among what is due at the same time. */
void seam_begin(uint64_t seed, bool shuffle);
uint64_t seam_random(void);
int64_t seam_monotonic(void);
void seam_jump(int64_t microseconds);
bool seam_is_due(void);             /* is there something in the run queue? */
void seam_run_one(void);            /* the first of it */
int64_t seam_next(void);            /* when the next timer goes off, -1: none is set */
void seam_set(int64_t monotonic);   /* that time has come: what is due goes into the run queue */
struct event_base *seam_base(void); /* whose timer or work runs now; NULL: nobody's */
void seam_hold(void);               /* in a work: it does not return yet */
void seam_release(void);            /* all that are held run again */
unsigned seam_points(void);         /* so many calls of the seam were made: places where a process may end */
void seam_on_point(void (*fn)(void *arg), void *arg); /* called at each of them; NULL: nothing is */

/* ---- children.c: processes
 * ------------------------------------------------------------------------------------ */

void children_begin(struct sim *s);
unsigned children_under_way(void); /* but for those that stay */

/* ---- programs.c: other programs
 * ------------------------------------------------------------------------------- */

struct program {
    int status;
    int64_t takes; /* less than 0: it hangs */
    char *says;
};

struct child_order;
struct config_list;
void program_begin(const struct child_order *order, struct program *program);
/* It is at its end: what it says is in the log; its last words, its status. */
void program_end(const struct child_order *order, char *const *argv, struct program *program, char *words,
                 size_t size);
void program_free(struct program *program);

/* ---- ctl.c
 * -------------------------------------------------------------------------------------------------------------
 */

/* fabricctl with these arguments, of which the first is left out; free() both texts. */
int ctl_run(const char *rundir, char *const *argv, char **out, char **err);

/* ---- site.c: the fabric
 * ------------------------------------------------------------------------------------------ */

struct site;
struct site *site_new(const char *fabric);
void site_free(struct site *site);
/* As a sweep of everything sees it: *inv is initialised here, and finished. But for the node of this name
 * (NULL). */
void site_inventory(struct site *site, const char *but, struct fab_inventory *inv);
/* What a sweep of these switches alone makes of the last one: *inv as above, *n_read of how many. As a
 * probe's sweep_switches(). */
int site_part(const struct site *site, const struct fab_inventory *last, const uint64_t *switches, uint32_t n,
              struct fab_inventory *inv, uint32_t *n_read, struct fab_err *err);
bool site_is_cut_off(
    const struct site *site); /* the node that sweeps are made from has no cable that is up */
/* What a port has counted. False: there is no such node, or it is the one called `but` (NULL). */
bool site_count(const struct site *site, const char *but, uint64_t guid, unsigned port,
                uint64_t value[PROBE_COUNTERS]);
uint64_t site_version(const struct site *site); /* another one after each change */
/* The node's port GUIDs, one after the other; 0: there are no more. */
uint64_t site_hca(const struct site *site, const char *host, unsigned at, uint64_t *port_guid);
struct site *sim_site(struct sim *s);
struct site *site_copy(const struct site *site);
/* A sweep has seen this. */
void sim_on_swept(struct sim *s, const struct fab_inventory *inv);
/* How the next sweep ends; what it does not see. */
enum sim_sweeps sim_sweeps_end(const struct sim *s, const char **missed);
enum sim_sweeps sim_light_sweeps_end(const struct sim *s); /* and the next light sweep */
int64_t sim_sweep_takes(const struct sim *s);
uint64_t sim_manager_guid(const struct sim *s); /* 0: none answers */
extern const struct probe probe_site;

/* ---- played_pmix.c: the PMIx server, munge
 * -------------------------------------------------------------------------------- */

void front_begin(struct sim *s);
/* A delivery that this user of a host makes, beside the nodes' channel; the code of the answer. */
int front_deliver(struct sim *s, const char *from, unsigned uid, const void *bytes, size_t size);
struct in_addr;
void sim_address(const char *host, struct in_addr *address); /* "node0012" has 10.0.0.12 */

/* ---- tcp.c: the connections of nodes to the scheduler
 * -------------------------------------------------------------------------------- */

void tcp_begin(void);

/* ---- nodes.c
 * -------------------------------------------------------------------------------------------------------------
 */

struct sim_node;
struct sim_node *node_running(void); /* whose code runs now; NULL: the scheduler's */
const char *node_host(const struct sim_node *node);
bool node_is_cut(const struct sim_node *node);
bool node_munge_hangs(const struct sim_node *node);
void nodes_begin(struct sim *s);
void nodes_end(void);
void nodes_look(void); /* what their sockets have brought */

struct served *sim_served(const struct sim *s); /* in sim.c: the same, also while it begins */
struct served *front_served(void);              /* what the scheduler serves; NULL: it has not begun */

/* ---- delivery.c
 * ---------------------------------------------------------------------------------------------------------
 */

/* A recorded machine, as a finished report. */
void report_of_record(const char *record, struct fab_report *report);

/* ---- sim.c
 * --------------------------------------------------------------------------------------------------------------
 */

struct sim *the_sim(void);
void sim_remove(const char *folder); /* with all that is in it; it need not be there */
/* A site whose folder and fabric are there already; both are its own from now on. */
struct sim *sim_resume(uint64_t seed, const char *folder, struct site *site);
/* What a stop of the machine at this moment leaves, in a new folder. */
void sim_image(struct sim *s, bool power, const char *to);
/* Called before each call of the disk; NULL: nothing is. */
void sim_on_disk_call(struct sim *s, void (*fn)(void *arg), void *arg);
uint64_t sim_updated(const struct sim *s); /* the generation whose UPDATED was announced last */
uint64_t sim_pending(const struct sim *s); /* the newest whose PENDING was */
struct event_base *sim_base(struct sim *s);
struct ingest *sim_ingest(struct sim *s); /* of the scheduler; NULL: it takes no deliveries */
void sim_on_announced(struct sim *s, bool pending, const struct event_plane *planes, uint32_t n,
                      uint64_t generation);
/* Run until there is something to read at fd, at most for so much virtual time; false: there is not. */
bool sim_run_until_readable(struct sim *s, int fd, int64_t microseconds);

#endif

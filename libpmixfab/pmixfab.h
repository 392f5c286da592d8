/*
 * pmixfab.h - typed access to what fabricd knows about a fabric.
 *
 * Life cycle
 *   A `struct pmixfab` is one published snapshot of one fabric plane. It is immutable: open it, ask it,
 *   close it. When the fabric changes, open the next one; the old one stays valid until it is closed.
 *   It can be opened from a daemon's run directory, from a file, from memory, or over PMIx.
 *
 * Threads
 *   Any number of threads may ask one handle at the same time. Close it when all of them are done.
 *   The functions that talk PMIx may be called from any thread but PMIx's own progress thread (that is:
 *   not from a PMIx callback or event handler).
 *
 * Ownership
 *   Strings and arrays handed out by reference belong to the handle and live until it is closed.
 *   What the caller passes in stays the caller's.
 *
 * Structs
 *   A later version may append members to a struct that a function fills. So such a function is told the size
 *   of the caller's (pmixfab_plane() passes it on to pmixfab_plane_sized()), and never writes more than that.
 *   What the caller's version of the struct has and the library's has not becomes zero. `struct pmixfab_end`
 *   stays as it is.
 *
 * Errors
 *   0 or a negative code of `enum pmixfab_err`; outputs are untouched on error unless a function says
 *   otherwise. Null pointers and impossible numbers give PMIXFAB_ERR_INVAL, never a crash. The library
 *   prints nothing: install a log callback to read the reasons.
 *
 * PMIx Standard: chapter "Fabric Support Definitions". No PMIx header is needed to include this one.
 */
#ifndef PMIXFAB_H
#define PMIXFAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMIXFAB_VERSION "0.1.0"
/* The same as a number that #if compares: a byte each, 0xMMmmpp. */
#define PMIXFAB_VERSION_NUMBER 0x000100

/* Every error of the library, of fabricd and of fabricctl. */
enum pmixfab_err {
    PMIXFAB_OK = 0,
    PMIXFAB_ERR_INVAL = -1,       /* an argument is null, zero or out of range */
    PMIXFAB_ERR_NOMEM = -2,       /* out of memory */
    PMIXFAB_ERR_IO = -3,          /* the operating system refused a read, write, map or connect */
    PMIXFAB_ERR_NOTFOUND = -4,    /* no such plane, device, host, switch, file or key */
    PMIXFAB_ERR_SYNTAX = -5,      /* a text is not in the form it should have */
    PMIXFAB_ERR_CONFLICT = -6,    /* an input contradicts itself */
    PMIXFAB_ERR_RANGE = -7,       /* a number or a size is beyond what is possible */
    PMIXFAB_ERR_TRUNCATED = -8,   /* the data end too early */
    PMIXFAB_ERR_FOREIGN = -9,     /* the data are of another kind or another byte order */
    PMIXFAB_ERR_OLDER = -10,      /* the data are of a format version no longer read */
    PMIXFAB_ERR_NEWER = -11,      /* the data are of a format version not known yet */
    PMIXFAB_ERR_CORRUPT = -12,    /* a checksum does not match, or the content is inconsistent */
    PMIXFAB_ERR_BUSY = -13,       /* somebody else holds it */
    PMIXFAB_ERR_PERM = -14,       /* the caller may not do that */
    PMIXFAB_ERR_TIMEOUT = -15,    /* it took longer than allowed */
    PMIXFAB_ERR_UNREACH = -16,    /* the daemon cannot be reached */
    PMIXFAB_ERR_PARTIAL = -17,    /* only a part of the fabric answered */
    PMIXFAB_ERR_UNSUPPORTED = -18 /* not built in, or not offered by the other side */
};

/* The name of a code in words, never NULL. The string is static. */
const char *pmixfab_strerror(int err);

/* The library's version, "MAJOR.MINOR.PATCH". */
const char *pmixfab_version(void);

/* Levels of the log callback. */
enum pmixfab_level { PMIXFAB_LOG_ERROR = 0, PMIXFAB_LOG_WARNING, PMIXFAB_LOG_INFO, PMIXFAB_LOG_DEBUG };

/* Gets one line without newline. May be called from any thread that uses the library. */
typedef void (*pmixfab_log_fn)(enum pmixfab_level level, const char *line, void *cbdata);

/* Install the process's log callback; NULL (the start) is silence. */
void pmixfab_set_log(pmixfab_log_fn fn, void *cbdata);

/* ------------------------------------------------------------------------------------------------ */

/* One snapshot of one plane. */
struct pmixfab;

#define PMIXFAB_MAX_DIMS 4      /* no coordinate has more numbers */
#define PMIXFAB_NO_PATH  65535u /* the cost between devices that cannot reach each other */

/*
 * Open the snapshot of `plane` (a plane's name, or NULL for the default plane) from the run directory of
 * a fabricd on this host (NULL: /run/fabricd). Maps the file and validates it wholly before it returns.
 * The daemon need not be running. *out is NULL on error.
 */
int pmixfab_open_rundir(const char *rundir, const char *plane, struct pmixfab **out);

/* Open one snapshot file. As above. */
int pmixfab_open_file(const char *path, struct pmixfab **out);

/* Open a snapshot from `size` bytes in memory; the bytes are copied. */
int pmixfab_open_memory(const void *bytes, size_t size, struct pmixfab **out);

/*
 * Names of the planes published in a run directory (NULL: /run/fabricd), default plane first, then by index.
 * Files that are no snapshots are skipped and logged. None at all is PMIXFAB_ERR_NOTFOUND. Free with
 * pmixfab_list_free().
 */
int pmixfab_list_rundir(const char *rundir, char ***names, size_t *n);
void pmixfab_list_free(char **names, size_t n);

/*
 * Is what the run directory (NULL: /run/fabricd) holds stale? *stale becomes 1 where the last sweep failed,
 * where a node's scheduler is away or stale itself, and where no fabricd runs; else 0. Asks no PMIx server.
 * PMIXFAB_ERR_NOTFOUND: there is no such directory. PMIXFAB_ERR_PERM: it is not this user's to know.
 */
int pmixfab_stale_rundir(const char *rundir, int *stale);

/*
 * Changes of a run directory (NULL: /run/fabricd), which may not be there yet, but the folder that it is in.
 * When the descriptor can be read (poll() it for POLLIN, do not read it) something may have changed: call
 * pmixfab_watch_next() until it says PMIXFAB_ERR_NOTFOUND. What is there when the watch is opened is no
 * change; so open it first and the planes after it. Several changes of one plane between two calls are one.
 *
 * It can be read for other things in that folder, too: often nothing has changed. Nothing can be read when a
 * fabricd is killed, or when that folder itself was removed and is made again; who has to know of that calls
 * from time to time.
 *
 * One thread at a time uses a watch.
 */
enum pmixfab_change_kind {
    PMIXFAB_CHANGE_PUBLISHED = 1, /* another snapshot of the plane is there: open it */
    PMIXFAB_CHANGE_GONE,          /* the plane's snapshot is no longer there */
    PMIXFAB_CHANGE_STALE,         /* what is there became stale, as pmixfab_stale_rundir() says it */
    PMIXFAB_CHANGE_CURRENT        /* it is stale no more */
};
struct pmixfab_change {
    uint64_t generation; /* of the plane */
    uint32_t kind;       /* enum pmixfab_change_kind */
    char plane[64];      /* its name; "" where the change is of all of them */
    uint32_t reserved;   /* 0 */
};
struct pmixfab_watch;
int pmixfab_watch_open(const char *rundir, struct pmixfab_watch **out);
int pmixfab_watch_fd(const struct pmixfab_watch *watch);
int pmixfab_watch_next_sized(struct pmixfab_watch *watch, struct pmixfab_change *out, size_t size);
static inline int pmixfab_watch_next(struct pmixfab_watch *watch, struct pmixfab_change *out)
{
    return pmixfab_watch_next_sized(watch, out, sizeof(*out));
}
void pmixfab_watch_close(struct pmixfab_watch *watch); /* NULL is allowed */

/* Release a handle; NULL is allowed. Everything handed out by reference becomes invalid. */
void pmixfab_close(struct pmixfab *fab);

/* The plane as a whole. Attribute names in brackets are the standard's for the same fact. */
struct pmixfab_plane {
    uint64_t generation;    /* the published change in which this plane last changed */
    int64_t published;      /* when that was: microseconds since 1970-01-01 UTC */
    uint32_t index;         /* number of the plane, from 1, kept over restarts [PMIX_FABRIC_INDEX] */
    uint32_t is_default;    /* 1: the plane that a request without directives gets */
    const char *name;       /* [PMIX_FABRIC_PLANE] */
    const char *vendor;     /* [PMIX_FABRIC_VENDOR] */
    const char *identifier; /* [PMIX_FABRIC_IDENTIFIER] */
    const char *kind;       /* "fat-tree-2", "dragonfly", "torus-3d", ... (docs/design/geometry.md) */
    uint32_t n_devices;     /* rows of the matrix [PMIX_FABRIC_NUM_DEVICES] */
    uint32_t n_hosts;
    uint32_t n_switches;
    uint32_t n_links; /* cables, those of devices included */
    uint32_t n_groups;
    uint32_t n_unnamed;               /* hosts that go by their GUID, because no pattern names them */
    uint32_t dims;                    /* numbers in a logical coordinate [PMIX_FABRIC_DIMS] */
    uint32_t shape[PMIXFAB_MAX_DIMS]; /* extent of each, logical view [PMIX_FABRIC_SHAPE] */
    uint32_t physical_dims;
    uint32_t physical_shape[PMIXFAB_MAX_DIMS]; /* the same in the physical view */
    uint64_t fastest_mbps;                     /* fastest rate of a link of switches and hosts, Mb/s */
};
int pmixfab_plane_sized(const struct pmixfab *fab, struct pmixfab_plane *out, size_t size);
static inline int pmixfab_plane(const struct pmixfab *fab, struct pmixfab_plane *out)
{
    return pmixfab_plane_sized(fab, out, sizeof(*out));
}

/* ---- costs [PMIX_FABRIC_COST_MATRIX] -------------------------------------------------------------- */

/*
 * The cost between device a and device b (indices 0..n_devices-1), a number without a unit: 0 on the
 * diagonal, PMIXFAB_NO_PATH where there is no path; otherwise the cheapest path's sum over its links, where a
 * link at the plane's fastest rate costs 10, a slower one proportionally more (and each link 1 where fabricd
 * counts hops). Two devices of one host: 1 on the same card, 2 below the same PCI switch, 4 on the same NUMA
 * node, 6 in the same processor package, 9 across packages; 5 where that is not known.
 *
 * It is looked up in the compact form, which takes some nanoseconds and no matrix.
 */
int pmixfab_cost(const struct pmixfab *fab, uint32_t a, uint32_t b, uint16_t *cost);

/* Row a of the matrix into row[0..n-1]; n must be n_devices. */
int pmixfab_row(const struct pmixfab *fab, uint32_t a, uint16_t *row, size_t n);

/*
 * The whole matrix, row-major, into cells[0..n-1]; n must be n_devices squared. `threads` 0 takes as many
 * as the process may run on.
 */
int pmixfab_matrix(const struct pmixfab *fab, uint16_t *cells, size_t n, unsigned threads);

/*
 * The whole matrix in memory of its own (*cells, n_devices squared values, row-major, huge pages where the
 * system gives them). Free with pmixfab_matrix_free(); it outlives the handle. An empty plane gives NULL
 * and success.
 */
int pmixfab_matrix_alloc(const struct pmixfab *fab, unsigned threads, uint16_t **cells);
void pmixfab_matrix_free(uint16_t *cells, uint32_t n_devices);

/*
 * A matrix that pmixfab_matrix_alloc() or this function made of `before` (*cells) becomes that of `fab`, an
 * other generation of the plane: the same values as from nothing. Where both have as many devices it is
 * changed in place and *cells stays what it is; mostly only what differs is written, which after one changed
 * cable is a hundred times faster. Else it is a new one, and the old one is freed. Nobody may be reading it
 * meanwhile. `threads` as above. On error *cells and what it points at are untouched.
 */
int pmixfab_matrix_update(const struct pmixfab *before, const struct pmixfab *fab, unsigned threads,
                          uint16_t **cells);

/* Between hosts: the cheapest of the costs between their devices, those that are down included; 0 to itself.
 */
int pmixfab_host_cost(const struct pmixfab *fab, uint32_t a, uint32_t b, uint16_t *cost);

/* The costs among n given devices, or hosts: cells[i * n + k] is from the i-th to the k-th of them. */
int pmixfab_device_costs(const struct pmixfab *fab, const uint32_t *devices, size_t n, uint16_t *cells);
int pmixfab_host_costs(const struct pmixfab *fab, const uint32_t *hosts, size_t n, uint16_t *cells);

/*
 * A cheapest path from device a to device b: the switches on it, in order, into switches[0..*n-1]. There may
 * be others that cost as much; it is the same one each time. *n is 0 within a host, and on a cable from
 * device to device. PMIXFAB_ERR_NOTFOUND: no path. PMIXFAB_ERR_RANGE: there are *n, and `room` is less;
 * n_switches of the plane is always enough.
 */
int pmixfab_path(const struct pmixfab *fab, uint32_t a, uint32_t b, uint32_t *switches, size_t room,
                 uint32_t *n);

/* ---- devices -------------------------------------------------------------------------------------- */

enum pmixfab_state { PMIXFAB_STATE_UNKNOWN = 0, PMIXFAB_STATE_DOWN = 1, PMIXFAB_STATE_UP = 2 };

struct pmixfab_device {
    uint32_t index;
    uint32_t host_index;   /* 0..n_hosts-1 */
    uint32_t switch_index; /* UINT32_MAX: cabled to another device directly, or to nothing */
    uint32_t switch_port;  /* 0 where there is no switch */
    uint32_t port;         /* port number on the device */
    uint32_t state;        /* enum pmixfab_state, the values of pmix_link_state_t */
    uint64_t node_guid, port_guid, system_guid;
    uint64_t mbps; /* active rate, megabits per second; 0 unknown */
    const char *host;
    const char *name;
    uint32_t rail; /* of the switch that it is cabled to */
    uint32_t seen; /* bits of enum pmixfab_seen */
    char id[64];   /* [PMIX_DEVICE_ID] fab://<node GUID>::<system image GUID>, or ipv4://<MAC> */
};

/*
 * Who knows of a device: the sweep of the fabric, the host that it is in, or both. MISSING beside SUBNET: a
 * sweep has seen it, the last ones have not; its state is DOWN, and its place is kept for a while.
 */
enum pmixfab_seen { PMIXFAB_SEEN_SUBNET = 1, PMIXFAB_SEEN_NODE = 2, PMIXFAB_SEEN_MISSING = 4 };

int pmixfab_device_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_device *out, size_t size);
static inline int pmixfab_device(const struct pmixfab *fab, uint32_t index, struct pmixfab_device *out)
{
    return pmixfab_device_sized(fab, index, out, sizeof(*out));
}

/*
 * What is known of a device beside that, fact by fact: i = 0, 1, ... until PMIXFAB_ERR_NOTFOUND. Facts of one
 * kind are neighbours, the believed one first. Kinds and their forms: fabricctl(1), "FACTS".
 */
struct pmixfab_fact {
    const char *kind;  /* "firmware", "pci", "mtu", ... */
    const char *text;  /* in the form of its kind */
    uint32_t sources;  /* bit i: source i says so, see pmixfab_source_name() */
    uint32_t chosen;   /* 1: believed; 0: another one is, of a source that comes first */
    uint32_t conflict; /* 1: sources contradict each other about this kind */
    uint32_t estimate; /* 1: not measured, or a constant of the software */
    uint32_t software; /* 1: a way of using the device that its hardware has no part in (TCP) */
    uint32_t
        yielded; /* 1: a GUID or MAC that another host claims, too, and that this device does not go by */
};
int pmixfab_fact_sized(const struct pmixfab *fab, uint32_t index, uint32_t i, struct pmixfab_fact *out,
                       size_t size);
static inline int pmixfab_fact(const struct pmixfab *fab, uint32_t index, uint32_t i,
                               struct pmixfab_fact *out)
{
    return pmixfab_fact_sized(fab, index, i, out, sizeof(*out));
}

/* The believed text of a kind; NULL where nothing is known. It belongs to the handle. */
const char *pmixfab_fact_text(const struct pmixfab *fab, uint32_t index, const char *kind);

/* Name of source i (0..): "subnet", "verbs", "hwloc", ...; NULL past the last. Static. */
const char *pmixfab_source_name(uint32_t i);

/*
 * The index of the device that `what` names: a device id, `host:device`, `host:device:port`, `host`
 * (its first device), or a port's or HCA's GUID (`0x` and 16 digits). PMIXFAB_ERR_NOTFOUND where there is
 * none.
 */
int pmixfab_find(const struct pmixfab *fab, const char *what, uint32_t *index);

/* The number of the host with this name, and the index of the switch with this name or GUID (`0x` and 16
 * digits). PMIXFAB_ERR_NOTFOUND; PMIXFAB_ERR_CONFLICT where several switches have the name. */
int pmixfab_find_host(const struct pmixfab *fab, const char *name, uint32_t *host);
int pmixfab_find_switch(const struct pmixfab *fab, const char *what, uint32_t *index);

/* Name of host i and its devices: indices first..first+n-1 (devices of a host are neighbours). */
int pmixfab_host(const struct pmixfab *fab, uint32_t i, const char **name, uint32_t *first, uint32_t *n);

/* Views of coordinates, the values of pmix_coord_view_t. */
enum pmixfab_view { PMIXFAB_LOGICAL = 1, PMIXFAB_PHYSICAL = 2 };

/* Coordinates of a device: *coords points at *dims numbers inside the handle [PMIX_FABRIC_COORDINATES]. */
int pmixfab_coords(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view, const uint32_t **coords,
                   uint32_t *dims);

/* ---- nearest device ------------------------------------------------------------------------------- */

/* The device that a process is to use, and why. */
struct pmixfab_nearest {
    uint32_t device;   /* index; UINT32_MAX: no device of the host is up in this plane */
    uint32_t distance; /* 4: attached to processors of the process, 6: in their package, 9: in another
                          package, 5: not known; 0: the process is bound to nothing; UINT32_MAX: none is up */
    uint32_t equal;    /* devices that are up and as near, this one included */
    uint32_t nearer;   /* index of a device that is nearer, but not up; UINT32_MAX: none, or none is up */
};

/*
 * For each of n processes on host number `host`, whose local ranks are first_rank and those that follow, the
 * nearest device that is up. cpus[i] is what process i is bound to: a list of processors as hwloc and
 * taskset(1) write it ("0-11,24-35"), also with "hwloc:" before it as in PMIX_CPUSET; NULL, or what is no
 * such list: nothing. `cpus` NULL: none of them is bound. Where several devices are equally near, the
 * processes are spread evenly over them. The choice is the same each time.
 *
 * All processes that share the host belong into one call; with one process a call the spreading is even where
 * they are bound to processors of their own. Allocates, but takes no lock and asks nobody.
 */
int pmixfab_nearest_sized(const struct pmixfab *fab, uint32_t host, uint32_t first_rank,
                          const char *const *cpus, size_t n, struct pmixfab_nearest *out, size_t size);
static inline int pmixfab_nearest(const struct pmixfab *fab, uint32_t host, uint32_t first_rank,
                                  const char *const *cpus, size_t n, struct pmixfab_nearest *out)
{
    return pmixfab_nearest_sized(fab, host, first_rank, cpus, n, out, sizeof(*out));
}

/* Why, in words, into buf. PMIXFAB_ERR_RANGE: it did not fit, and is cut; 256 bytes are always enough. */
int pmixfab_nearest_text(const struct pmixfab *fab, const struct pmixfab_nearest *choice, char *buf,
                         size_t size);

/* ---- placement ------------------------------------------------------------------------------------ */

/*
 * The cost between two hosts is here as pmixfab_host_cost() has it, but for devices that are down: such a one
 * counts only where its host has no other. Hosts are given by their numbers, each once, in the order
 * of a job's ranks where that matters, one rank a host.
 */

/* What is to be as small as possible; of what is equal in that, the sum of the costs. By leaves, a host that
 * has lost devices may be preferred to one that has all. */
enum pmixfab_objective {
    PMIXFAB_PLACE_SUM = 0,     /* the sum of the costs between all pairs of hosts */
    PMIXFAB_PLACE_MAX = 1,     /* the largest cost between two of the hosts */
    PMIXFAB_PLACE_SWITCHES = 2 /* the number of leaves that the hosts are attached to */
};

struct pmixfab_placement {
    uint64_t value;    /* of the objective */
    uint64_t bound;    /* no n of the given hosts have less; equal to value: these are the best ones */
    uint32_t n_usable; /* of the given hosts, with a device that is not down */
    uint32_t n_down;   /* the others, which are passed over */
};

/*
 * The best n hosts among `from` (numbers, in any order; NULL: all of the plane) into hosts[0..n-1], in the
 * order of pmixfab_order(). Up to 20 usable hosts it is the best there is; in a tree nearly always; else the
 * best that some milliseconds find (a second or two with tens of thousands of hosts), and `bound` says how
 * much better another one may be. The same question gets the same answer.
 *
 * PMIXFAB_ERR_NOTFOUND: fewer than n are usable, or no n of them were found that all reach each other; *out
 * is filled all the same. PMIXFAB_ERR_RANGE: the hosts are attached in more than 16384 different ways.
 */
int pmixfab_place_sized(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                        enum pmixfab_objective objective, uint32_t *hosts, struct pmixfab_placement *out,
                        size_t size);
static inline int pmixfab_place(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                                enum pmixfab_objective objective, uint32_t *hosts,
                                struct pmixfab_placement *out)
{
    return pmixfab_place_sized(fab, from, n_from, n, objective, hosts, out, sizeof(*out));
}

/*
 * Order hosts such that neighbours in the list are near in the fabric: from the first one (the lowest number)
 * always on to the nearest; a mesh or torus row by row, there and back, where that costs less.
 */
int pmixfab_order(const struct pmixfab *fab, uint32_t *hosts, size_t n);

/* How the processes of a job exchange messages, each of one size. */
enum pmixfab_pattern {
    PMIXFAB_ALL_TO_ALL = 0,
    PMIXFAB_RING = 1,     /* each rank to the next one, the last to the first */
    PMIXFAB_DOUBLING = 2, /* recursive doubling: in round k rank r with rank r xor 2^k, where there is one */
    PMIXFAB_PATTERNS = 3  /* for ever: a further pattern would have members of its own in the struct below */
};

/* What a job on these hosts would feel. Units are those of leaves, else pods or a dragonfly's groups. */
struct pmixfab_spread {
    uint64_t cost;             /* the sum over all pairs of hosts */
    uint64_t ring_cost;        /* the sum from each to the next one, and from the last to the first */
    uint32_t worst;            /* the largest cost between two of them; PMIXFAB_NO_PATH: no path */
    uint32_t worst_a, worst_b; /* two hosts that have it; UINT32_MAX: it is one host */
    uint32_t worst_switches;   /* that a message between those two crosses */
    uint32_t n_switches;       /* leaves that they are attached to */
    uint32_t n_units;          /* that they are in; 0: the plane has none */
    double past_leaf[PMIXFAB_PATTERNS]; /* share (0 to 1) of the messages between hosts without common leaf */
    double past_unit[PMIXFAB_PATTERNS]; /* ... in different units, or in none */
};
int pmixfab_spread_sized(const struct pmixfab *fab, const uint32_t *hosts, size_t n,
                         struct pmixfab_spread *out, size_t size);
static inline int pmixfab_spread(const struct pmixfab *fab, const uint32_t *hosts, size_t n,
                                 struct pmixfab_spread *out)
{
    return pmixfab_spread_sized(fab, hosts, n, out, sizeof(*out));
}

/* ---- switches, links, groups ---------------------------------------------------------------------- */

struct pmixfab_switch {
    uint32_t index;
    uint32_t level; /* 0: carries devices or is nearest to them; counts upwards in trees */
    uint32_t n_ports;
    uint32_t n_hosts; /* hosts with a device on it */
    uint64_t guid;
    const char *name;
    uint32_t missing;  /* 1: the last sweeps have not seen it, its place is kept for a while */
    uint32_t unit;     /* number of the unit that it is a leaf of; UINT32_MAX: of none */
    uint32_t rail;     /* number of the rail of its unit's hosts that it is; UINT32_MAX: of none */
    char id[24];       /* [PMIX_FABRIC_SWITCH] 0x and 16 hexadecimal digits */
    uint32_t reserved; /* 0 */
};
int pmixfab_switch_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_switch *out, size_t size);
static inline int pmixfab_switch(const struct pmixfab *fab, uint32_t index, struct pmixfab_switch *out)
{
    return pmixfab_switch_sized(fab, index, out, sizeof(*out));
}

/* One cable. An end is a switch or a device; or a router or an aggregation node, which have no index. */
enum pmixfab_end_kind {
    PMIXFAB_END_OTHER = 0, /* neither switch nor device; in a snapshot of fabricd 0.1 also the last two */
    PMIXFAB_END_DEVICE,
    PMIXFAB_END_SWITCH,
    PMIXFAB_END_ROUTER,
    PMIXFAB_END_AGGREGATION /* of a switch that computes on the way (SHARP) */
};
struct pmixfab_end {
    uint32_t is_switch;
    uint32_t index; /* of the switch, or of the device; UINT32_MAX: neither */
    uint32_t port;
    uint64_t guid; /* node GUID */
    uint32_t kind; /* enum pmixfab_end_kind */
};
struct pmixfab_link {
    struct pmixfab_end a, b;
    uint64_t mbps;
    uint32_t cost;
    uint32_t missing; /* 1: the switch or the device at one of its ends is missing */
};
int pmixfab_link_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_link *out, size_t size);
static inline int pmixfab_link(const struct pmixfab *fab, uint32_t index, struct pmixfab_link *out)
{
    return pmixfab_link_sized(fab, index, out, sizeof(*out));
}

/* Group g (0..n_groups-1): *hosts points at *n host indices inside the handle [PMIX_FABRIC_GROUPS]. */
int pmixfab_group(const struct pmixfab *fab, uint32_t g, const uint32_t **hosts, uint32_t *n);

/*
 * Name of group g: its leaf's, "pod2" or "group2" (a dragonfly's) with the number that coordinates begin
 * with, or "unit3" for unit number 3. It stays when other groups come and go, while g does not. "" in a
 * snapshot of fabricd 0.1, NULL where g is none.
 */
const char *pmixfab_group_name(const struct pmixfab *fab, uint32_t g);

/* The switch whose hosts group g is. *sw is UINT32_MAX for a unit, a pod or a dragonfly's group, which have
 * several, and for hosts that are on none. */
int pmixfab_group_switch(const struct pmixfab *fab, uint32_t g, uint32_t *sw);

/*
 * Rail-optimised fabrics: leaves that serve the same hosts are a unit, and each of them is one rail of it.
 * Units and rails are numbered from 1, and keep their numbers. A rail without units is the whole plane: its
 * hosts have their other devices in other planes.
 *
 * The devices that are cabled to another leaf than those of their name in their unit: i = 0, 1, ... until
 * PMIXFAB_ERR_NOTFOUND, in order of devices. *sw: the switch where those are, UINT32_MAX: at several. *unit:
 * number of their host's unit.
 */
int pmixfab_misplaced(const struct pmixfab *fab, uint32_t i, uint32_t *device, uint32_t *sw, uint32_t *unit);

/* The standard's string of all groups, "0:n1,n2;1:n3". Free with free(). */
int pmixfab_groups_string(const struct pmixfab *fab, char **out);

/* The standard's shape string, as "4x18x36", into buf. PMIXFAB_ERR_RANGE when it does not fit. */
int pmixfab_shape_string(const struct pmixfab *fab, enum pmixfab_view view, char *buf, size_t size);

/* The snapshot's bytes, as pmixfab_open_memory() takes them; they belong to the handle. */
int pmixfab_bytes(const struct pmixfab *fab, const void **bytes, size_t *size);

/* ---- over PMIx ------------------------------------------------------------------------------------ */

struct pmix_fabric_s;
struct pmix_info;

/* Keys beside the standard's, in fabricd's answers. */
#define PMIXFAB_KEY_SNAPSHOT      "pmixfab.snapshot"      /* pmix_byte_object_t: the snapshot */
#define PMIXFAB_KEY_SNAPSHOT_PATH "pmixfab.snapshot.path" /* string: its file, on fabricd's host */
#define PMIXFAB_KEY_STALE         "pmixfab.stale"         /* bool, by query: the last sweep failed */
#define PMIXFAB_KEY_GENERATION    "pmixfab.generation"    /* uint64_t */
#define PMIXFAB_KEY_SEEN          "pmixfab.seen" /* string, of a device: "subnet", "node", "subnet,node" */
/* The same in a job's information: the library keeps no key there that begins with "pmix" and is not its own.
 * With PMIx 5.0 to 6.1 a job is told nothing under this key and the next two (docs/versions.md). */
#define PMIXFAB_KEY_JOB_GENERATION "fabricd.generation"
/* There: the logical coordinates of all ranks in one array of uint32_t, PMIX_FABRIC_DIMS numbers a rank,
 * those of a rank whose coordinates are not known UINT32_MAX. */
#define PMIXFAB_KEY_JOB_COORDINATES "fabricd.coordinates"
/* There, of a rank on the host of its PMIx server: PMIX_FABRIC_DEVICE of the device that it is to use. */
#define PMIXFAB_KEY_JOB_NEAREST "fabricd.nearest"
/* pmix_byte_object_t, from PMIx_server_collect_inventory: what a host has, for _deliver_inventory. */
#define PMIXFAB_KEY_INVENTORY "pmixfab.inventory"

/*
 * Ask the PMIx server that this process is connected to (PMIx_tool_init, PMIx_Init or a server attached to
 * another) for a plane's snapshot. `directives` are pmix_info_t as PMIx_Fabric_register takes them
 * (PMIX_FABRIC_PLANE, _VENDOR, _IDENTIFIER, _INDEX), or NULL for the default plane. On the daemon's host the
 * snapshot's file is mapped, elsewhere its bytes come over the wire. Blocks for a round trip or two;
 * PMIXFAB_ERR_TIMEOUT after 30 s without an answer.
 */
int pmixfab_open_pmix(const struct pmix_info *directives, size_t ndirs, struct pmixfab **out);

/* Names of all planes that the connected server serves; as pmixfab_list_rundir(). */
int pmixfab_list_pmix(char ***names, size_t *n);

/*
 * Does the connected server serve what it knew before, because its last sweep failed? *stale becomes 1 or 0.
 */
int pmixfab_stale_pmix(int *stale);

/*
 * PMIx_Fabric_register(), completed: fills `fabric` (index, info, ninfo; name stays the caller's) so that
 * its info array holds, beside the scalars and strings, a true PMIX_FABRIC_COST_MATRIX pointer. The object
 * must be updated and released with the two functions below, not with the stock ones. (Standard:
 * "PMIx_Fabric_register")
 */
int pmixfab_register(struct pmix_fabric_s *fabric, const struct pmix_info *directives, size_t ndirs);

/*
 * Bring a registered object up to date. The old matrix is changed in place, or freed where the number of
 * devices is another one: nobody may be reading it ("PMIx_Fabric_update"). When nothing has changed the
 * object stays as it is, pointers included, and so on error.
 */
int pmixfab_update(struct pmix_fabric_s *fabric);

/* Release what pmixfab_register() filled in. ("PMIx_Fabric_deregister") */
int pmixfab_deregister(struct pmix_fabric_s *fabric);

/* The snapshot behind a registered object; it belongs to the object. NULL where it is none of ours. */
const struct pmixfab *pmixfab_of(const struct pmix_fabric_s *fabric);

/* ---- relay: for another PMIx server ---------------------------------------------------------------- */

/*
 * A PMIx server (a workload manager's, on a node) hands its clients' fabric requests on to the scheduler's
 * fabricd, and the news of changes back: pmixfab_server_fabric in its module, and pmixfab_relay_open() after
 * PMIx_server_init(). Any number of requests are under way at a time, over one connection.
 *
 * `scheduler` is the PMIx URI of a fabricd, or the run directory of one on this host (NULL: /run/fabricd),
 * which is looked at again for each connection. Returns after the first attempt to connect, also when it
 * failed: the relay goes on trying, with growing pauses. PMIXFAB_ERR_BUSY: it is open already.
 * PMIXFAB_ERR_UNREACH: PMIx is not initialized.
 *
 * Where a run directory has snapshots and no fabricd.uri (a node whose fabricd has no PMIx server) requests
 * are answered from these in this process, and changes are announced as they are seen there.
 *
 * A request is answered within the deadline (10 s at the start; for those that come after the call), with
 * PMIX_ERR_TIMEOUT when the scheduler takes longer. Without a connection: PMIX_ERR_UNREACH, at once. Requests
 * that were under way when the connection broke are sent again while their deadline lasts.
 *
 * Close it before PMIx_server_finalize(): what is under way is answered PMIX_ERR_UNREACH. Not to be called on
 * PMIx's progress thread.
 */
int pmixfab_relay_open(const char *scheduler);
int pmixfab_relay_deadline(unsigned milliseconds);
void pmixfab_relay_close(void);

/*
 * Launch information for a job of this PMIx server, for hosts of one whose node has no run directory (where
 * it has one, the component pmdl does this by itself; such a job is left as it is): each process of the job
 * finds with its first PMIx_Get() what docs/design/component.md lists. Between PMIx_server_register_nspace(),
 * which has to say where the ranks are, and the start of the job's processes. `planes`: the default one
 * first, open already, as by pmixfab_open_pmix(), so that nobody is asked here; needed during the call only.
 * `host`: this node, as the job calls it; NULL: as gethostname() does.
 *
 * PMIXFAB_ERR_NOTFOUND: the planes have no host of the job. _UNREACH: PMIx is not initialized. _IO: the
 * library does not take it. _UNSUPPORTED: this library, 5.0 before 5.0.7, hands it to no process. Not to be
 * called on PMIx's progress thread.
 */
int pmixfab_tell_job(const char *nspace, const char *host, const struct pmixfab *const planes[], uint32_t n);

/*
 * What the server's module points at; declared only when <pmix_server.h> was included before this header. The
 * fabric function for every server. The query function for the keys that a server with a query function of
 * its own does not know; a server that has none needs none.
 */
#ifdef PMIx_SERVER_API_H
pmix_status_t pmixfab_server_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                    const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t cbfunc,
                                    void *cbdata);
pmix_status_t pmixfab_server_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t nqueries,
                                   pmix_info_cbfunc_t cbfunc, void *cbdata);
#endif

#ifdef __cplusplus
}
#endif
#endif

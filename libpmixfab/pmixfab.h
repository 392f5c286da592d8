/**
 * \file pmixfab.h
 * Read the fabric planes that fabricd publishes: costs, devices, switches, groups, coordinates.
 *
 * \par Life cycle
 * A `struct pmixfab` is one published snapshot of one fabric plane. It never changes: open it, call the
 * functions below, close it. When the fabric changes, open the next snapshot; the old one stays valid until
 * it is closed. A snapshot is opened from a daemon's run directory, from a file, from memory or over PMIx.
 *
 * \par Threads Any number of threads may read one handle at the same time. Close it after the last of them
 * has finished. The functions that use PMIx may be called from any thread except PMIx's own progress thread.
 * So do not call them from a PMIx callback or event handler.
 *
 * \par Ownership
 * Strings and arrays returned by reference belong to the handle and are valid until it is closed. Arguments
 * stay the caller's.
 *
 * \par Structs
 * A later version of the library may append members to a struct that a function fills. Such a function
 * therefore takes the size of the caller's struct (pmixfab_plane() passes it to pmixfab_plane_sized()) and
 * never writes more than that. Members that the library does not have become zero. `struct pmixfab_end` never
 * grows.
 *
 * \par Errors
 * Functions return 0 or a negative code of enum pmixfab_err. On error the outputs are unchanged, unless a
 * function states otherwise. Null pointers and numbers out of range return #PMIXFAB_ERR_INVAL and never
 * crash. The library prints nothing; pmixfab_set_log() installs a callback for its messages.
 *
 * \par Standard
 * PMIx Standard, chapter "Fabric Support Definitions". A name in square brackets is the standard's attribute
 * for the same value. No PMIx header is needed to include this one.
 */
#ifndef PMIXFAB_H
#define PMIXFAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * \defgroup general Version, errors, log
 * @{
 */

/** Version of this header, "MAJOR.MINOR.PATCH". */
#define PMIXFAB_VERSION "0.1.0"
/** Version as a number for the preprocessor: one byte for each part, 0xMMmmpp. */
#define PMIXFAB_VERSION_NUMBER 0x000100

/** All error codes of the library, of fabricd and of fabricctl. */
enum pmixfab_err {
    PMIXFAB_OK = 0,               /**< success */
    PMIXFAB_ERR_INVAL = -1,       /**< an argument is null, zero or out of range */
    PMIXFAB_ERR_NOMEM = -2,       /**< out of memory */
    PMIXFAB_ERR_IO = -3,          /**< the operating system refused a read, write, map or connect */
    PMIXFAB_ERR_NOTFOUND = -4,    /**< no such plane, device, host, switch, file or key */
    PMIXFAB_ERR_SYNTAX = -5,      /**< a text does not have the required form */
    PMIXFAB_ERR_CONFLICT = -6,    /**< an input contradicts itself */
    PMIXFAB_ERR_RANGE = -7,       /**< a number or size is out of range, or a buffer is too small */
    PMIXFAB_ERR_TRUNCATED = -8,   /**< the data end too early */
    PMIXFAB_ERR_FOREIGN = -9,     /**< the data are of another kind or another byte order */
    PMIXFAB_ERR_OLDER = -10,      /**< the data have a format version that is no longer read */
    PMIXFAB_ERR_NEWER = -11,      /**< the data have a format version newer than this library reads */
    PMIXFAB_ERR_CORRUPT = -12,    /**< a checksum does not match, or the content is inconsistent */
    PMIXFAB_ERR_BUSY = -13,       /**< in use already */
    PMIXFAB_ERR_PERM = -14,       /**< the caller has no permission */
    PMIXFAB_ERR_TIMEOUT = -15,    /**< no result within the allowed time */
    PMIXFAB_ERR_UNREACH = -16,    /**< the daemon cannot be reached */
    PMIXFAB_ERR_PARTIAL = -17,    /**< only a part of the fabric answered */
    PMIXFAB_ERR_UNSUPPORTED = -18 /**< not built in, or not offered by the other side */
};

/**
 * Return the description of an error code.
 *
 * \param err a code of enum pmixfab_err
 * \return a static string, never NULL
 */
const char *pmixfab_strerror(int err);

/**
 * Return the version of the loaded library.
 *
 * \return a static string, "MAJOR.MINOR.PATCH"
 */
const char *pmixfab_version(void);

/** Severity of a log message. */
enum pmixfab_level {
    PMIXFAB_LOG_ERROR = 0, /**< a call failed */
    PMIXFAB_LOG_WARNING,   /**< something was skipped or is not as expected */
    PMIXFAB_LOG_INFO,      /**< an event of normal operation */
    PMIXFAB_LOG_DEBUG      /**< details */
};

/**
 * A log callback. Any thread that uses the library may call it; the library holds no lock meanwhile.
 *
 * \param level  severity of the message
 * \param line   the message, one line without newline, valid during the call
 * \param cbdata the pointer given to pmixfab_set_log()
 */
typedef void (*pmixfab_log_fn)(enum pmixfab_level level, const char *line, void *cbdata);

/**
 * Install the log callback of this process. At the start there is none, and messages are dropped.
 *
 * \param fn     the callback; NULL removes it
 * \param cbdata a pointer that each call of `fn` receives
 */
void pmixfab_set_log(pmixfab_log_fn fn, void *cbdata);

/** @} */
/* ------------------------------------------------------------------------------------------------ */
/**
 * \defgroup snapshots Open a snapshot, watch a run directory
 * @{
 */

/** One snapshot of one plane. */
struct pmixfab;

#define PMIXFAB_MAX_DIMS 4      /**< largest number of values in a coordinate */
#define PMIXFAB_NO_PATH  65535u /**< cost between devices without a path */

/**
 * Open a plane's snapshot from the run directory of a fabricd on this host.
 *
 * The call maps the file and validates all of it before it returns. The daemon need not be running. If the
 * file is damaged and the daemon runs, the call asks the daemon to write the file again and waits up to 0.5
 * s.
 *
 * \param rundir the run directory; NULL: /run/fabricd
 * \param plane  name of the plane; NULL: the default plane
 * \param out    becomes the handle, to be closed with pmixfab_close(); NULL on error
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no such directory, or no such plane in it.
 *   #PMIXFAB_ERR_PERM: no permission to read it.
 *   #PMIXFAB_ERR_CONFLICT: the file holds another plane than its name says.
 *   #PMIXFAB_ERR_TRUNCATED, #PMIXFAB_ERR_FOREIGN, #PMIXFAB_ERR_OLDER, #PMIXFAB_ERR_NEWER,
 *   #PMIXFAB_ERR_CORRUPT: the file is not a snapshot that this library reads.
 */
int pmixfab_open_rundir(const char *rundir, const char *plane, struct pmixfab **out);

/**
 * Open one snapshot file. The call maps the file and validates all of it before it returns.
 *
 * \param path the file
 * \param out  becomes the handle, to be closed with pmixfab_close(); NULL on error
 * \return 0 or an error code, as pmixfab_open_rundir()
 */
int pmixfab_open_file(const char *path, struct pmixfab **out);

/**
 * Open a snapshot in memory. The bytes are copied and validated.
 *
 * \param bytes the snapshot, as pmixfab_bytes() returns it
 * \param size  number of bytes
 * \param out   becomes the handle, to be closed with pmixfab_close(); NULL on error
 * \return 0 or an error code, as pmixfab_open_rundir()
 */
int pmixfab_open_memory(const void *bytes, size_t size, struct pmixfab **out);

/**
 * List the planes published in a run directory: the default plane first, then by index. Files that are not
 * valid snapshots are skipped and logged.
 *
 * \param rundir the run directory; NULL: /run/fabricd
 * \param names  becomes the list of *n names, to be freed with pmixfab_list_free()
 * \param n      becomes the number of names
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no such directory, or no valid snapshot in it.
 */
int pmixfab_list_rundir(const char *rundir, char ***names, size_t *n);

/**
 * Free a list of names.
 *
 * \param names a list from pmixfab_list_rundir() or pmixfab_list_pmix(); NULL is allowed
 * \param n     number of names
 */
void pmixfab_list_free(char **names, size_t n);

/**
 * Report whether the snapshots in a run directory are stale. They are stale if the last sweep failed, if a
 * node's scheduler is away or itself stale, or if no fabricd runs. The call needs no PMIx server.
 *
 * \param rundir the run directory; NULL: /run/fabricd
 * \param stale  becomes 1 or 0
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no such directory.
 *   #PMIXFAB_ERR_PERM: this user may not enter the directory or connect to the daemon's control socket.
 */
int pmixfab_stale_rundir(const char *rundir, int *stale);

/** Kinds of changes of a run directory. */
enum pmixfab_change_kind {
    PMIXFAB_CHANGE_PUBLISHED = 1, /**< the plane has another snapshot: open it */
    PMIXFAB_CHANGE_GONE,          /**< the plane's snapshot was removed */
    PMIXFAB_CHANGE_STALE,         /**< the snapshots became stale, see pmixfab_stale_rundir() */
    PMIXFAB_CHANGE_CURRENT        /**< the snapshots are no longer stale */
};
/** One change of a run directory. */
struct pmixfab_change {
    uint64_t generation; /**< of the plane's snapshot; 0 if there is none, or if `plane` is "" */
    uint32_t kind;       /**< enum pmixfab_change_kind */
    char plane[64];      /**< name of the plane; "" if the change concerns all planes */
    uint32_t reserved;   /**< 0 */
};
/** A watch on one run directory. Only one thread at a time may use it. */
struct pmixfab_watch;

/**
 * Watch a run directory for changes.
 *
 * Open the watch before the planes: a snapshot that exists when the watch is opened is not reported. Wait
 * with poll() until the descriptor of pmixfab_watch_fd() is readable. Then call pmixfab_watch_next() until it
 * returns #PMIXFAB_ERR_NOTFOUND.
 *
 * The descriptor does not become readable if fabricd is killed, or if the parent folder is removed and made
 * again. A program that must detect these cases also calls pmixfab_watch_next() from time to time.
 *
 * \param rundir the run directory, which need not exist yet, but its parent folder must; NULL: /run/fabricd
 * \param out    becomes the watch, to be closed with pmixfab_watch_close(); NULL on error
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: the parent folder does not exist.
 */
int pmixfab_watch_open(const char *rundir, struct pmixfab_watch **out);

/**
 * Return the descriptor of a watch. Wait on it with poll() for POLLIN; do not read or close it. It also
 * becomes readable for unrelated events in the parent folder, so often there is no change to report.
 *
 * \param watch the watch
 * \return the descriptor, owned by the watch; -1 if `watch` is NULL
 */
int pmixfab_watch_fd(const struct pmixfab_watch *watch);

/** As pmixfab_watch_next(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_watch_next_sized(struct pmixfab_watch *watch, struct pmixfab_change *out, size_t size);

/**
 * Return the next change of a run directory. Several changes of one plane since the last call are one change.
 *
 * \param watch the watch
 * \param out   is filled with the change
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: there is no further change.
 */
static inline int pmixfab_watch_next(struct pmixfab_watch *watch, struct pmixfab_change *out)
{
    return pmixfab_watch_next_sized(watch, out, sizeof(*out));
}

/**
 * Close a watch.
 *
 * \param watch the watch; NULL is allowed
 */
void pmixfab_watch_close(struct pmixfab_watch *watch);

/**
 * Close a snapshot. Everything that was returned by reference becomes invalid.
 *
 * \param fab the handle; NULL is allowed
 */
void pmixfab_close(struct pmixfab *fab);

/** A plane as a whole. */
struct pmixfab_plane {
    uint64_t generation;    /**< the published change in which this plane last changed */
    int64_t published;      /**< time of that change, microseconds since 1970-01-01 UTC */
    uint32_t index;         /**< number of the plane, from 1, kept over restarts [PMIX_FABRIC_INDEX] */
    uint32_t is_default;    /**< 1: a request without directives is answered from this plane */
    const char *name;       /**< name [PMIX_FABRIC_PLANE] */
    const char *vendor;     /**< vendor [PMIX_FABRIC_VENDOR] */
    const char *identifier; /**< identifier [PMIX_FABRIC_IDENTIFIER] */
    const char *kind;       /**< "fat-tree-2", "dragonfly", "torus-3d", ... (docs/design/geometry.md) */
    uint32_t n_devices;     /**< number of devices, the rows of the matrix [PMIX_FABRIC_NUM_DEVICES] */
    uint32_t n_hosts;       /**< number of hosts */
    uint32_t n_switches;    /**< number of switches */
    uint32_t n_links;       /**< number of cables, those of devices included */
    uint32_t n_groups;      /**< number of groups */
    uint32_t n_unnamed;     /**< hosts named by their GUID, because no pattern matches them */
    uint32_t dims;          /**< values in a logical coordinate [PMIX_FABRIC_DIMS] */
    uint32_t shape[PMIXFAB_MAX_DIMS];          /**< extent of each, logical view [PMIX_FABRIC_SHAPE] */
    uint32_t physical_dims;                    /**< values in a physical coordinate */
    uint32_t physical_shape[PMIXFAB_MAX_DIMS]; /**< extent of each, physical view */
    uint64_t fastest_mbps;                     /**< fastest rate of a link of switches and hosts, Mb/s */
};

/** As pmixfab_plane(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_plane_sized(const struct pmixfab *fab, struct pmixfab_plane *out, size_t size);

/**
 * Describe the plane.
 *
 * \param fab the snapshot
 * \param out is filled
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
static inline int pmixfab_plane(const struct pmixfab *fab, struct pmixfab_plane *out)
{
    return pmixfab_plane_sized(fab, out, sizeof(*out));
}

/** @} */
/* ---- costs [PMIX_FABRIC_COST_MATRIX] -------------------------------------------------------------- */
/**
 * \defgroup costs Costs [PMIX_FABRIC_COST_MATRIX]
 * A cost is a number without a unit:
 * - 0 from a device to itself, #PMIXFAB_NO_PATH without a path;
 * - else the sum over the links of the cheapest path. A link at the plane's fastest rate costs 10, a slower
 *   link proportionally more. If fabricd counts hops, each link costs 1;
 * - between two devices of one host: 1 on the same card, 2 below the same PCI switch, 4 on the same NUMA
 *   node, 6 in the same processor package, 9 across packages, 5 if their places are unknown.
 *
 * Costs are symmetric.
 * @{
 */

/**
 * Return the cost between two devices. The lookup takes some nanoseconds and needs no matrix.
 *
 * \param fab  the snapshot
 * \param a    index of a device, 0 to n_devices - 1
 * \param b    index of a device
 * \param cost becomes the cost
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_cost(const struct pmixfab *fab, uint32_t a, uint32_t b, uint16_t *cost);

/**
 * Write one row of the cost matrix.
 *
 * \param fab the snapshot
 * \param a   index of a device
 * \param row is filled with the costs from device a to all devices
 * \param n   number of elements of `row`; must be n_devices
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_row(const struct pmixfab *fab, uint32_t a, uint16_t *row, size_t n);

/**
 * Write the cost matrix into memory of the caller.
 *
 * \param fab     the snapshot
 * \param cells   is filled row by row
 * \param n       number of elements of `cells`; must be n_devices squared
 * \param threads number of threads; 0: as many as processors the process may run on
 * \return 0 or an error code
 */
int pmixfab_matrix(const struct pmixfab *fab, uint16_t *cells, size_t n, unsigned threads);

/**
 * Allocate and write the cost matrix, in huge pages if the system has them. The matrix outlives the handle.
 *
 * \param fab     the snapshot
 * \param threads as for pmixfab_matrix()
 * \param cells   becomes the matrix, n_devices squared elements, row by row, to be freed with
 *                pmixfab_matrix_free(); NULL for a plane without devices
 * \return 0 or an error code
 */
int pmixfab_matrix_alloc(const struct pmixfab *fab, unsigned threads, uint16_t **cells);

/**
 * Free a matrix.
 *
 * \param cells     from pmixfab_matrix_alloc() or pmixfab_matrix_update(); NULL is allowed
 * \param n_devices number of rows
 */
void pmixfab_matrix_free(uint16_t *cells, uint32_t n_devices);

/**
 * Bring a matrix up to date with another generation of its plane.
 *
 * The result has the values that pmixfab_matrix_alloc() would write. If both generations have the same number
 * of devices, the matrix is changed in place, and mostly only different elements are written. After one
 * changed cable this is about a hundred times faster. Otherwise the old matrix is freed and *cells becomes a
 * new one. No other thread may read the matrix meanwhile.
 *
 * \param before  the snapshot that the matrix was made from
 * \param fab     the snapshot to bring it up to date with
 * \param threads as for pmixfab_matrix()
 * \param cells   the matrix, from pmixfab_matrix_alloc() or this function; unchanged on error
 * \return 0 or an error code
 */
int pmixfab_matrix_update(const struct pmixfab *before, const struct pmixfab *fab, unsigned threads,
                          uint16_t **cells);

/**
 * Return the cost between two hosts: the lowest cost between their devices, devices that are down included.
 *
 * \param fab  the snapshot
 * \param a    number of a host, 0 to n_hosts - 1
 * \param b    number of a host
 * \param cost becomes the cost; 0 if a equals b
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_host_cost(const struct pmixfab *fab, uint32_t a, uint32_t b, uint16_t *cost);

/**
 * Write the costs among some devices: cells[i * n + k] is the cost from the i-th to the k-th of them.
 *
 * \param fab     the snapshot
 * \param devices indices of the devices
 * \param n       number of devices
 * \param cells   is filled; n squared elements
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_device_costs(const struct pmixfab *fab, const uint32_t *devices, size_t n, uint16_t *cells);

/**
 * Write the costs among some hosts: cells[i * n + k] is the cost from the i-th to the k-th of them.
 *
 * \param fab   the snapshot
 * \param hosts numbers of the hosts
 * \param n     number of hosts
 * \param cells is filled; n squared elements
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_host_costs(const struct pmixfab *fab, const uint32_t *hosts, size_t n, uint16_t *cells);

/**
 * Return the switches of a cheapest path from device a to device b, in order. If several paths have the same
 * cost, each call returns the same one.
 *
 * \param fab      the snapshot
 * \param a        index of a device
 * \param b        index of a device
 * \param switches receives the indices of the switches
 * \param room     number of elements of `switches`; the plane's n_switches is always enough
 * \param n        becomes the number of switches; 0 within a host, and on a cable between two devices
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no path.
 *   #PMIXFAB_ERR_RANGE: the path has *n switches, more than `room`; the first `room` are in `switches`.
 */
int pmixfab_path(const struct pmixfab *fab, uint32_t a, uint32_t b, uint32_t *switches, size_t room,
                 uint32_t *n);

/** @} */
/* ---- devices -------------------------------------------------------------------------------------- */
/**
 * \defgroup devices Devices
 * @{
 */

/** State of a device's link; the values are those of pmix_link_state_t. */
enum pmixfab_state {
    PMIXFAB_STATE_UNKNOWN = 0, /**< unknown */
    PMIXFAB_STATE_DOWN = 1,    /**< down */
    PMIXFAB_STATE_UP = 2       /**< up */
};

/** One device. */
struct pmixfab_device {
    uint32_t index;        /**< index of the device */
    uint32_t host_index;   /**< number of its host, 0 to n_hosts - 1 */
    uint32_t switch_index; /**< its switch; UINT32_MAX: cabled to another device, or without a cable */
    uint32_t switch_port;  /**< port of that switch; 0: no switch */
    uint32_t port;         /**< port number on the device */
    uint32_t state;        /**< enum pmixfab_state */
    uint64_t node_guid,    /**< node GUID; 0: none */
        port_guid,         /**< port GUID; 0: none */
        system_guid;       /**< system image GUID; 0: none */
    uint64_t mbps;         /**< active rate, Mb/s; 0: unknown */
    const char *host;      /**< name of its host */
    const char *name;      /**< name of the device */
    uint32_t rail;         /**< rail of its switch, from 1; UINT32_MAX: none */
    uint32_t seen;         /**< bits of enum pmixfab_seen */
    char id[64]; /**< `fab://`, node GUID, `::`, system image GUID; or `ipv4://`, MAC [PMIX_DEVICE_ID] */
};

/** Sources that have seen a device. */
enum pmixfab_seen {
    PMIXFAB_SEEN_SUBNET = 1, /**< a sweep of the fabric */
    PMIXFAB_SEEN_NODE = 2,   /**< the report of its host */
    /** With #PMIXFAB_SEEN_SUBNET: the last sweeps did not see it. Its state is down, its place is kept. */
    PMIXFAB_SEEN_MISSING = 4
};

/** As pmixfab_device(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_device_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_device *out, size_t size);

/**
 * Describe a device.
 *
 * \param fab   the snapshot
 * \param index index of the device, 0 to n_devices - 1
 * \param out   is filled
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
static inline int pmixfab_device(const struct pmixfab *fab, uint32_t index, struct pmixfab_device *out)
{
    return pmixfab_device_sized(fab, index, out, sizeof(*out));
}

/** One fact about a device. fabricctl(1), "FACTS", lists the kinds and the form of their texts. */
struct pmixfab_fact {
    const char *kind;  /**< "firmware", "pci", "mtu", ... */
    const char *text;  /**< the value, in the form of its kind */
    uint32_t sources;  /**< bit i: source i reports it, see pmixfab_source_name() */
    uint32_t chosen;   /**< 1: in use; 0: a source of higher rank reports another value */
    uint32_t conflict; /**< 1: sources disagree about this kind, or another device claims the value */
    uint32_t estimate; /**< 1: not measured, or a constant of the software */
    uint32_t software; /**< 1: a software path that does not use the hardware, such as TCP */
    uint32_t yielded;  /**< 1: a GUID or MAC that the device claims, but another one holds */
};

/** As pmixfab_fact(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_fact_sized(const struct pmixfab *fab, uint32_t index, uint32_t i, struct pmixfab_fact *out,
                       size_t size);

/**
 * Return one fact about a device: call it with i = 0, 1, ... until #PMIXFAB_ERR_NOTFOUND. Facts of one kind
 * follow each other, the chosen one first.
 *
 * \param fab   the snapshot
 * \param index index of the device
 * \param i     number of the fact
 * \param out   is filled
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: the device has no fact number i.
 */
static inline int pmixfab_fact(const struct pmixfab *fab, uint32_t index, uint32_t i,
                               struct pmixfab_fact *out)
{
    return pmixfab_fact_sized(fab, index, i, out, sizeof(*out));
}

/**
 * Return the chosen text of one kind of facts.
 *
 * \param fab   the snapshot
 * \param index index of the device
 * \param kind  kind of fact
 * \return a string owned by the handle; NULL if there is no chosen fact of this kind
 */
const char *pmixfab_fact_text(const struct pmixfab *fab, uint32_t index, const char *kind);

/**
 * Return the name of a source of facts: "subnet", "verbs", "hwloc", ...
 *
 * \param i number of the source, from 0
 * \return a static string; NULL if i is past the last source
 */
const char *pmixfab_source_name(uint32_t i);

/**
 * Find a device by name.
 *
 * \param fab   the snapshot
 * \param what  a device id (also those of PMIx 7, `fab://host::device` and `net://host::interface`),
 *              `host:device`, `host:device:port`, `host` (its first device), or the GUID of a
 *              port or an HCA (`0x` and 16 digits)
 * \param index becomes the index of the device
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no such device.
 */
int pmixfab_find(const struct pmixfab *fab, const char *what, uint32_t *index);

/**
 * Find a host by name.
 *
 * \param fab  the snapshot
 * \param name name of the host
 * \param host becomes the number of the host
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no such host.
 */
int pmixfab_find_host(const struct pmixfab *fab, const char *name, uint32_t *host);

/**
 * Find a switch by name or GUID.
 *
 * \param fab   the snapshot
 * \param what  name of the switch, or its GUID (`0x` and 16 digits)
 * \param index becomes the index of the switch
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: no such switch.
 *   #PMIXFAB_ERR_CONFLICT: several switches have this name.
 */
int pmixfab_find_switch(const struct pmixfab *fab, const char *what, uint32_t *index);

/**
 * Describe a host. Its devices have the indices *first to *first + *n - 1.
 *
 * \param fab   the snapshot
 * \param i     number of the host, 0 to n_hosts - 1
 * \param name  becomes its name
 * \param first becomes the index of its first device
 * \param n     becomes the number of its devices
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_host(const struct pmixfab *fab, uint32_t i, const char **name, uint32_t *first, uint32_t *n);

/** Views of coordinates; the values are those of pmix_coord_view_t. */
enum pmixfab_view {
    PMIXFAB_LOGICAL = 1, /**< position in the recognised geometry */
    PMIXFAB_PHYSICAL = 2 /**< physical view */
};

/**
 * Return the coordinates of a device [PMIX_FABRIC_COORDINATES].
 *
 * \param fab    the snapshot
 * \param index  index of the device
 * \param view   the view
 * \param coords becomes a pointer to *dims numbers inside the handle
 * \param dims   becomes the number of values
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_coords(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view, const uint32_t **coords,
                   uint32_t *dims);

/** @} */
/* ---- nearest device ------------------------------------------------------------------------------- */
/**
 * \defgroup nearest Nearest device of a process
 * @{
 */

/** The device that a process should use. */
struct pmixfab_nearest {
    uint32_t device; /**< index; UINT32_MAX: no device of the host is up in this plane */
    /**
     * 4: attached to processors of the process, 6: in their package, 9: in another package, 5: unknown,
     * 0: the process is not bound, UINT32_MAX: no device is up.
     */
    uint32_t distance;
    uint32_t equal;  /**< devices that are up and equally near, this one included */
    uint32_t nearer; /**< index of a nearer device that is not up; UINT32_MAX: none, or no device is up */
};

/** As pmixfab_nearest(), for structs of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_nearest_sized(const struct pmixfab *fab, uint32_t host, uint32_t first_rank,
                          const char *const *cpus, size_t n, struct pmixfab_nearest *out, size_t size);

/**
 * Choose the nearest device that is up for each of n processes on a host.
 *
 * Processes are spread evenly over devices that are equally near. The choice is the same each time. Pass all
 * processes that share the host in one call. With one process a call, the spread is even only if each process
 * is bound to its own processors. The call allocates memory, takes no lock and sends no request.
 *
 * \param fab        the snapshot
 * \param host       number of the host
 * \param first_rank local rank of the first process; the others follow
 * \param cpus       processors that each process is bound to, a list as hwloc and taskset(1) write it
 *                   ("0-11,24-35"), with or without the "hwloc:" of PMIX_CPUSET. NULL or another text: the
 *                   process is not bound. NULL instead of the array: no process is bound
 * \param n          number of processes
 * \param out        is filled; n elements
 * \return 0 or an error code
 */
static inline int pmixfab_nearest(const struct pmixfab *fab, uint32_t host, uint32_t first_rank,
                                  const char *const *cpus, size_t n, struct pmixfab_nearest *out)
{
    return pmixfab_nearest_sized(fab, host, first_rank, cpus, n, out, sizeof(*out));
}

/**
 * Explain the choice of a device in words.
 *
 * \param fab    the snapshot
 * \param choice from pmixfab_nearest()
 * \param buf    receives the text
 * \param size   size of `buf`; 256 bytes are always enough
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_RANGE: the text did not fit and was cut.
 */
int pmixfab_nearest_text(const struct pmixfab *fab, const struct pmixfab_nearest *choice, char *buf,
                         size_t size);

/** @} */
/* ---- placement ------------------------------------------------------------------------------------ */
/**
 * \defgroup placement Placement of a job
 * Hosts are given by their numbers, each at most once. Where the order matters, it is that of the job's
 * ranks, with one rank on each host.
 *
 * The cost between two hosts is that of pmixfab_host_cost(), with one difference. A device that is down
 * counts only if its host has no other device.
 * @{
 */

/**
 * The value to minimise. Among choices of equal value, the lower sum of costs is better. With
 * #PMIXFAB_PLACE_SWITCHES a host that has lost devices may be preferred to a complete one.
 */
enum pmixfab_objective {
    PMIXFAB_PLACE_SUM = 0,     /**< the sum of the costs between all pairs of hosts */
    PMIXFAB_PLACE_MAX = 1,     /**< the largest cost between two of the hosts */
    PMIXFAB_PLACE_SWITCHES = 2 /**< the number of leaves that the hosts are attached to */
};

/** Quality of a placement. */
struct pmixfab_placement {
    uint64_t value;    /**< value of the objective */
    uint64_t bound;    /**< lower bound for any choice; equal to `value`: the choice is optimal */
    uint32_t n_usable; /**< candidates with a device that is not down */
    uint32_t n_down;   /**< candidates without such a device, which are not chosen */
};

/** As pmixfab_place(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_place_sized(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                        enum pmixfab_objective objective, uint32_t *hosts, struct pmixfab_placement *out,
                        size_t size);

/**
 * Choose the best n hosts for a job, in the order of pmixfab_order().
 *
 * With up to 20 usable hosts the choice is optimal, in a tree nearly always. Otherwise it is the best that
 * some milliseconds of search find (a second or two with tens of thousands of hosts). The member `bound`
 * limits how much better another choice can be. The same arguments give the same choice.
 *
 * \param fab       the snapshot
 * \param from      the candidates, in any order; NULL: all hosts of the plane
 * \param n_from    number of candidates
 * \param n         number of hosts to choose
 * \param objective the value to minimise
 * \param hosts     receives n numbers of hosts
 * \param out       is filled, also with #PMIXFAB_ERR_NOTFOUND
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: fewer than n hosts are usable, or no n hosts were found that all reach each other.
 *   #PMIXFAB_ERR_RANGE: the hosts are attached in more than 16384 different ways.
 */
static inline int pmixfab_place(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                                enum pmixfab_objective objective, uint32_t *hosts,
                                struct pmixfab_placement *out)
{
    return pmixfab_place_sized(fab, from, n_from, n, objective, hosts, out, sizeof(*out));
}

/**
 * Order hosts so that neighbours in the list are near in the fabric. The order starts with the lowest number
 * and goes on to the nearest host each time. In a mesh or torus it goes row by row, each second row
 * backwards, if that costs less.
 *
 * \param fab   the snapshot
 * \param hosts numbers of the hosts; reordered
 * \param n     number of hosts, at least 1
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_INVAL: also if a host is listed twice.
 */
int pmixfab_order(const struct pmixfab *fab, uint32_t *hosts, size_t n);

/** Communication pattern of a job's processes; all messages have one size. */
enum pmixfab_pattern {
    PMIXFAB_ALL_TO_ALL = 0, /**< each rank to each other one */
    PMIXFAB_RING = 1,       /**< each rank to the next one, the last to the first */
    PMIXFAB_DOUBLING = 2,   /**< recursive doubling: in round k rank r with rank r xor 2^k, if that exists */
    PMIXFAB_PATTERNS = 3,   /**< array size in struct pmixfab_spread; it never changes */
    /**
     * The ranks are the points of a box a x b x c, as nearly a cube as their number allows, row by row. Each
     * rank to its up to six neighbours. Only for pmixfab_traffic() and pmixfab_place_for(), as the next one.
     */
    PMIXFAB_NEIGHBOURS = 4,
    PMIXFAB_ANY_PATTERN = 5 /**< the one of the four that gets the smallest share of its best time */
};

/** Cost of a job on given hosts. Units are those of leaves, else pods or the groups of a dragonfly. */
struct pmixfab_spread {
    uint64_t cost;           /**< sum over all pairs of hosts */
    uint64_t ring_cost;      /**< sum from each host to the next one, and from the last to the first */
    uint32_t worst;          /**< largest cost between two of the hosts; #PMIXFAB_NO_PATH: no path */
    uint32_t worst_a,        /**< first host of a pair with that cost; UINT32_MAX: there is one host only */
        worst_b;             /**< second host of that pair; UINT32_MAX: there is one host only */
    uint32_t worst_switches; /**< switches that a message between those two crosses */
    uint32_t n_switches;     /**< leaves that the hosts are attached to */
    uint32_t n_units;        /**< units that the hosts are in; 0: the plane has none */
    double past_leaf[PMIXFAB_PATTERNS]; /**< share (0 to 1) of messages between hosts without common leaf */
    double past_unit[PMIXFAB_PATTERNS]; /**< share of messages between different units, or without a unit */
};

/** As pmixfab_spread(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_spread_sized(const struct pmixfab *fab, const uint32_t *hosts, size_t n,
                         struct pmixfab_spread *out, size_t size);

/**
 * Compute the cost of a job on given hosts.
 *
 * \param fab   the snapshot
 * \param hosts numbers of the hosts, in the order of ranks
 * \param n     number of hosts, at least 1
 * \param out   is filled
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_INVAL: also if a host is listed twice.
 */
static inline int pmixfab_spread(const struct pmixfab *fab, const uint32_t *hosts, size_t n,
                                 struct pmixfab_spread *out)
{
    return pmixfab_spread_sized(fab, hosts, n, out, sizeof(*out));
}

/** The load on the fabric besides the given jobs. */
enum pmixfab_sharing {
    PMIXFAB_ALONE = 0, /**< none */
    /**
     * All other hosts of the plane that are up run the same pattern, as one job in the order of their
     * numbers. Each of them sends as many bytes as a host of the job.
     */
    PMIXFAB_SHARED = 1
};

/** A job that communicates. This struct never grows. */
struct pmixfab_job {
    const uint32_t *hosts; /**< numbers of its hosts, in the order of ranks */
    size_t n;              /**< number of hosts, at least 1 */
    uint64_t bytes;        /**< size of each message; 0: 1 MiB */
    uint32_t pattern;      /**< enum pmixfab_pattern */
    uint32_t reserved;     /**< 0 */
};

/** Expected time of a communication pattern. */
struct pmixfab_traffic {
    double seconds;    /**< time of the pattern, once; 0: there are no messages */
    double least;      /**< the time if only the ports of the job's hosts limited it */
    double share;      /**< least / seconds: share (0 to 1) of the best possible rate; 1 without messages */
    uint32_t pattern;  /**< enum pmixfab_pattern; with #PMIXFAB_ANY_PATTERN the one with this share */
    uint32_t n_leaves; /**< leaves that the job's hosts are attached to */
    uint32_t link;     /**< a most loaded cable between switches, see pmixfab_link(). UINT32_MAX: the ports of
                            hosts limit the time */
    uint32_t b_to_a;   /**< 1: the load is from end b of this cable to end a; 0: from a to b */
    uint32_t n_links;  /**< cables with this load; 0: none, as `link` */
    uint32_t reserved; /**< 0 */
};

/** As pmixfab_traffic(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_traffic_sized(const struct pmixfab *fab, const struct pmixfab_job *jobs, size_t n,
                          enum pmixfab_sharing sharing, struct pmixfab_traffic *out, size_t size);

/**
 * Compute the expected time of a job's communication pattern, from the bytes on each link and its rate.
 *
 * A message of the job takes a path with the fewest links, by its destination: each switch gives each device,
 * in the order of hosts, the shortest way that fewest devices have, as OpenSM's minhop does. The bytes of
 * other jobs are spread evenly over all shortest paths. The most loaded link or port of the job gives the
 * time. A host uses its devices evenly. In recursive doubling, two ranks begin a round when both have ended
 * the round before. Latency and the rates inside of hosts do not count.
 *
 * \param fab     the snapshot
 * \param jobs    the job to assess, then other jobs that run at the same time: their bytes add to the loads,
 *                and of recursive doubling the mean of all rounds. Each host once in a job. Only the first
 * job may have #PMIXFAB_ANY_PATTERN \param n       number of jobs, at least 1 \param sharing the load besides
 * these jobs \param out     is filled eturn 0 or an error code. #PMIXFAB_ERR_INVAL: also if a job lists a
 * host twice, or has an unknown pattern. #PMIXFAB_ERR_NOTFOUND: two hosts that exchange messages have no
 * path.
 */
static inline int pmixfab_traffic(const struct pmixfab *fab, const struct pmixfab_job *jobs, size_t n,
                                  enum pmixfab_sharing sharing, struct pmixfab_traffic *out)
{
    return pmixfab_traffic_sized(fab, jobs, n, sharing, out, sizeof(*out));
}

/** As pmixfab_place_for(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_place_for_sized(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                            enum pmixfab_pattern pattern, enum pmixfab_sharing sharing, uint32_t *hosts,
                            struct pmixfab_traffic *out, size_t size);

/**
 * Choose n hosts for a job with this communication pattern, in the order of ranks, so that the time of
 * pmixfab_traffic() is short. Among equally fast choices, the lower sum of costs is better.
 *
 * The choice is never slower than that of pmixfab_place() with #PMIXFAB_PLACE_SUM or _SWITCHES. No other
 * choice is faster if the share is 1 and all candidates have ports of one rate. Otherwise it is the best that
 * some milliseconds of search find. The same arguments give the same choice.
 *
 * \param fab     the snapshot
 * \param from    the candidates, in any order; NULL: all hosts of the plane
 * \param n_from  number of candidates
 * \param n       number of hosts to choose
 * \param pattern the pattern, with messages of 1 MiB
 * \param sharing the load besides this job
 * \param hosts   receives n numbers of hosts
 * \param out     is filled
 *
eturn 0 or an error code, as pmixfab_place()
 */
static inline int pmixfab_place_for(const struct pmixfab *fab, const uint32_t *from, size_t n_from,
                                    uint32_t n, enum pmixfab_pattern pattern, enum pmixfab_sharing sharing,
                                    uint32_t *hosts, struct pmixfab_traffic *out)
{
    return pmixfab_place_for_sized(fab, from, n_from, n, pattern, sharing, hosts, out, sizeof(*out));
}

/** @} */
/* ---- switches, links, groups ---------------------------------------------------------------------- */
/**
 * \defgroup switches Switches, links, groups In a rail-optimised fabric, leaves that serve the same hosts
 * form a unit. Each leaf of the unit is one rail of it. Units and rails are numbered from 1 and keep their
 * numbers. A rail without units is the whole plane. Its hosts have their other devices in other planes.
 * @{
 */

/** One switch. */
struct pmixfab_switch {
    uint32_t index;    /**< index of the switch */
    uint32_t level;    /**< 0: carries devices or is nearest to them; counts upwards in trees */
    uint32_t n_ports;  /**< number of ports */
    uint32_t n_hosts;  /**< hosts with a device on it */
    uint64_t guid;     /**< node GUID */
    const char *name;  /**< name */
    uint32_t missing;  /**< 1: the last sweeps did not see it; its place is kept for a while */
    uint32_t unit;     /**< the unit that it is a leaf of; UINT32_MAX: none */
    uint32_t rail;     /**< its rail in that unit; UINT32_MAX: none */
    char id[24];       /**< 0x and 16 hexadecimal digits [PMIX_FABRIC_SWITCH] */
    uint32_t reserved; /**< 0 */
};

/** As pmixfab_switch(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_switch_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_switch *out, size_t size);

/**
 * Describe a switch.
 *
 * \param fab   the snapshot
 * \param index index of the switch, 0 to n_switches - 1
 * \param out   is filled
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
static inline int pmixfab_switch(const struct pmixfab *fab, uint32_t index, struct pmixfab_switch *out)
{
    return pmixfab_switch_sized(fab, index, out, sizeof(*out));
}

/** Kinds of ends of a cable. */
enum pmixfab_end_kind {
    PMIXFAB_END_OTHER = 0,  /**< none of the others; in a snapshot of fabricd 0.1 also the last two */
    PMIXFAB_END_DEVICE,     /**< a device */
    PMIXFAB_END_SWITCH,     /**< a switch */
    PMIXFAB_END_ROUTER,     /**< a router, which has no index */
    PMIXFAB_END_AGGREGATION /**< the aggregation node of a switch (SHARP), which has no index */
};
/** One end of a cable. */
struct pmixfab_end {
    uint32_t is_switch; /**< 1: a switch */
    uint32_t index;     /**< of the switch or the device; UINT32_MAX: neither */
    uint32_t port;      /**< port number */
    uint64_t guid;      /**< node GUID */
    uint32_t kind;      /**< enum pmixfab_end_kind */
};
/** One cable. */
struct pmixfab_link {
    struct pmixfab_end a, /**< one end */
        b;                /**< the other end */
    uint64_t mbps;        /**< rate, Mb/s */
    uint32_t cost;        /**< cost of the link */
    uint32_t missing;     /**< 1: the switch or device at one of its ends is missing */
};

/** As pmixfab_link(), for a struct of `size` bytes (see "Structs" in pmixfab.h). */
int pmixfab_link_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_link *out, size_t size);

/**
 * Describe a cable.
 *
 * \param fab   the snapshot
 * \param index index of the cable, 0 to n_links - 1
 * \param out   is filled
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
static inline int pmixfab_link(const struct pmixfab *fab, uint32_t index, struct pmixfab_link *out)
{
    return pmixfab_link_sized(fab, index, out, sizeof(*out));
}

/**
 * Return the hosts of a group [PMIX_FABRIC_GROUPS].
 *
 * \param fab   the snapshot
 * \param g     number of the group, 0 to n_groups - 1
 * \param hosts becomes a pointer to *n numbers of hosts inside the handle
 * \param n     becomes the number of hosts
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_group(const struct pmixfab *fab, uint32_t g, const uint32_t **hosts, uint32_t *n);

/**
 * Return the name of a group. It is the name of its leaf, or "unit3" for unit number 3. For a pod or a
 * dragonfly group it is "pod2" or "group2", with the first number of its coordinates. The name stays the same
 * when other groups appear or disappear; the number of the group does not.
 *
 * \param fab the snapshot
 * \param g   number of the group
 * \return a string owned by the handle; "" in a snapshot of fabricd 0.1; NULL if there is no such group
 */
const char *pmixfab_group_name(const struct pmixfab *fab, uint32_t g);

/**
 * Return the switch that the hosts of a group are attached to.
 *
 * \param fab the snapshot
 * \param g   number of the group
 * \param sw  becomes the index of the switch; UINT32_MAX for a unit, a pod or a dragonfly's group, which have
 *            several, and for hosts without a switch
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_group_switch(const struct pmixfab *fab, uint32_t g, uint32_t *sw);

/**
 * Return one device that is cabled to another leaf than the devices of its name in its unit. Call the
 * function with i = 0, 1, ... until #PMIXFAB_ERR_NOTFOUND. The devices come in the order of their indices.
 *
 * \param fab    the snapshot
 * \param i      number of the misplaced device, from 0
 * \param device becomes the index of the device
 * \param sw     becomes the index of the switch that the others are on; UINT32_MAX: they are on several
 * \param unit   becomes the number of its host's unit
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: there is no misplaced device number i.
 */
int pmixfab_misplaced(const struct pmixfab *fab, uint32_t i, uint32_t *device, uint32_t *sw, uint32_t *unit);

/**
 * Return all groups as the string of the standard, "0:n1,n2;1:n3" [PMIX_FABRIC_GROUPS].
 *
 * \param fab the snapshot
 * \param out becomes the string, to be freed with free()
 * \return 0 or an error code
 */
int pmixfab_groups_string(const struct pmixfab *fab, char **out);

/**
 * Write the shape of the plane as the string of the standard, for example "4x18x36".
 *
 * \param fab  the snapshot
 * \param view the view
 * \param buf  receives the string
 * \param size size of `buf` in bytes
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_RANGE: the string does not fit.
 */
int pmixfab_shape_string(const struct pmixfab *fab, enum pmixfab_view view, char *buf, size_t size);

/**
 * Return the bytes of a snapshot, as pmixfab_open_memory() reads them.
 *
 * \param fab   the snapshot
 * \param bytes becomes a pointer to *size bytes inside the handle
 * \param size  becomes the number of bytes
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_bytes(const struct pmixfab *fab, const void **bytes, size_t *size);

/** @} */
/* ---- over PMIx ------------------------------------------------------------------------------------ */
/**
 * \defgroup pmix Over PMIx
 * These functions ask the PMIx server that this process is connected to, after PMIx_Init(), PMIx_tool_init(),
 * or PMIx_tool_attach_to_server() in a server. They block until the answer arrives, return
 * #PMIXFAB_ERR_TIMEOUT after 30 s, #PMIXFAB_ERR_UNREACH without a server and #PMIXFAB_ERR_UNSUPPORTED if the
 * server is not a fabricd. Do not call them on PMIx's progress thread.
 * @{
 */

struct pmix_fabric_s;
struct pmix_info;

/** pmix_byte_object_t, in fabricd's answers: the snapshot. */
#define PMIXFAB_KEY_SNAPSHOT "pmixfab.snapshot"
/** string, in fabricd's answers: the snapshot's file on fabricd's host. */
#define PMIXFAB_KEY_SNAPSHOT_PATH "pmixfab.snapshot.path"
/** bool, in the answer to a query: the last sweep failed. */
#define PMIXFAB_KEY_STALE "pmixfab.stale"
/** uint64_t, in fabricd's answers: the generation. */
#define PMIXFAB_KEY_GENERATION "pmixfab.generation"
/** string, of a device: "subnet", "node" or "subnet,node". */
#define PMIXFAB_KEY_SEEN "pmixfab.seen"
/**
 * uint64_t, in a job's information: the generation. The PMIx library keeps no foreign key there that begins
 * with "pmix". With PMIx 5.0 to 6.1 this key and the next two are absent (docs/versions.md).
 */
#define PMIXFAB_KEY_JOB_GENERATION "fabricd.generation"
/**
 * Array of uint32_t, in a job's information: the logical coordinates of all ranks, PMIX_FABRIC_DIMS numbers
 * for each rank. UINT32_MAX: unknown.
 */
#define PMIXFAB_KEY_JOB_COORDINATES "fabricd.coordinates"
/** PMIX_FABRIC_DEVICE of the device to use, in a job's information, for a rank on the PMIx server's host. */
#define PMIXFAB_KEY_JOB_NEAREST "fabricd.nearest"
/**
 * pmix_byte_object_t: the inventory of a host. PMIx_server_collect_inventory() returns it,
 * PMIx_server_deliver_inventory() takes it.
 */
#define PMIXFAB_KEY_INVENTORY "pmixfab.inventory"

/**
 * Open a plane's snapshot from the connected PMIx server. On the daemon's host the call maps the snapshot's
 * file, elsewhere the server sends the bytes. It takes one or two round trips.
 *
 * \param directives those of PMIx_Fabric_register(), an array of pmix_info_t (PMIX_FABRIC_PLANE,
 *                   PMIX_FABRIC_VENDOR, PMIX_FABRIC_IDENTIFIER, PMIX_FABRIC_INDEX); NULL: the default plane
 * \param ndirs      number of directives
 * \param out        becomes the handle, to be closed with pmixfab_close(); NULL on error
 * \return 0 or an error code
 */
int pmixfab_open_pmix(const struct pmix_info *directives, size_t ndirs, struct pmixfab **out);

/**
 * List the planes that the connected PMIx server serves, the default plane first.
 *
 * \param names becomes the list of *n names, to be freed with pmixfab_list_free(); NULL on error
 * \param n     becomes the number of names; 0 on error
 * \return 0 or an error code
 */
int pmixfab_list_pmix(char ***names, size_t *n);

/**
 * Report whether the connected PMIx server serves old data because its last sweep failed.
 *
 * \param stale becomes 1 or 0
 * \return 0 or an error code
 */
int pmixfab_stale_pmix(int *stale);

/**
 * Register a fabric object, as PMIx_Fabric_register() does, and add the cost matrix, which PMIx itself never
 * sends to another process. The info array then holds the scalars, the strings and a valid
 * PMIX_FABRIC_COST_MATRIX pointer. Update and release the object only with pmixfab_update() and
 * pmixfab_deregister(). Standard: "PMIx_Fabric_register".
 *
 * \param fabric     the object; its index, info and ninfo are filled, its name stays the caller's
 * \param directives as for pmixfab_open_pmix()
 * \param ndirs      number of directives
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_INVAL: also if the object is registered already.
 */
int pmixfab_register(struct pmix_fabric_s *fabric, const struct pmix_info *directives, size_t ndirs);

/**
 * Bring a registered object up to date. The matrix is changed in place, or freed and replaced if the number
 * of devices has changed: no other thread may read it meanwhile. If nothing has changed, and on error, the
 * object and its pointers stay as they are. Standard: "PMIx_Fabric_update".
 *
 * \param fabric an object of pmixfab_register()
 * \return 0 or an error code
 */
int pmixfab_update(struct pmix_fabric_s *fabric);

/**
 * Release everything that pmixfab_register() filled in. Standard: "PMIx_Fabric_deregister".
 *
 * \param fabric an object of pmixfab_register()
 * \return 0 or #PMIXFAB_ERR_INVAL
 */
int pmixfab_deregister(struct pmix_fabric_s *fabric);

/**
 * Return the snapshot of a registered object.
 *
 * \param fabric the object
 * \return the snapshot, owned by the object; NULL if pmixfab_register() did not make the object
 */
const struct pmixfab *pmixfab_of(const struct pmix_fabric_s *fabric);

/** @} */
/* ---- relay: for another PMIx server ---------------------------------------------------------------- */
/**
 * \defgroup relay Relay: for another PMIx server
 * A PMIx server, for example that of a workload manager on a node, forwards the fabric requests of its
 * clients to the scheduler's fabricd and raises the events of its changes. Set pmixfab_server_fabric() in the
 * server's module, and call pmixfab_relay_open() after PMIx_server_init() and pmixfab_relay_close() before
 * PMIx_server_finalize(). Do not call pmixfab_relay_open(), pmixfab_relay_close() and pmixfab_tell_job() on
 * PMIx's progress thread.
 *
 * Any number of requests share one connection. Each request is answered once. After the deadline, or after
 * the caller's PMIX_TIMEOUT if that is shorter, the answer is PMIX_ERR_TIMEOUT. If there is no connection,
 * the answer is PMIX_ERR_UNREACH at once. If the connection breaks, requests are sent again while their
 * deadline lasts.
 * @{
 */

/**
 * Open the relay and make the first attempt to connect. If it fails, the relay retries with growing pauses;
 * the call returns 0 all the same.
 *
 * If a node's fabricd has no PMIx server, the run directory has snapshots and no fabricd.uri. Then the relay
 * answers requests from these snapshots in this process and announces their changes.
 *
 * \param scheduler the PMIx URI of a fabricd, or the run directory of one on this host, which is read again
 *                  for each connection; NULL: /run/fabricd
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_BUSY: the relay is open already.
 *   #PMIXFAB_ERR_UNREACH: PMIx is not initialized.
 *   #PMIXFAB_ERR_SYNTAX: a URI of another kind.
 *   #PMIXFAB_ERR_UNSUPPORTED: not with this version of the PMIx library (docs/relay.md).
 */
int pmixfab_relay_open(const char *scheduler);

/**
 * Set the deadline for requests that arrive after this call. At the start it is 10 s.
 *
 * \param milliseconds 1 to 3600000
 * \return 0 or #PMIXFAB_ERR_RANGE
 */
int pmixfab_relay_deadline(unsigned milliseconds);

/** Close the relay. Answer all pending requests with PMIX_ERR_UNREACH. */
void pmixfab_relay_close(void);

/**
 * Store launch information for a job in this PMIx server. Each process of the job finds it with its first
 * PMIx_Get(); docs/design/component.md lists the keys.
 *
 * This function is for a server whose node has no run directory. Elsewhere the component pmdl does the same.
 * If a job already has the information, it is not changed. Call it after PMIx_server_register_nspace(), which
 * must have stored where the ranks are, and before the job's processes start. It sends no request.
 *
 * \param nspace the job
 * \param host   this node's name in the job; NULL: the name of gethostname()
 * \param planes open snapshots, the default plane first; used during the call only
 * \param n      number of planes
 * \return 0 or an error code.
 *   #PMIXFAB_ERR_NOTFOUND: the planes have no host of the job.
 *   #PMIXFAB_ERR_UNREACH: PMIx is not initialized.
 *   #PMIXFAB_ERR_IO: the PMIx library rejects the information.
 *   #PMIXFAB_ERR_UNSUPPORTED: this PMIx library (5.0 before 5.0.7) passes it to no process.
 */
int pmixfab_tell_job(const char *nspace, const char *host, const struct pmixfab *const planes[], uint32_t n);

#ifdef PMIx_SERVER_API_H
/**
 * The fabric function for a server's module. Declared only if <pmix_server.h> is included before this header.
 *
 * \param requestor  the client
 * \param op         register or update
 * \param directives those of the client
 * \param ndirs      number of directives
 * \param cbfunc     called once with the answer
 * \param cbdata     passed to `cbfunc`
 * \return PMIX_SUCCESS, then `cbfunc` is called; else an error, and it is not called
 */
pmix_status_t pmixfab_server_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                    const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t cbfunc,
                                    void *cbdata);

/**
 * Answer queries for fabric keys. A server with a query function of its own calls this for the keys that it
 * does not support. A server without a query function does not need it. Declared as pmixfab_server_fabric().
 *
 * \param requestor the client
 * \param queries   the queries
 * \param nqueries  number of queries
 * \param cbfunc    called once with the answer
 * \param cbdata    passed to `cbfunc`
 * \return PMIX_SUCCESS, then `cbfunc` is called; else an error, and it is not called
 */
pmix_status_t pmixfab_server_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t nqueries,
                                   pmix_info_cbfunc_t cbfunc, void *cbdata);
#endif

/** @} */

#ifdef __cplusplus
}
#endif
#endif

"""conformance - docs/conformance.md, made from what the tests' assertions have shown.

usage: conformance.py [--write]

Each assertion of conforms.py writes down what it has shown, a module of tests at a time. What all modules showed is kept in
test/data/conformance.txt, a line each: name, kind, how, whom, version, module; the page is that and the texts below. Without
--write: says whether both are as the modules' last runs say, and whether each row is shown, status 1 if not. With: rewrites
both. Modules that were not run whole, or skipped something that is served, have no say: their lines stay. Lines of other
versions of the library come from their build folders: ./dev --pmix PREFIX test, then --write with FABRICD_BUILD set to it.
"""
import os
import sys

import conforms

LINES = os.path.join(conforms.ROOT, "test", "data", "conformance.txt")
PAGE = os.path.join(conforms.ROOT, "docs", "conformance.md")
VERSION = "4.2.2"  # of the tables
NOT_PROMISED = "not promised"  # a row that nothing shows begins its remark with it

INTRODUCTION = """# What of the standard is served

PMIx Standard, chapter "Fabric Support Definitions", and what a host does at a job's start and for its processes.
**All tables are of PMIx 4.2.2**, Debian 12's, on the other side; of other versions see [versions.md](versions.md).
This page is made from what the tests' assertions have compared (`python3 -B test/integration/conformance.py --write` after
`./dev test`): an assertion that holds writes down name, kind, way, caller and version. A test fails when the page is not what they
say. A dash: not shown by any test, so not promised.

- **kind**: a *key* is asked for by itself, or stands in a fabric object or in what a job is told (what stands in an array of a
  device counts only where it was asked for, too, but for the coordinates); a *directive* goes with a call, a *qualifier*
  with a question; a *function* is called by a program, or (`pmix_server_..._fn_t`) by the library's server for one
- **in process**: a server's own process, through the component `pmix_mca_pnet_fabricd.so`, or fabricd's own
- **tool**: connected to fabricd; **client**: started by fabric-host; **launched**: by a launcher that has
  the component `pmix_mca_pmdl_fabricd.so`
- **relay**: connected to a server that passes requests on to fabricd
- `launch`: launch information, found by `PMIx_Get` with `PMIX_OPTIONAL`, so nobody is asked
- `register`: in the info array of `PMIx_Fabric_register` and `PMIx_Fabric_update`, or a directive of it; `query`:
  `PMIx_Query_info`; `get`: `PMIx_Get`, see below; `libpmixfab`: a tool that links libpmixfab; `pattrs`: told by `pattrs --host`
- **also with**: other versions of the library with which assertions about the row held, in some of these ways
- **code**: where a function is done; those without an entry there the library does by itself

A call may return -157, `PMIX_OPERATION_SUCCEEDED`: it is done, and no callback comes. In a server's own process
`PMIx_Fabric_update` returns it always, and in a tool `PMIx_Fabric_deregister_nb`. It is no error.
"""

FUNCTIONS = [
    ("PMIx_Fabric_register", "function", "", ""),
    ("PMIx_Fabric_register_nb", "function", "", ""),
    ("PMIx_Fabric_update", "function", "", "of the plane that the caller was given, see below. In process it returns -157, "
     "`PMIX_OPERATION_SUCCEEDED`: done"),
    ("PMIx_Fabric_update_nb", "function", "", ""),
    ("PMIx_Fabric_deregister", "function", "", ""),
    ("PMIx_Fabric_deregister_nb", "function", "", ""),
    ("pmix_server_fabric_fn_t", "function", "", ""),
    ("pmix_fabric_operation_t", "structure", "", "`PMIX_FABRIC_REQUEST_INFO`, `PMIX_FABRIC_UPDATE_INFO`"),
    ("PMIX_SERVER_SCHEDULER", "directive", "bool", "of `PMIx_server_init`: with it a process has the fabric calls itself, without it they "
     "go to its host"),
]
EVENTS = [
    ("PMIX_FABRIC_UPDATE_PENDING", "event", "", "with `PMIX_FABRIC_INDEX`, `PMIX_FABRIC_PLANE`, `pmixfab.generation`"),
    ("PMIX_FABRIC_UPDATED", "event", "", "likewise"),
    ("PMIX_FABRIC_UPDATE_ENDPOINTS", "event", "", "of a job that was given endpoints, on a node with a snapshot: with the new ones of each rank"),
]
FABRIC = [
    ("PMIX_FABRIC_COST_MATRIX", "key", "pointer", "does not travel: a tool gets it through libpmixfab"),
    ("PMIX_FABRIC_COST_MATRIX", "directive", "bool", "that it is in the object, in process"),
    ("PMIX_FABRIC_GROUPS", "key", "string", "of the plane"),
    ("PMIX_FABRIC_GROUPS", "key of all planes", "string", "no plane named: numbered through"),
    ("PMIX_FABRIC_GROUPS", "directive", "bool", "that it is in the object"),
    ("PMIX_FABRIC_PLANE", "key", "string; as a key an array of them", "with a plane, index or switch as a qualifier that plane's name"),
    ("PMIX_FABRIC_PLANE", "directive", "string", ""),
    ("PMIX_FABRIC_PLANE", "qualifier", "string", ""),
    ("PMIX_FABRIC_SWITCH", "key", "array of string", "of the plane; in a device its own"),
    ("PMIX_FABRIC_SWITCH", "key of all planes", "array of string", "no plane named"),
    ("PMIX_FABRIC_SWITCH", "directive", "string", "the plane with that switch"),
    ("PMIX_FABRIC_SWITCH", "qualifier", "string", "the plane with that switch; of devices and their number, those on it"),
    ("PMIX_FABRIC_VENDOR", "key", "string", ""),
    ("PMIX_FABRIC_VENDOR", "directive", "string", ""),
    ("PMIX_FABRIC_IDENTIFIER", "key", "string", ""),
    ("PMIX_FABRIC_IDENTIFIER", "directive", "string", ""),
    ("PMIX_FABRIC_INDEX", "key", "size_t", "from 1"),
    ("PMIX_FABRIC_INDEX", "directive", "size_t", ""),
    ("PMIX_FABRIC_INDEX", "qualifier", "size_t", ""),
    ("PMIX_FABRIC_NUM_DEVICES", "key", "size_t", "of the plane; with a switch or a node, of those"),
    ("PMIX_FABRIC_NUM_DEVICES", "key of all planes", "size_t", "no plane named"),
    ("PMIX_FABRIC_NUM_DEVICES", "directive", "bool", "that it is in the object"),
    ("PMIX_FABRIC_DIMS", "key", "uint32_t", "of the plane that is named"),
    ("PMIX_FABRIC_DIMS", "key of all planes", "array of uint32_t", "no plane named, also where there is only one"),
    ("PMIX_FABRIC_DIMS", "directive", "bool", "that it is in the object"),
    ("PMIX_FABRIC_SHAPE", "key", "array of uint32_t", ""),
    ("PMIX_FABRIC_SHAPE", "key of all planes", "array of pairs", "see below"),
    ("PMIX_FABRIC_SHAPE", "directive", "bool", "that it is in the object"),
    ("PMIX_FABRIC_SHAPE_STRING", "key", "string", ""),
    ("PMIX_FABRIC_SHAPE_STRING", "key of all planes", "array of pairs", "see below"),
    ("PMIX_FABRIC_SHAPE_STRING", "directive", "bool", "that it is in the object"),
]
NODE = [
    ("PMIX_FABRIC_DEVICES", "key", "array of PMIX_FABRIC_DEVICE", "of a node, a switch, or the server's own node"),
    ("PMIX_FABRIC_DEVICES", "directive", "bool", "all devices of the plane"),
    ("PMIX_FABRIC_COORDINATES", "key", "array of pmix_geometry_t", "both spellings: `pmix.fab.coord` (header), `pmix.fab.coords` (standard). In a job's information one pmix_coord_t of three numbers, see below"),
    ("PMIX_FABRIC_DEVICE", "key", "array of pmix_info_t", "by `PMIX_DEVICE_ID`, by name and host, or by plane and index"),
    ("PMIX_HOSTNAME", "key", "string", "of a device. As a key of `PMIx_Get` it is refused, as the next two"),
    ("PMIX_HOSTNAME", "qualifier", "string", "with or without a domain"),
    ("PMIX_HOSTNAME", "directive", "string", "of register: the plane in which it is, and with `PMIX_FABRIC_DEVICES` these only"),
    ("PMIX_NODEID", "key", "uint32_t", "of a device: the number of the host in its plane, in natural order of the names"),
    ("PMIX_NODEID", "qualifier", "uint32_t", ""),
    ("PMIX_NODEID", "directive", "uint32_t", "likewise"),
    ("PMIX_DEVICE_ID", "key", "string", "the id that `PMIx_Compute_distances` gives the same device"),
    ("PMIX_DEVICE_ID", "qualifier", "string", ""),
    ("PMIX_DEVICE_ID", "directive", "string", "likewise"),
    ("PMIX_FABRIC_DEVICE_INDEX", "key", "uint32_t", "row of the plane's matrix"),
    ("PMIX_FABRIC_DEVICE_INDEX", "qualifier", "uint32_t", "with a plane"),
    ("PMIX_FABRIC_DEVICE_INDEX", "directive", "uint32_t", "likewise"),
    ("PMIX_FABRIC_DEVICE_NAME", "key", "string", ""),
    ("PMIX_FABRIC_DEVICE_NAME", "qualifier", "string", "with a host"),
    ("PMIX_FABRIC_DEVICE_NAME", "directive", "string", "likewise"),
    ("PMIX_NODE_INFO", "qualifier", "bool", "of the node that is named, or of the server's own"),
    ("PMIX_QUERY_REFRESH_CACHE", "qualifier", "bool", "each answer is of what is served now"),
    ("PMIX_QUERY_REFRESH_CACHE", "directive", "bool", "likewise"),
    ("PMIX_GET_REFRESH_CACHE", "qualifier", "bool", "likewise"),
    ("PMIX_GET_REFRESH_CACHE", "directive", "bool", "likewise"),
    ("PMIX_TIMEOUT", "qualifier", "int", "fabricd does not wait; a relay ends its wait for the scheduler then"),
    ("pmixfab.view", "qualifier", "uint8_t or string", "of the fabric's dimensions, shape and coordinates: `logical` (1), `physical` (2)"),
    ("PMIX_FABRIC_DEVICE_VENDOR", "key", "string", "of the device, as its host says; else the plane's"),
    ("PMIX_FABRIC_DEVICE_VENDORID", "key", "string", "the vendor's number of the product (PCI device id); else the vendor's own number. By its host"),
    ("PMIX_FABRIC_DEVICE_BUS_TYPE", "key", "string", "by its host; must be there: else `unknown`"),
    ("PMIX_FABRIC_DEVICE_ADDRESS", "key", "string", "InfiniBand: port GUID; Ethernet: MAC"),
    ("PMIX_FABRIC_DEVICE_COORDINATES", "key", "pmix_geometry_t", "in `PMIX_FABRIC_DEVICE`"),
    ("PMIX_FABRIC_DEVICE_SPEED", "key", "size_t", "bits per second; left out where unknown"),
    ("PMIX_FABRIC_DEVICE_STATE", "key", "pmix_link_state_t", ""),
    ("PMIX_FABRIC_DEVICE_TYPE", "key", "string", "`InfiniBand`, `Ethernet`; left out where unknown"),
    ("PMIX_FABRIC_DEVICE_DRIVER", "key", "string", "by its host"),
    ("PMIX_FABRIC_DEVICE_FIRMWARE", "key", "string", "by its host"),
    ("PMIX_FABRIC_DEVICE_MTU", "key", "size_t", "bytes; by its host"),
    ("PMIX_FABRIC_DEVICE_PCI_DEVID", "key", "string", "by its host"),
    ("pmixfab.seen", "key", "string", "who knows of the device: `subnet`, `node` (its host), or `subnet,node`; `missing` in place of "
     "`subnet`: the last sweeps have not seen it"),
    ("PMIX_FABRIC_ENDPT", "key", "array of pmix_endpoint_t", "of a rank, or of a node: per device its id, its name, and the number as text; "
     "where the starter asked for endpoints"),
    ("PMIX_SWITCH_PEERS", "key", "array of pmix_info_t", "of a rank: per device its id, its switch, the job's ranks below that"),
]
LAUNCH = [
    ("PMIx_server_setup_application", "function", "", "the component pnet hands out what the nodes of the job will need "
     "([design/launch.md](design/launch.md))"),
    ("PMIx_server_setup_local_support", "function", "", "and does a node's part with it"),
    ("PMIx_server_setup_fork", "function", "", "sets the variables that came with it"),
    ("PMIx_generate_regex", "function", "", "the library's own; what it makes of names is read, compressed or not"),
    ("PMIx_generate_ppn", "function", "", "likewise, of ranks"),
    ("PMIX_SETUP_APP_ENVARS", "directive", "bool", "variables of the environment"),
    ("PMIX_SETUP_APP_NONENVARS", "directive", "bool", "the fabric's data"),
    ("PMIX_SETUP_APP_ALL", "directive", "bool", "both, as where nothing is said"),
    ("PMIX_PARENT_ID", "directive", "pmix_proc_t", "where the parent's processes are comes along"),
    ("PMIX_PARENT_ID", "key", "pmix_proc_t", "a process that was spawned finds it"),
    ("PMIX_ALLOC_NETWORK", "directive", "array of pmix_info_t", "the header's newer name: `PMIX_ALLOC_FABRIC`. `_TYPE`, `_QOS` "
     "and `PMIX_ALLOC_BANDWIDTH` are left out, or refused "
     "with `PMIX_ERR_NOT_SUPPORTED` where they are required"),
    ("PMIX_ALLOC_NETWORK_ID", "directive", "string", "the job's key under which its plane is found"),
    ("PMIX_ALLOC_NETWORK_PLANE", "directive", "string", "`PMIX_ERR_NOT_FOUND` where it is required and there is none of that name"),
    ("PMIX_ALLOC_NETWORK_ENDPTS", "directive", "size_t", "endpoints of each process on each device, from the plane's pool; "
     "`PMIX_ERR_OUT_OF_RESOURCE` where that has too few left"),
    ("PMIX_ALLOC_NETWORK_ENDPTS_NODE", "directive", "size_t", "likewise of each node"),
    ("PMIX_ALLOC_NETWORK_SEC_KEY", "directive", "bool", "256 random bits, in the variable `FABRICD_SECURITY_KEY` of each process"),
]
STRUCTURES = [
    ("pmix_fabric_t", "structure", "", ""),
    ("pmix_geometry_t", "structure", "", "both views; with the qualifier `pmixfab.view` one. `uuid` is the device id, `fabric` the plane's index"),
    ("pmix_coord_t", "structure", "", ""),
    ("pmix_coord_view_t", "structure", "", "the standard names no attribute to ask for a view: `pmixfab.view`, uint8_t or `logical`, `physical`"),
    ("PMIX_COORD_VIEW_UNDEF", "constant", "", "no coordinates have it; asked for it is refused with `PMIX_ERR_BAD_PARAM`"),
    ("PMIX_COORD_LOGICAL_VIEW", "constant", "", "the default"),
    ("PMIX_COORD_PHYSICAL_VIEW", "constant", "", ""),
    ("pmix_link_state_t", "structure", "", ""),
    ("PMIX_LINK_UP", "constant", "", ""),
    ("PMIX_LINK_DOWN", "constant", "", ""),
    ("PMIX_LINK_STATE_UNKNOWN", "constant", "", "of a port whose state nobody tells"),
    ("pmix_endpoint_t", "structure", "", ""),
]
HOSTING = [
    ("PMIx_server_register_nspace", "function", "", "by fabric-host, as all of this table, and by launchers; see [design/host.md](design/host.md)"),
    ("PMIx_server_deregister_nspace", "function", "", "of a launcher's server; fabric-host does it at each job's end"),
    ("PMIx_server_register_client", "function", "", ""),
    ("pmix_server_client_connected_fn_t", "function", "", ""),
    ("pmix_server_client_finalized_fn_t", "function", "", ""),
    ("pmix_server_abort_fn_t", "function", "", ""),
    ("pmix_server_fencenb_fn_t", "function", "", "asked only where a participant is not there: `PMIX_ERR_PARTIAL_SUCCESS`; else the library completes it"),
    ("pmix_server_connect_fn_t", "function", "", "likewise"),
    ("pmix_server_disconnect_fn_t", "function", "", "likewise"),
    ("pmix_server_dmodex_req_fn_t", "function", "", "asked only of processes that are not there: `PMIX_ERR_NOT_FOUND`, as without it"),
    ("PMIx_Put", "function", "", ""),
    ("PMIx_Commit", "function", "", ""),
    ("PMIx_Fence", "function", "", ""),
    ("PMIx_Fence_nb", "function", "", ""),
    ("PMIX_COLLECT_DATA", "directive", "bool", "the same with and without it: all processes are on one host"),
    ("PMIX_TIMEOUT", "directive", "int", "of a fence, a get, a lookup that waits; publish and unpublish wait for nothing"),
    ("PMIx_Publish", "function", "", "all of its keys, or none: `PMIX_ERR_DUPLICATE_KEY`, `PMIX_ERR_OUT_OF_RESOURCE`"),
    ("PMIx_Publish_nb", "function", "", ""),
    ("PMIx_Lookup", "function", "", ""),
    ("PMIx_Lookup_nb", "function", "", ""),
    ("PMIx_Unpublish", "function", "", "of another's data: `PMIX_ERR_NO_PERMISSIONS`"),
    ("PMIx_Unpublish_nb", "function", "", ""),
    ("pmix_server_publish_fn_t", "function", "", ""),
    ("pmix_server_lookup_fn_t", "function", "", ""),
    ("pmix_server_unpublish_fn_t", "function", "", ""),
    ("PMIX_RANGE", "directive", "pmix_data_range_t", "of the range that is named, session without one; not custom"),
    ("PMIX_PERSISTENCE", "directive", "pmix_persistence_t", "app without one; app, session and indefinite survive a restart"),
    ("PMIX_WAIT", "directive", "int", "so many values, 0 all"),
    ("PMIx_Get", "function", "", ""),
    ("PMIx_Abort", "function", "", ""),
    ("PMIx_Spawn", "function", "", "on this host"),
    ("PMIx_Spawn_nb", "function", "", ""),
    ("pmix_server_spawn_fn_t", "function", "", "directives that are not in this table: `PMIX_ERR_NOT_SUPPORTED` where required"),
    ("PMIX_SPAWNED", "key", "bool", ""),
    ("PMIX_WDIR", "directive", "string", ""),
    ("PMIX_SET_ENVAR", "directive", "pmix_envar_t", "of a job and of an application, as the next four"),
    ("PMIX_ADD_ENVAR", "directive", "pmix_envar_t", ""),
    ("PMIX_UNSET_ENVAR", "directive", "string", ""),
    ("PMIX_PREPEND_ENVAR", "directive", "pmix_envar_t", ""),
    ("PMIX_APPEND_ENVAR", "directive", "pmix_envar_t", ""),
    ("PMIX_JOB_RECOVERABLE", "directive", "bool", "the others go on when one fails"),
    ("PMIX_NOTIFY_COMPLETION", "directive", "bool", "the end of a job is announced always"),
    ("PMIX_EVENT_JOB_END", "event", "", "with `PMIX_EVENT_AFFECTED_PROC` (the first that failed, or all), `PMIX_JOB_TERM_STATUS`, `PMIX_EXIT_CODE`"),
    ("PMIx_IOF_pull", "function", "", "what is written from then on"),
    ("PMIx_IOF_push", "function", "", "with a callback: without one 4.2.2 reads what it has freed"),
    ("PMIx_server_IOF_deliver", "function", "", ""),
    ("pmix_server_iof_fn_t", "function", "", ""),
    ("pmix_server_stdin_fn_t", "function", "", ""),
    ("PMIX_FWD_STDIN", "directive", "bool", "to rank 0"),
    ("PMIX_STDIN_TGT", "directive", "pmix_proc_t, pmix_rank_t", "to one rank, or all"),
    ("PMIX_FWD_STDOUT", "directive", "bool", "to a tool, true without it where the tool gave any directive"),
    ("PMIX_FWD_STDERR", "directive", "bool", "likewise"),
    ("PMIX_IOF_TAG_OUTPUT", "directive", "bool", ""),
    ("PMIx_Register_event_handler", "function", "", ""),
    ("PMIx_Deregister_event_handler", "function", "", ""),
    ("PMIx_Notify_event", "function", "", ""),
    ("PMIX_EVENT_CUSTOM_RANGE", "directive", "pmix_data_array_t", ""),
    ("pmix_server_register_events_fn_t", "function", "", ""),
    ("pmix_server_deregister_events_fn_t", "function", "", "not promised: there for libraries that call it: 4.2.2 does not"),
    ("pmix_server_notify_event_fn_t", "function", "", "the library has told all by then"),
    ("PMIx_Connect", "function", "", "the library completes it; `PMIX_TIMEOUT` from one participant only"),
    ("PMIx_Connect_nb", "function", "", ""),
    ("PMIx_Disconnect", "function", "", ""),
    ("PMIx_Disconnect_nb", "function", "", ""),
    ("PMIx_Log", "function", "", "of processes; 4.2.2 loses a tool's"),
    ("PMIx_Log_nb", "function", "", ""),
    ("pmix_server_log_fn_t", "function", "", ""),
    ("PMIX_LOG_STDOUT", "directive", "string", ""),
    ("PMIX_LOG_STDERR", "directive", "string", ""),
    ("PMIX_LOG_ONCE", "directive", "bool", ""),
    ("PMIX_LOG_TAG_OUTPUT", "directive", "bool", ""),
    ("PMIX_LOG_TIMESTAMP_OUTPUT", "directive", "bool", ""),
    ("PMIx_Query_info", "function", "", "about jobs; about the fabric see above"),
    ("PMIX_QUERY_NAMESPACES", "key", "string", ""),
    ("PMIX_JOB_SIZE", "key", "uint32_t", "of the job that is named, as all that follow"),
    ("PMIX_QUERY_JOB_STATUS", "key", "pmix_status_t", ""),
    ("PMIX_QUERY_PROC_TABLE", "key", "array of pmix_proc_info_t", ""),
    ("PMIX_QUERY_LOCAL_PROC_TABLE", "key", "array of pmix_proc_info_t", ""),
    ("PMIx_Job_control", "function", "", "of jobs and processes of the host; all of a request is done, or nothing"),
    ("PMIx_Job_control_nb", "function", "", ""),
    ("pmix_server_job_control_fn_t", "function", "", "other directives of job control: `PMIX_ERR_NOT_SUPPORTED`"),
    ("PMIX_JOB_CTRL_SIGNAL", "directive", "int", ""),
    ("PMIX_JOB_CTRL_PAUSE", "directive", "bool", ""),
    ("PMIX_JOB_CTRL_RESUME", "directive", "bool", ""),
    ("PMIX_JOB_CTRL_TERMINATE", "directive", "bool", "a job has 2 s for it, a single process as long as it likes"),
    ("PMIX_JOB_CTRL_KILL", "directive", "bool", ""),
    ("PMIX_REGISTER_CLEANUP", "directive", "string", "by the library"),
    ("PMIx_Process_monitor", "function", "", "of heartbeats and files, by the library; it says success to any other monitor, and does nothing"),
    ("PMIx_Process_monitor_nb", "function", "", ""),
    ("PMIX_MONITOR_HEARTBEAT", "directive", "bool", ""),
    ("PMIX_MONITOR_HEARTBEAT_ALERT", "event", "", ""),
    ("PMIX_MONITOR_FILE", "directive", "string", ""),
    ("PMIX_MONITOR_FILE_ALERT", "event", "", ""),
    ("PMIx_Allocation_request", "function", "", "not promised: refused: `PMIX_ERR_NOT_SUPPORTED` (`test_host_control`)"),
    ("PMIx_Group_construct", "function", "", "not promised: refused likewise"),
    ("PMIx_Get_credential", "function", "", "not promised: refused likewise"),
]
# What no code of ours has a part in: programs find it beside fabricd as beside any server.
ALONE = [
    ("PMIx_Store_internal", "function", "", ""),
    ("PMIx_Get_nb", "function", "", "of a process's own data and of its job's; of the fabric's keys see the end of this page"),
    ("PMIX_OPTIONAL", "qualifier", "bool", ""),
    ("PMIX_IMMEDIATE", "qualifier", "bool", "the server is asked, and nobody behind it"),
    ("PMIX_DATA_SCOPE", "qualifier", "pmix_scope_t", "with `PMIX_GLOBAL` of a process's own data 4.2.2 gives an array of both scopes"),
    ("PMIX_COLLECTIVE_ALGO", "directive", "string", "not promised: of a fence: 4.2.2 has no such attribute, nor `PMIX_COLLECTIVE_ALGO_REQD`"),
    ("PMIx_server_dmodex_request", "function", "", "of a launcher's server with the components; fabric-host has nobody to ask it for"),
    ("PMIx_server_deregister_client", "function", "", "likewise; fabric-host ends whole jobs"),
    ("pmix_server_listener_fn_t", "function", "", "not promised: no host has to: the library listens itself"),
]
INVENTORY = [
    ("PMIx_server_collect_inventory", "function", "", "what a host has, in any server with the component ([inventory.md](inventory.md))"),
    ("PMIx_server_deliver_inventory", "function", "", "to the fabricd of the scheduler"),
    ("PMIx_Register_attributes", "function", "", "of the fabric's functions and queries, by fabricd's server: what `pattrs` shows"),
]
# Where the functions of the server and of the data are done.
CODE = {
    "PMIx_server_setup_application": "libpmixfab/mca/pnet/launch_starter.c",
    "PMIx_server_setup_local_support": "libpmixfab/mca/pnet/launch_node.c",
    "PMIx_server_setup_fork": "libpmixfab/mca/pmdl/pmdl_environment.c fabric-host/job/rank_process.c",
    "PMIx_generate_regex": "libpmixfab/pmix/launch/job_map.c fabric-host/job/jobs.c",
    "PMIx_generate_ppn": "libpmixfab/pmix/launch/job_map.c fabric-host/job/jobs.c",
    "PMIx_server_register_nspace": "libpmixfab/mca/pmdl/pmdl_component.c fabric-host/job/jobs.c",
    "PMIx_server_deregister_nspace": "libpmixfab/mca/pmdl/pmdl_component.c fabric-host/job/jobs.c",
    "PMIx_server_register_client": "fabric-host/job/jobs.c",
    "PMIx_server_collect_inventory": "libpmixfab/mca/pnet/pnet_component.c",
    "PMIx_server_deliver_inventory": "libpmixfab/mca/pnet/pnet_component.c",
    "PMIx_Register_attributes": "fabricd/server/attributes.c",
    "pmix_server_client_connected_fn_t": "fabric-host/job_requests.c",
    "pmix_server_client_finalized_fn_t": "fabric-host/job_requests.c",
    "pmix_server_abort_fn_t": "fabric-host/job_requests.c",
    "pmix_server_fencenb_fn_t": "fabric-host/host_module.c",
    "pmix_server_dmodex_req_fn_t": "fabric-host/host_module.c",
    "pmix_server_connect_fn_t": "fabric-host/host_module.c",
    "pmix_server_disconnect_fn_t": "fabric-host/host_module.c",
    "pmix_server_register_events_fn_t": "fabric-host/host_module.c",
    "pmix_server_deregister_events_fn_t": "fabric-host/host_module.c",
    "PMIx_Abort": "fabric-host/job_requests.c",
    "PMIx_Publish": "fabric-host/data/kv.c",
    "PMIx_Publish_nb": "fabric-host/data/kv.c",
    "PMIx_Lookup": "fabric-host/data/kv.c",
    "PMIx_Lookup_nb": "fabric-host/data/kv.c",
    "PMIx_Unpublish": "fabric-host/data/kv.c",
    "PMIx_Unpublish_nb": "fabric-host/data/kv.c",
    "PMIx_Job_control": "fabric-host/job_requests.c",
    "PMIx_Job_control_nb": "fabric-host/job_requests.c",
    "pmix_server_job_control_fn_t": "fabric-host/job_requests.c",
    "PMIx_Spawn": "fabric-host/job_requests.c",
    "PMIx_Spawn_nb": "fabric-host/job_requests.c",
    "pmix_server_spawn_fn_t": "fabric-host/job_requests.c",
    "PMIx_IOF_pull": "fabric-host/job_streams.c",
    "PMIx_IOF_push": "fabric-host/job_streams.c",
    "pmix_server_iof_fn_t": "fabric-host/job_streams.c",
    "pmix_server_stdin_fn_t": "fabric-host/job_streams.c",
    "PMIx_server_IOF_deliver": "fabric-host/job/rank_output.c",
    "pmix_server_publish_fn_t": "fabric-host/data/kv.c",
    "pmix_server_lookup_fn_t": "fabric-host/data/kv.c",
    "pmix_server_unpublish_fn_t": "fabric-host/data/kv.c",
}
SECTIONS = [("Functions", FUNCTIONS), ("Events", EVENTS), ("Attributes of a fabric", FABRIC),
            ("Attributes of nodes and devices", NODE), ("A job's start", LAUNCH), ("Structures and constants", STRUCTURES),
            ("A host's duties", HOSTING), ("What the library does by itself", ALONE), ("A node's inventory", INVENTORY)]

NOTES = """## Where the standard leaves a choice

- `PMIX_FABRIC_DIMS`, `_SHAPE` and `_SHAPE_STRING` without any plane are arrays over all planes, in the order of the
  array of planes (the default one first), also where there is one plane only: a caller need not look first.
- The pairs of plane and shape are arrays of two `pmix_info_t` (`PMIX_FABRIC_PLANE`, then the shape), each in a
  `pmix_info_t` of the key that was asked for: the stock library crashes when it receives an array of bare arrays.
- `PMIx_Get` of a fabric's key is answered like a query of that one key, with what is given to it as qualifiers,
  whichever process is named: `NULL`, `PMIX_RANK_WILDCARD` of the own namespace, or any rank of the server's.
- Keys of a question are answered all or not at all. More than 1024 keys, or 32 whose answers may be large, get
  `PMIX_ERR_OUT_OF_RESOURCE`; what is not there `PMIX_ERR_NOT_FOUND`; wrong types, one key twice with different
  values, a device's key without a device `PMIX_ERR_BAD_PARAM`.
- A directive or qualifier that is required is heeded, or the call refused with `PMIX_ERR_NOT_SUPPORTED`: which, and by
  what, says [design/pmix.md](design/pmix.md). In process that is what the object holds, the matrix among it. What
  `pattrs` shows of `PMIx_Fabric_register` may be required of it.
- What is marked "by its host" is not seen from a subnet: it is there when the device's host reports (a fabricd on
  it, or the scheduler's own probes), and left out otherwise. `pmixfab.seen` in the device's array says who knows of
  the device; one that only the subnet or only its host sees is served with what is known.
- A port that only its host knows and that has no cable stands in the plane `unattached`. Its index is the row of that
  plane's matrix, which holds the distances within each host and 65535 between hosts; `PMIX_FABRIC_PLANE` beside the
  index says so. The plane is never the default one.
- `PMIX_FABRIC_DEVICE_VENDORID` could be the vendor's number, the product's, or both. It is the product's, as "a
  vendor-provided identifier for the device or product"; who wants the vendor has its name.
- What a job was told of a device is found by `PMIx_Get` of `PMIX_FABRIC_DEVICE` with `PMIX_RANK_WILDCARD`, and its
  `PMIX_DEVICE_ID` marked as a qualifier: `PMIX_INFO_SET_QUALIFIER(info)`; in 4.2.2 only where
  hosts and processes have the parameter `gds = hash`. Their default store, in shared memory, keeps no value with a
  qualifier, and says `PMIX_ERR_NOT_FOUND`: there the device is found in its node's `PMIX_FABRIC_DEVICES`, and by
  `PMIx_Query_info`.
- A device that is down keeps its row of the matrix, its costs and its coordinates while its place is retained:
  `PMIX_FABRIC_DEVICE_STATE` tells. Who places jobs looks at both (`examples/scheduler.c`).
- The two ports of one RDMA function have one `PMIX_DEVICE_ID`, as the stock library has it: a question by id is
  answered with the first; name and index tell them apart.
- A question about a node's devices or coordinates that names no node is about the node of the server that is asked: a
  fabricd on a node names itself to the scheduler. Another server's relay does not: its callers name the node.
- `PMIX_NODEID` counts within a plane: the hosts of another plane have other numbers. The name is the same in all.
- Planes are numbered from 1. The library leaves `index` 0 in a tool's or client's object: an update of index 0 is of the
  one plane that this caller was given. Of a caller that was given several it is refused with `PMIX_ERR_BAD_PARAM`, and
  so it is where nothing is known of the caller and several planes are served. As a directive or qualifier, 0 is no plane.
- `PMIx_Fabric_update` of a server's own process returns `PMIX_OPERATION_SUCCEEDED`, -157, where it is done: 4.2.2 hands
  its caller what a component returns, and would wait for ever for `PMIX_SUCCESS`. It is no error: the object is new.
  The non-blocking calls may return it, too, as the standard says: the callback is not called then.
- OpenPMIx's example of a scheduler (`test/simple/simpsched.c`, without the lines that choose its own invented fabric) does
  all it wants with the components, on a host that is in the fabric: it asks for its own node's devices. Its example of a
  process (`simpcoord.c`) gets endpoints and coordinates from a starter that asked for them, with coordinates in the form
  `single`; it takes the first pointer of an endpoint, which is the device's id, for its text.
  `test_pmix_examples` runs both where `FABRICD_PMIX_EXAMPLES` names their folder.
- The header's macros for these structures (`PMIX_..._CONSTRUCT` and so on) are the library's own. `PMIX_COORD_CREATE`
  of 4.2.2 writes through an unset pointer: fill the structure yourself.

## Callers of another version

A tool of one version (down) that registers, with directives or without, updates, queries and asks by `PMIx_Get` at a
fabricd of another one (across). Nothing has to be set.

| | 4.2.2 | 5.0.10 | 6.1.0 | 6.1.1 |
|---|---|---|---|---|
| 4.2.2 | yes | yes | yes | yes |
| 5.0.10 | yes | yes | yes | yes |
| 6.1.0 | yes | yes | yes | yes |
| 6.1.1 | yes | yes | yes | yes |

`test_versions` tries each pair whose libraries are there, with `./dev compat`; 6.1.1 is its candidate rc2. A tool of 6.1 names
a way of packing that no earlier library knows, and is refused by it; fabricd takes the name for the way of 4.2, of which it
is an extension ([versions.md](versions.md#callers-of-another-version)).

## Holes of the stock library 4.2.2

Closed by the guard (`guard/`, [design/guard.md](design/guard.md); what of it is for later versions, too, is in
[versions.md](versions.md#what-works-with-which); `FABRICD_NO_REPAIR=1` shows the holes):

- directives of a tool's register were lost, and it got success with nothing, as it did where it was refused
- a tool's `PMIx_Get` looked into its own job, which is none, and was told `PMIX_ERR_NOT_FOUND`, or waited for ever
- a `PMIx_Get` of `PMIX_HOSTNAME`, `PMIX_NODEID`, `PMIX_DEVICE_ID`, `PMIX_SWITCH_PEERS` or `PMIX_DEVICE_DISTANCES` that
  nobody was told waited, too: it gets `PMIX_ERR_NOT_FOUND` at once
- each register and update left a record of the caller behind
- one question without keys, or with a qualifier of a wrong type, ended the server
- one moment without a free descriptor made the server deaf: nobody could connect any more, for good
- the second of two small messages waited up to 40 ms for the other side's acknowledgement of the first
- one `pattrs --host-fns` ended the server (pattrs itself still dies of the answer: name a function, `--host NAME`)

Not to be closed from a server:

- a register that is refused gets `PMIX_ERR_UNREACH`, whatever the error: `PMIx_Query_info` tells it, as does libpmixfab
- `index` of `pmix_fabric_t` stays 0: who registers several planes takes it from `PMIX_FABRIC_INDEX`, or uses
  libpmixfab
- the caller's library keeps what a `PMIx_Get` was told: a node's keys below the node, all others below the key alone,
  whatever plane or device was asked for. `PMIX_GET_REFRESH_CACHE` asks anew: give it to every second question
- several `PMIx_Get_nb` of one process at once are sent as one, and only the key of the first is answered
- a `PMIx_Get` of another key waits for a process to put it: `PMIX_IMMEDIATE` or `PMIX_TIMEOUT` ends that. In a server
  that relays, without these repairs, one of a fabric's key waits, too: ask by `PMIx_Query_info`
- a `PMIx_Get` that names the tool's own rank, instead of none or `PMIX_RANK_WILDCARD`, does not find its answer
- `pmix.fab.coords`, the standard's spelling, is unknown to the library: a `PMIx_Get` of it needs `PMIX_NODE_INFO`
- without `PMIX_QUERY_REFRESH_CACHE` the caller's library may answer from what it was told before
"""


def committed():
    """{(name, kind, how, whom, version, module)} of the file."""
    if not os.path.exists(LINES):
        return set()
    with open(LINES, encoding="utf-8") as file:
        return {tuple(line.rstrip("\n").split("\t")) for line in file}


def exists(module):
    return os.path.exists(os.path.join(conforms.HERE, module + ".py"))


def merged():
    """What is known now: of modules that ran whole what they said of this library, of others what was known."""
    ran = {module: rows for module, (rows, complete) in conforms.read().items() if complete and exists(module)}
    known = {line for line in committed() if exists(line[5]) and (line[4] != conforms.VERSION or line[5] not in ran)}
    return known | {(*row, module) for module, rows in ran.items() for row in rows}


def cell(lines, whom):
    hows = sorted({line[2] for line in lines if line[3] == whom}, key=conforms.HOW.index)
    return ", ".join(hows) or "–"


def code(name):
    return ", ".join(f"`{path}`" for path in CODE[name].split()) if name in CODE else ""


def others(lines):
    """Versions of the library besides the page's own with which something of this has been shown."""
    return sorted({line[4] for line in lines} - {VERSION}, key=lambda version: [int(part) for part in version.split(".")])


def table(rows, lines):
    told = any(row[0] in CODE for row in rows)  # where it is done
    more = others(lines)
    head = ["name", "kind", "type", *conforms.WHOM, "shown by", *(["also with"] if more else []), *(["code"] if told else []),
            "remarks"]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for name, kind, type_, remark in rows:
        mine = [line for line in lines if line[:2] == (name, kind)]
        own = [line for line in mine if line[4] == VERSION]
        modules = ", ".join(sorted({f"`{line[5]}`" for line in own})) or "–"
        cells = [kind, type_, *(cell(own, whom) for whom in conforms.WHOM), modules,
                 *([", ".join(others(mine)) or "–"] if more else []), *([code(name)] if told else []), remark]
        yield f"| `{name}` | {' | '.join(cells)} |"


def unshown(lines):
    """Rows that nothing shows, and that do not say themselves that nothing is promised."""
    shown = {line[:2] for line in lines if line[4] == VERSION}
    return [f"{name}, {kind}" for _, rows in SECTIONS for name, kind, _, remark in rows
            if (name, kind) not in shown and not remark.startswith(NOT_PROMISED)]


def page(lines):
    parts, told = [INTRODUCTION], set()
    for title, rows in SECTIONS:
        parts += [f"## {title}\n", "\n".join(table(rows, lines)) + "\n"]
        told |= {row[:2] for row in rows}
    more = sorted({line[:2] for line in lines} - told)
    if more:
        parts += ["## More that tests show\n", "\n".join(table([(*row, "", "") for row in more], lines)) + "\n"]
    return "\n".join([*parts, NOTES])


def differences():
    """What is not as it should be, a line each. A library of which nothing is committed has no say."""
    known = committed()
    versions = {line[4] for line in known} | {VERSION}
    now, found = {line for line in merged() if line[4] in versions}, []
    for sign, lines in (("shown and not in the file", now - known), ("in the file and shown no longer", known - now)):
        found += [f"{sign}: {' '.join(line)}" for line in sorted(lines)]
    with open(PAGE, encoding="utf-8") as file:
        if file.read() != page(known):
            found.append("docs/conformance.md is not what test/data/conformance.txt says")
    return found + [f"a row that no assertion shows: {row}" for row in unshown(known)]


def write():
    now = merged()
    with open(LINES, "w", encoding="utf-8") as file:
        file.writelines("\t".join(line) + "\n" for line in sorted(now))
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(now))


def main():
    if sys.argv[1:] == ["--write"]:
        write()
    found = differences()
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

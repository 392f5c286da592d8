"""afresh - what a running fabricd serves, against a fabricd without any past that looks at the same subnet."""
import lab


def newcomer(sim):
    """A fabricd that has swept the subnet once, on an empty store, and ended: its snapshots can be read."""
    daemon = lab.Fabricd(sim, start=False)
    done = daemon.run_once()
    if done.returncode != 0:
        raise lab.LabError(f"fabricd --once: {done.stderr.strip()}")
    return daemon


def costs(daemon):
    """{(a, b): cost} by port GUIDs, of the devices that are seen; places that are only kept are nobody's."""
    devices, rows = daemon.ctl_json("devices"), daemon.ctl_json("matrix")["costs"]
    there = [(d["index"], d["guid"]) for d in devices if "missing" not in d["seen"]]
    return {(a, b): rows[i][k] for i, a in there for k, b in there}


def cables(daemon, seen_by=None):
    """Each cable as its two ends and its rate; seen_by: only those between what that other fabricd knows."""
    knows = seen_by or daemon
    known = {switch["name"] for switch in knows.ctl_json("switches")}
    known |= {f"{d['host']}:{d['name']}" for d in knows.ctl_json("devices")}
    return {(frozenset([(link["a"], link["a_port"]), (link["b"], link["b_port"])]), link["rate_gbps"])
            for link in daemon.ctl_json("links") if {link["a"], link["b"]} <= known}

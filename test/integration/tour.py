"""`./dev run`: a newcomer's walk through fabricd, on a simulated fabric, or on this host's own hardware (--real).

Every step prints the command that it runs and what came of it; the commands can be typed in another terminal
while the tour stays up.
"""
import argparse
import ipaddress
import json
import os
import shlex
import signal
import sys
import textwrap
import unittest

import fabric_text
import lab
import test_inventory

LEAVES, SPINES, HOSTS_PER_LEAF = 12, 4, 6
SLOW_LEAF, FAST_SPINE = "leaf1", "spine1"
WIDTH = 150

short = {}  # paths that are shown as a variable


class Stop(Exception):
    """Ctrl-C."""


def title(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def say(text):
    print(textwrap.fill(" ".join(text.split()), 100), flush=True)


def show(command, output, limit=None):
    """A command and its output, of which at most `limit` lines."""
    lines = output.rstrip().splitlines()
    for path, name in short.items():
        command = command.replace(path, name)
    print(f"  $ {command}")
    for line in lines[:limit]:
        print(f"    {line}" if len(line) <= WIDTH else f"    {line[:WIDTH]}...")
    if limit is not None and len(lines) > limit:
        print(f"    ... {len(lines) - limit} lines more")
    sys.stdout.flush()


def abbreviate(name, path):
    """From here on, commands are shown with $NAME for a long path; the assignment can be typed, too."""
    print(f"  $ {name}={shlex.quote(path)}", flush=True)
    short[path] = f"${name}"


def relative(path):
    return os.path.relpath(path, lab.ROOT) if path.startswith(lab.ROOT + os.sep) else path


def ctl(daemon, *args, limit=None):
    """Run fabricctl before the newcomer's eyes; its output."""
    done = daemon.ctl(*args)
    text = shlex.join([relative(lab.program("fabricctl")), "--rundir", daemon.rundir, *args])
    show(text, done.stderr + done.stdout, limit)
    print()
    if done.returncode != 0:
        raise lab.LabError(f"fabricctl {' '.join(args)} ended with status {done.returncode}")
    return done.stdout


def wait_for_signal():
    raise_on_signal()
    while True:
        signal.pause()


def raise_on_signal():
    def stop(_number, _frame):
        raise Stop
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


# ---- the demonstration fabric --------------------------------------------------------------------------


def demonstration():
    """A two-level fat tree in which one cable matters: of leaf1's cables only the one to spine1 is fast."""
    spec = f"fattree2:{LEAVES},{SPINES},{HOSTS_PER_LEAF}"
    show(f"{relative(lab.program('mkfabric'))} {spec} net > demo.net", "")
    return fabric_text.one_fast_cable(lab.fabric(spec), SLOW_LEAF, FAST_SPINE)


REPORTER, NODE_GUID, PORT_GUID = "node0001", "0x0000000000100000", "0x0000000000100001"  # as mkfabric numbers them


def machine(folder):
    """What the probes of a host would see of the HCA that the subnet knows: hwloc's XML of a real machine with its GUIDs,
    and a record of the others. NAME:FILE of each probe."""
    with open(os.path.join(lab.ROOT, "test", "data", "hwloc", "switches.xml"), encoding="utf-8") as file:
        xml = file.read()
    for guid, mine in (("b859:9f03:00fa:1234", "0000:0000:0010:0001"),
                       ("b8:59:9f:03:00:fa:12:34", "00:00:00:00:00:10:00:01")):
        xml = xml.replace(guid, mine)
    for name in ("NodeGUID", "SysImageGUID"):
        xml = xml.replace(f'"{name}" value="0000:0000:0010:0001"', f'"{name}" value="0000:0000:0010:0000"')
    hca = {"name": "mlx5_0", "port": "1"}
    items = [{"source": "verbs", **hca, "node-guid": NODE_GUID, "port-guid": PORT_GUID, "firmware": "20.31.1014",
              "driver": "mlx5_core", "mtu": "4096", "speed": "200000"},
             {"source": "libfabric", "name": "mlx5_0", "provider": ["verbs;ofi_rxm"], "mtu": "2048"},
             {"source": "ucx", **hca, "transport": ["dc_mlx5", "rc_mlx5"], "estimates": {"latency": "600"}}]
    files = {"hwloc": os.path.join(folder, "machine.xml"), "others": os.path.join(folder, "machine.json")}
    lab.replace_file(files["hwloc"], xml)
    lab.replace_file(files["others"], json.dumps({"host": REPORTER, "items": items}))
    return [f"{name}:{files.get(name, files['others'])}" for name in ("hwloc", "verbs", "libfabric", "ucx")]


def start_fabric():
    title("1. A fabric")
    say(f"""{LEAVES} leaf switches with {HOSTS_PER_LEAF} hosts each, and {SPINES} spines. All cables run at HDR
        (200 Gb/s) but some of {SLOW_LEAF}'s: of its cables to the spines only the one to {FAST_SPINE} does, the
        others came up at EDR (100 Gb/s). ibsim simulates the wire; OpenSM, which brings the ports up, and every
        packet that it sends are real.""")
    sim = lab.Ibsim(demonstration())
    abbreviate("SIM", sim.dir)
    show("ibsim -s demo.net < $SIM/console", f"{len(sim.switches)} switches, {len(sim.hosts)} hosts")
    manager = lab.OpenSM(sim)
    show("opensm", "SUBNET UP")
    return sim, manager


# ---- the tour ------------------------------------------------------------------------------------------


def start_daemon(sim):
    title("2. fabricd")
    say("""It discovers the subnet in a child process, works out costs, coordinates and groups, keeps them in an
        SQLite database, and publishes them: in its run directory and over PMIx.""")
    daemon = lab.Fabricd(sim, config={"fabricd": {"interval": 60}})
    abbreviate("RUN", daemon.rundir)
    abbreviate("CONF", daemon.conf)
    show(f"{relative(lab.program('fabricd'))} --config {daemon.conf} --foreground", daemon.log(), 12)
    ctl(daemon, "status")
    return daemon


def look_around(daemon):
    title("3. What it knows")
    say("A plane is one set of devices and switches that reach each other; here there is one.")
    ctl(daemon, "planes")
    say("Hosts under one leaf are a group: the best neighbours that a job can get.")
    ctl(daemon, "groups", limit=6)
    ctl(daemon, "devices", "node0001")


def costs(daemon):
    title("4. What a path costs")
    say("A link at the plane's fastest rate costs 10. Two hosts under one leaf are two links apart:")
    ctl(daemon, "cost", "node0001", "node0002")
    say(f"Across leaves it is four links, through {FAST_SPINE}:")
    return ctl(daemon, "cost", "node0001", f"node{LEAVES * HOSTS_PER_LEAF:04}")


def stock_tool(daemon):
    title("5. Any PMIx program can ask")
    say("""stock_tool knows nothing of fabricd: it calls PMIx_tool_init and PMIx_Fabric_register, as the PMIx
        Standard has them. The address is in the run directory.""")
    done = daemon.tool("register")
    show(f"{relative(lab.program('stock_tool'))} \"$(cat {daemon.uri_path()})\" register", done.stdout + done.stderr, 24)
    print()
    if done.returncode != 0:
        raise lab.LabError(f"stock_tool ended with status {done.returncode}")
    return daemon.watch()


def show_events(watch, start, planes=1):
    """The pairs of events that the connected tool got since offset `start`."""
    watch.wait(r"PENDING", start)
    end = watch.wait(r"(?:PMIX_FABRIC_UPDATED.*\n){%d}" % planes, start).end()
    text = watch.output.text[start:end]
    show("build/bin/stock_tool \"$(cat $RUN/fabricd.uri)\" watch    # connected since step 5; now it got", text)
    print()
    return end


def pull_cable(sim, daemon, watch, before):
    port = sim.cable(SLOW_LEAF, FAST_SPINE)
    title(f"6. A cable is pulled: {SLOW_LEAF} port {port}, to {FAST_SPINE}")
    start = len(watch.output.text)
    sim.unlink(SLOW_LEAF, port)
    show(f"echo 'Unlink \"{SLOW_LEAF}\"[{port}]' > {sim.console}", "")
    say("fabricd looks every minute; an operator need not wait:")
    ctl(daemon, "refresh")
    say("Each published change is announced by a pair of events. Between the two nobody should trust old costs.")
    end = show_events(watch, start)
    ctl(daemon, "diff")
    say(f"The path now leaves {SLOW_LEAF} by a slow cable, which costs 20 instead of 10:")
    after = ctl(daemon, "cost", "node0001", f"node{LEAVES * HOSTS_PER_LEAF:04}")
    if after == before:
        raise lab.LabError("the cost has not changed")
    return port, end


def put_back(sim, daemon, watch, port, start, before):
    title("7. And put back")
    sim.relink(SLOW_LEAF, port)
    show(f"echo 'ReLink \"{SLOW_LEAF}\"[{port}]' > {sim.console}", "")
    sim.wait_active(SLOW_LEAF, port)
    ctl(daemon, "refresh")
    show_events(watch, start)
    after = ctl(daemon, "cost", "node0001", f"node{LEAVES * HOSTS_PER_LEAF:04}")
    if after != before:
        raise lab.LabError("the cost is not what it was")


def report(daemon, watch):
    title("8. What a node has")
    say(f"""The subnet knows GUIDs and cables. Driver, firmware, PCI slot and NUMA node only the node knows, and tells: by a
        node daemon (fabricd --role node), or as here without one, by PMIx's own calls for inventory in a workload
        manager's servers. {REPORTER} is simulated, so its probes read a recorded machine.""")
    try:
        node = test_inventory.Server(REPORTER, probes=",".join(machine(daemon.dir)))
        center = test_inventory.Server("scheduler", "scheduler", rundir=daemon.rundir)
    except unittest.SkipTest as why:
        print(f"  not shown: {why}")
        return
    start = len(watch.output.text)
    inventory = node.collect()
    show(f"stock_inventory {REPORTER}    # PMIx_server_collect_inventory", f"{len(inventory)} bytes")
    show("stock_inventory scheduler    # PMIx_server_deliver_inventory", center.deliver(inventory))
    say("Ports that the subnet does not know are a plane of their own, without costs between hosts:")
    show_events(watch, start, planes=2)
    ctl(daemon, "nodes")
    say("Each fact stands there with who says it; what the others say instead is in brackets:")
    ctl(daemon, "devices", REPORTER, limit=24)
    node.quit()
    center.quit()


def stay(sim, daemon):
    title("The tour is over; fabricd stays up until Ctrl-C")
    print(textwrap.dedent(f"""\
        In another terminal:
          cd {shlex.quote(lab.ROOT)}
          RUN={shlex.quote(daemon.rundir)} SIM={shlex.quote(sim.dir)}
          build/bin/fabricctl --rundir $RUN --help
          build/bin/fabricctl --rundir $RUN events --follow
          build/bin/stock_tool "$(cat $RUN/fabricd.uri)" watch
          echo 'Unlink "leaf2"' > $SIM/console    # pull all of leaf2's cables; ReLink puts them back
          build/bin/fabricctl --rundir $RUN refresh
        fabricd's log: {daemon.log_path}"""), flush=True)
    wait_for_signal()


def tour(once):
    sim, manager = start_fabric()
    daemon = start_daemon(sim)
    try:
        look_around(daemon)
        before = costs(daemon)
        watch = stock_tool(daemon)
        watch.wait("watching")
        port, end = pull_cable(sim, daemon, watch, before)
        put_back(sim, daemon, watch, port, end, before)
        report(daemon, watch)
        if not once:
            stay(sim, daemon)
    except lab.LabError:
        print("fabricd's log ended with:\n" + daemon.log()[-2000:], file=sys.stderr)
        raise
    finally:
        daemon.stop()
        manager.stop()
        sim.quit()


# ---- this host's own hardware --------------------------------------------------------------------------


def available():
    """Probe -> can it work here, as fabricd says."""
    done = lab.run([lab.program("fabricd"), "--available"])
    show("build/bin/fabricd --available", done.stdout + done.stderr)
    return {words[0]: words[1] == "yes" for words in (line.split() for line in done.stdout.splitlines())}


def look(probes):
    """What each probe sees, counted; the items, as `fabricd --record` writes them."""
    argv = [lab.program("fabricd"), *(f"--probe={name}" for name in probes), "--record", "-"]
    done = lab.run(argv)
    lines = [] if done.returncode == 0 else [done.stderr.strip()]
    items = json.loads(done.stdout)["items"] if done.returncode == 0 else []
    for name in probes:
        mine = [item for item in items if item["source"] == name]
        names = sorted({item.get("name") or item.get("interface") or "software alone" for item in mine})
        lines.append(f"{name:10} {len(mine)}: {', '.join(names)}" if mine else f"{name:10} nothing")
    show(shlex.join([relative(argv[0]), *argv[1:]]) + "    # counted", "\n".join(lines))
    return items


def own_network(items):
    """The network of this host's first interface that has an address beyond the link, as CIDR; None."""
    for item in items:
        for address in item.get("address", []) if item["source"] == "ethernet" else []:
            interface = ipaddress.ip_interface(address)
            if not (interface.is_loopback or interface.is_link_local):
                return str(interface.network)
    return None


def what_was_found(daemon, can_sweep, network):
    status = daemon.status()
    if status["generation"] == 0:
        print("Not found: nothing that fabricd could serve.")
        print(f"  why: {status['stale_reason'] or 'no probe saw a device of a plane'}")
        print("  fabricd stays up and looks again every minute; until then it has nothing to serve.")
        return
    ctl(daemon, "status")
    done = daemon.ctl("devices", status["host"])
    if done.returncode == 0:
        ctl(daemon, "devices", status["host"])
    kinds = {plane["kind"] for plane in daemon.ctl_json("planes")}
    if can_sweep:
        print("Found: a fabric. It is served as above.")
    elif kinds & {"unattached"}:
        print("Found: RDMA devices, but no InfiniBand fabric that could be swept from here.")
    elif done.returncode == 0:
        print(f"Found: network interfaces alone, in the plane that this tour made of their network {network}.")
    else:
        print("Found: no device. Neither an RDMA device nor a network interface with an address is here.")


def real(once, rundir):
    title("What fabricd can ask on this host")
    can = available()
    local = [name for name in ("hwloc", "verbs", "libfabric", "ucx", "ethernet", "lldp") if can.get(name)]
    title("What its probes see")
    items = look(local) if local else []
    title("fabricd on what is there")
    network = own_network(items)
    probes = (["ibnetdisc"] if can.get("ibnetdisc") else []) + local
    config = {"fabricd": {"probe": probes or ["ibnetdisc"], "interval": 60}}
    if network is not None:
        config["ethernet"] = {"lan": network}
    daemon = lab.Fabricd(start=False, config=config)
    if rundir is not None:
        daemon.rundir = rundir
        daemon.args += ["--rundir", rundir]
    with open(daemon.conf, encoding="utf-8") as file:
        show(f"cat {daemon.conf}", file.read())
    show(f"build/bin/fabricd --config {daemon.conf} --foreground", "")
    daemon.start(wait=False)
    try:
        daemon.wait_up()
        daemon.until("sweep", after=0)
        what_was_found(daemon, can.get("ibnetdisc"), network)
        if not once:
            title("fabricd stays up until Ctrl-C")
            print(f"  build/bin/fabricctl --rundir {daemon.rundir} status\n  log: {daemon.log_path}", flush=True)
            wait_for_signal()
    finally:
        daemon.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="end after the tour")
    parser.add_argument("--real", action="store_true", help="this host's own hardware instead")
    parser.add_argument("--rundir", help="with --real: the run directory (default: a temporary one)")
    args = parser.parse_args()
    try:
        if args.real:
            real(args.once, args.rundir)
        else:
            tour(args.once)
    except Stop:
        print("\nstopped")
    except lab.LabError as error:
        print(f"tour: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

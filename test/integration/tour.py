"""`./dev run`: a newcomer's walk through fabricd, on a simulated fabric, or on this host's own hardware (--real).

Every step prints the command that it runs and what came of it; the commands can be typed in another terminal
while the tour stays up.
"""
import argparse
import ipaddress
import json
import os
import select
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
LAST_HOST = f"node{LEAVES * HOSTS_PER_LEAF:04}"
SWAPPED, NEW_GUID = "node0013", 0xb8599f0300fa0000
MOVED, NEW_LEAF, FREE_PORT = "node0007", "leaf3", 11
WIDTH = 150
SCREEN_S = 8  # in a terminal, before the next screen

short = {}  # paths that are shown as a variable


class Stop(Exception):
    """Ctrl-C."""


def title(text):
    """The begin of a screen; in a terminal it waits so that the one before can be read."""
    if sys.stdout.isatty() and sys.stdin.isatty() and title.screens > 0:
        print(f"\n(Enter: next screen; else in {SCREEN_S} s)", end="", flush=True)
        if select.select([sys.stdin], [], [], SCREEN_S)[0]:
            sys.stdin.readline()
    title.screens += 1
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


title.screens = 0


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


def ctl(daemon, *args, limit=None, status=0):
    """Run fabricctl before the newcomer's eyes; its output."""
    done = daemon.ctl(*args)
    text = shlex.join([relative(lab.program("fabricctl")), "--rundir", daemon.rundir, *args])
    show(text, done.stderr + done.stdout, limit)
    print()
    if done.returncode != status:
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
    netfile = fabric_text.one_fast_cable(lab.fabric(spec), SLOW_LEAF, FAST_SPINE)
    return netfile.replace(f'Switch {FREE_PORT - 1} "{NEW_LEAF}"', f'Switch {FREE_PORT} "{NEW_LEAF}"')


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
    title("1. Discovery")
    say(f"""A simulated InfiniBand fabric: {LEAVES} leaf switches with {HOSTS_PER_LEAF} hosts each, and {SPINES} spines, at HDR (200 Gb/s).
        ibsim simulates the wire. OpenSM, fabricd and every packet are real.""")
    sim = lab.Ibsim(demonstration())
    abbreviate("SIM", sim.dir)
    show("ibsim -s demo.net < $SIM/console", f"{len(sim.switches)} switches, {len(sim.hosts)} hosts")
    manager = lab.OpenSM(sim)
    show("opensm", "SUBNET UP")
    return sim, manager


# ---- the tour ------------------------------------------------------------------------------------------


def discovery(sim):
    daemon = lab.Fabricd(sim, config={"fabricd": {"interval": 60}})
    abbreviate("RUN", daemon.rundir)
    abbreviate("CONF", daemon.conf)
    show(f"{relative(lab.program('fabricd'))} --config {daemon.conf} --foreground", "")
    ctl(daemon, "planes")
    say("fabricd has swept the fabric, recognised its shape, and computed the cost of every path. Hosts of one leaf are a group:")
    ctl(daemon, "groups", limit=4)
    return daemon


def placement(daemon):
    title("2. A placement")
    say("Ten hosts for a job, as near to each other as the fabric allows, and the cost of the worst pair:")
    ctl(daemon, "place", "-n", "10")
    say("""The cost of a path is the sum of its links: 10 for each link at the fastest rate of the plane, more for a slower one.
        Within a leaf there are two links, across leaves four:""")
    ctl(daemon, "cost", "node0001", "node0002")
    return ctl(daemon, "cost", "node0001", LAST_HOST)


def wrong_cables(daemon):
    title("3. Slow cables")
    say(f"Three cables of {SLOW_LEAF} came up at half their rate. `fabricctl check` finds them and prints what to do:")
    ctl(daemon, "check", status=1)


def stock_tool(daemon):
    title("4. Events for any PMIx program")
    say("""stock_tool uses only the PMIx library: it calls PMIx_tool_init and PMIx_Fabric_register, as the PMIx Standard defines
        them, and waits for events.""")
    done = daemon.tool("register")
    show(f"{relative(lab.program('stock_tool'))} \"$(cat {daemon.uri_path()})\" register", done.stdout + done.stderr, 6)
    print()
    if done.returncode != 0:
        raise lab.LabError(f"stock_tool ended with status {done.returncode}")
    return daemon.watch()


def show_events(watch, start, planes=1):
    """The pairs of events that the connected tool got since offset `start`."""
    watch.wait(r"PENDING", start)
    end = watch.wait(r"(?:PMIX_FABRIC_UPDATED.*\n){%d}" % planes, start).end()
    text = watch.output.text[start:end]
    show("build/bin/stock_tool \"$(cat $RUN/fabricd.uri)\" watch", text)
    print()
    return end


def pull_cable(sim, daemon, watch, before):
    port = sim.cable(SLOW_LEAF, FAST_SPINE)
    start = len(watch.output.text)
    say(f"Now somebody pulls the last fast cable of {SLOW_LEAF}, to {FAST_SPINE}:")
    sim.unlink(SLOW_LEAF, port)
    show(f"echo 'Unlink \"{SLOW_LEAF}\"[{port}]' > {sim.console}", "")
    ctl(daemon, "refresh")
    say("The tool got a pair of events. Between the two it must not use the old costs.")
    show_events(watch, start)
    say("The path now leaves the leaf by a slow cable, and costs more:")
    if ctl(daemon, "cost", "node0001", LAST_HOST) == before:
        raise lab.LabError("the cost has not changed")
    sim.relink(SLOW_LEAF, port)
    sim.wait_active(SLOW_LEAF, port)
    daemon.refresh()
    if daemon.ctl("cost", "node0001", LAST_HOST).stdout != before:
        raise lab.LabError("the cost is not what it was")


def swapped_card(sim, daemon):
    title(f"5. A card is swapped: the HCA of {SWAPPED}")
    say("A new card has a new GUID. fabricd concludes from the cable and the name that the card was replaced, and keeps its index:")
    sim.guid(SWAPPED, NEW_GUID)
    show(f"echo 'Guid \"{SWAPPED}\" {NEW_GUID:#x}' > {sim.console}", "")
    ctl(daemon, "refresh")


def slurm_file(sim, daemon):
    title(f"6. Slurm's topology.conf: {MOVED} moves to another leaf")
    before, after = (os.path.join(daemon.dir, f"topology.conf{end}") for end in (".before", ""))
    write = ["export", "slurm-tree", "-o"]
    lab.run([lab.program("fabricctl"), "--rundir", daemon.rundir, *write, before])
    sim.unlink(MOVED)
    sim.link(NEW_LEAF, FREE_PORT, MOVED, 1)
    sim.wait_active(NEW_LEAF, FREE_PORT)
    ctl(daemon, "refresh")
    ctl(daemon, *write, after)
    show("diff topology.conf.before topology.conf", lab.run(["diff", before, after]).stdout)
    say("With [exports.files] fabricd writes this file at each change, and can run `scontrol reconfigure`.")


def report(daemon, watch):
    title("7. What a host adds")
    say(f"""Driver, firmware, PCI slot and NUMA node are known only on the host. A host reports them with `fabricd --role node`, or
        with the inventory calls of PMIx, as here. {REPORTER} is simulated, so its probes read a recorded machine.""")
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
    watch.wait(r"(?:PMIX_FABRIC_UPDATED.*\n){2}", start)
    say("Each fact names its sources:")
    ctl(daemon, "devices", REPORTER, limit=16)
    node.quit()
    center.quit()


def page(daemon):
    title("8. A page for the browser")
    path = os.path.join(daemon.dir, "fabric.html")
    ctl(daemon, "report", "-o", path)
    print(f"  Open file://{path} for the drawing, the heat map of costs, the findings and the changes.", flush=True)


SUMMARY = """\
You saw fabricd
  - discover {switches} switches and {hosts} hosts, and compute the cost of every path   (fabricctl planes, groups, cost)
  - choose near hosts for a job                                                (place)
  - find slow cables, with advice                                              (check)
  - announce a change to a stock PMIx program before it uses old costs         (events)
  - conclude that a card was swapped, and keep its index                       (history)
  - write a topology.conf for Slurm that stays right                           (export slurm-tree)
Next: docs/operations.md installs it on your fabric; `./dev run --real` probes this host."""


def stay(sim, daemon):
    title("fabricd stays up until Ctrl-C")
    print(textwrap.dedent(f"""\\
        In another terminal:
          cd {shlex.quote(lab.ROOT)}
          RUN={shlex.quote(daemon.rundir)} SIM={shlex.quote(sim.dir)}
          build/bin/fabricctl --rundir $RUN --help
          build/bin/fabricctl --rundir $RUN events --follow
          build/bin/stock_tool "$(cat $RUN/fabricd.uri)" watch
          echo 'Unlink "leaf2"' > $SIM/console    # pull all cables of leaf2; ReLink puts them back
          build/bin/fabricctl --rundir $RUN refresh
        The log of fabricd: {daemon.log_path}"""), flush=True)
    wait_for_signal()


def tour(once):
    sim, manager = start_fabric()
    daemon = discovery(sim)
    try:
        before = placement(daemon)
        wrong_cables(daemon)
        watch = stock_tool(daemon)
        watch.wait("watching")
        pull_cable(sim, daemon, watch, before)
        swapped_card(sim, daemon)
        slurm_file(sim, daemon)
        report(daemon, watch)
        page(daemon)
        title("The end of the tour")
        print(SUMMARY.format(switches=len(sim.switches), hosts=len(sim.hosts)), flush=True)
        if not once:
            stay(sim, daemon)
    except lab.LabError:
        print("The log of fabricd ended with:\n" + daemon.log()[-2000:], file=sys.stderr)
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

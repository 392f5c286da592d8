"""site_case - a site for each case, and what cases ask of it."""
import datetime
import unittest

import sim


def kinds(changes):
    return sorted(change["kind"] for change in changes)


def moment(text):
    """Seconds, of a time as JSON has it."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Case(unittest.TestCase):
    fabric, room, second_ports = "fattree2:3,2,2", 36, ()
    rows = 4  # that are compared with a plain search after each generation; 0 where cables are suppressed or hosts have two ports

    def start(self, start=True, config=None, **changes):
        """A site, and the daemon with these settings of [changes]."""
        config = dict(config or {})
        config["changes"] = dict(config.get("changes", {}), **changes)
        self.site = sim.Site(self.fabric, config, start=False, room=self.room, second_ports=self.second_ports)
        self.addCleanup(self.site.free)
        self.site.oracle(self.rows)
        return self.site.start() if start else self.site

    def again(self):
        """SIGKILL, and another start."""
        self.site.kill9()
        self.site.start()

    def pull(self, switch, other):
        """Pull the cable between the two, and sweep; the switch's port."""
        port = self.site.cable(switch, other)
        self.site.pull(switch, port)
        self.site.refresh()
        return port

    def plug(self, switch, port=0):
        self.site.plug(switch, port)
        return self.site.refresh()

    def devices(self):
        return {device["host"]: device for device in self.site.ctl_json("devices")}

    def places(self):
        """Where everybody stands, as jobs have it."""
        return {host: (d["index"], d["logical"], d["physical"], d["switch_port"]) for host, d in self.devices().items()}

    def states(self):
        return {host: (d["state"], d["seen"]) for host, d in self.devices().items()}

    def switches(self):
        return {switch["name"] for switch in self.site.ctl_json("switches")}

    def generation(self):
        return self.site.status()["generation"]

    def last(self):
        """The changes of the last generation."""
        return self.site.ctl_json("diff")["changes"]

    def findings(self, kind=None):
        return [finding for finding in self.site.control("check")["findings"] if kind in (None, finding["kind"])]

    def history(self, kind=None):
        return [change for change in self.site.control("history")["changes"] if kind in (None, change["kind"])]

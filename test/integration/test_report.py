"""fabricctl report: the page as a file, and in Debian's Chromium as a person uses it: search, unfolding, the heat map,
the keyboard, both themes, printing, names that would break a page, and that it asks nobody for anything."""
import base64
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import unittest

import browser
import fabric_text
import lab
import test_fabricctl

HOSTILE = "</script><script>document.title='gone'</script>"


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Shared:
    """The browser of all tests of the module."""

    browser = None


def setUpModule():
    if not os.path.exists(os.path.join(lab.BUILD, "fabricctl", "page.c")):
        raise unittest.SkipTest("this build has no report page (FABRICD_REPORT)")
    Shared.browser = browser.Browser()


def tearDownModule():
    Shared.browser.close()


class Case(unittest.TestCase):
    def setUp(self):
        self.rundir = lab.tmpdir()
        self.path = os.path.join(self.rundir, "page.html")

    def ctl(self, *args, **options):
        return lab.run([lab.program("fabricctl"), "--rundir", self.rundir, *args], **options)

    def report(self, spec=None):
        """The page of a run directory without a daemon, with one plane."""
        if spec:
            test_fabricctl.snapshot(spec, self.rundir)
        done = self.ctl("report", "-o", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def show(self, spec=None, **options):
        """The same in a browser, which finds nothing to complain about and asks nobody, now and at the end."""
        self.report(spec)
        return self.opened(self.path, **options)

    def opened(self, path, **options):
        page = browser.Page(Shared.browser, path, **options)
        self.addCleanup(page.close)
        self.addCleanup(lambda: self.assertEqual((page.value("1"), page.complaints, page.requests), (1, [], [])))
        return page

    def find(self, page, what):
        """Search it, as one does who has no mouse; what the keyboard is at then."""
        page.press("/")
        page.value("document.activeElement.select()")
        page.type(what)
        page.press("Enter")
        return page.value("document.activeElement.getAttribute('aria-label')")

    def costs(self, pairs):
        for a, b in pairs:
            done = self.ctl("--format", "json", "cost", a, b)
            yield json.loads(done.stdout)["cost"]


class File(Case):
    def test_what_it_holds(self):
        """Of each plane, or of one. The policy allows the page's own scripts and style by their digests, and nothing else."""
        page = self.report("rails:2,4,3,2")
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
        scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
        digest = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts + styles]
        self.assertEqual((len(scripts), len(styles)), (1, 1))
        self.assertEqual(policy, f"default-src 'none'; script-src {digest[0]}; style-src {digest[1]}; img-src data:; "
                                 "base-uri 'none'; form-action 'none'")
        self.assertEqual(re.findall(r'(?:src|href)="(?![#])([^"]*)"', page), ["data:,"])
        data = data_of(page)
        plane = data["planes"][0]
        self.assertEqual((plane["name"], len(plane["hosts"]["name"]), len(plane["devices"]["name"]), len(plane["switches"]["name"])),
                         ("ib0", 6, 24, 10))
        self.assertEqual({len(column) for column in plane["links"].values()}, {6 * 4 + 2 * 4 * 2})
        self.assertEqual(sorted(data["missing"]), ["changes", "findings"])
        test_fabricctl.snapshot("fattree2:2,1,3", self.rundir, "ib1", "2", "3")
        done = self.ctl("report", "-o", "-")
        self.assertEqual((done.returncode, [plane["name"] for plane in data_of(done.stdout)["planes"]]), (0, ["ib0", "ib1"]))
        self.assertRegex(done.stderr, r"without changes: no fabricd answers: .*\n.*without findings: no fabricd answers")
        done = self.ctl("--plane", "ib1", "report", "-o", "-")
        self.assertEqual([plane["name"] for plane in data_of(done.stdout)["planes"]], ["ib1"])

    def test_what_cannot_be_written(self):
        """It leaves the last page, and nothing beside it."""
        test_fabricctl.snapshot("fattree2:2,2,2", self.rundir)
        for args, status, words in ((["report"], 2, "report: give -o FILE.html"),
                                    (["report", "-o", os.path.join(self.rundir, "no", "page.html")], 1, "no/page.html: No such file or directory"),
                                    (["--plane", "ib9", "report", "-o", self.path], 1, "no plane ib9")):
            done = self.ctl(*args)
            self.assertEqual(done.returncode, status)
            self.assertIn(words, done.stderr)
        self.assertFalse(os.path.exists(self.path))
        before = self.report()
        done = subprocess.run(
            [lab.program("fabricctl"), "--rundir", self.rundir, "report", "-o", self.path], capture_output=True, text=True, check=False,
            preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "cannot write: .*page.html: File too large")
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(sorted(os.listdir(self.rundir)), ["ib0.snap", "page.html"])


class Shapes(Case):
    # The mean cost of each pair of groups, as the heat map has it, and over the pairs of devices of two hosts.
    MEANS = ("heat.sections.map((_, a) => heat.sections.map((_, b) => { const { mean, least, largest } = heat.pair(a, b);"
             "return [mean, least, largest, heat.means[a * heat.sections.length + b]].map(cost => +cost.toFixed(2)); }))")
    KNOWN = ("(plane => { const parts = heat.sections.map(({ first, n }) => [...heat.order.slice(first, first + n)]);"
             "return parts.map(from => parts.map(to => {"
             "  const costs = from.flatMap(a => to.filter(b => plane.hostOf[a] !== plane.hostOf[b]).map(b => plane.cost(a, b)));"
             "  const mean = costs.reduce((sum, cost) => sum + cost, 0) / (costs.length || 1);"
             "  return [mean, Math.min(...costs.length ? costs : [0]), Math.max(0, ...costs), mean].map(cost => +cost.toFixed(2));"
             "})); })(heat.plane)")

    def test_costs_and_what_is_drawn(self):
        """The page's costs are those of `matrix`: of classes, of devices in one host, without a path. All can be found."""
        for spec, blocks in (("rails:2,4,3,2", [["unit1", 4, 3], ["unit2", 4, 3]]), ("torus:4,3,3:2", [[f"slice {z}", 12, 24] for z in range(3)]),
                             ("fattree2:3,2,1", None), ("random:20,40,4:11", None)):
            with self.subTest(spec=spec):
                page = self.show(spec)
                matrix = os.path.join(self.rundir, "matrix.npy")
                self.assertEqual(self.ctl("matrix", "-o", matrix).returncode, 0)
                told = page.value("(p => Array.from(p.hostOf, (_, a) => Array.from(p.hostOf, (_, b) => p.cost(a, b))))(drawing.plane)")
                self.assertEqual(told, test_fabricctl.read_npy(matrix)[1])
                if spec.startswith(("rails", "fattree2")):  # the others have no groups of several hosts
                    self.assertEqual(page.value(self.MEANS), page.value(self.KNOWN))
                self.assertEqual(page.value("(n => [n.switches, n.hosts])(drawing.fold.root.n)"),
                                 page.value("[drawing.plane.nSwitches, drawing.plane.nHosts]"))
                if blocks:
                    self.assertEqual(page.value("drawing.fold.root.blocks.map(b => [b.name, b.n.switches, b.n.hosts])"), blocks)
                if spec.startswith("torus"):  # each switch at its coordinates
                    self.assertTrue(page.value(
                        "drawing.fold.root.blocks.every(slice => slice.blocks.every(b => slice.blocks.every(other =>"
                        "(b.at[0] < other.at[0]) === (b.left < other.left) && (b.at[1] < other.at[1]) === (b.top < other.top))))"))
                for name in page.value("['switches', 'hosts'].map(kind => drawing.plane[kind].name.at(-1))"):
                    self.assertIn(name, self.find(page, name))

    def test_large_ones(self):
        """Folded, ten thousand hosts are few boxes. Where places are too many, the page stays small and says where the costs are."""
        page = self.show("fattree3:34")
        self.assertLess(page.value("document.querySelectorAll('#drawing *').length"), 1000)
        self.assertEqual(self.find(page, "node9826"), "host node9826")
        self.assertEqual(list(self.costs([("node0001", "node9826")])), [page.value(
            "drawing.plane.cost(drawing.plane.findDevice('node0001'), drawing.plane.findDevice('node9826'))")])
        self.assertLess(os.path.getsize(self.path), 5e6)
        page = self.show("torus:14,14,13:1")
        self.assertIn("2548 different places", page.text("#costs-note"))
        self.assertLess(os.path.getsize(self.path), 5e6)

    def test_a_plane_is_chosen(self):
        """What is drawn, searched and compared is the plane that is chosen."""
        test_fabricctl.snapshot("fattree2:4,2,4", self.rundir)
        test_fabricctl.snapshot("dragonfly:2,8,4", self.rundir, "ib1", "2", "3")
        page = self.show()
        for x, y in ((0.18, 0.18), (0.92, 0.18), (0.3, 0.92)):  # a cell has the colour that the legend has for its cost
            page.click("#heat", x, y)
            cost = re.search(r"cost (\d+)", page.value("document.getElementById('reading').value")).group(1)
            seen = page.value(f"Array.from(heat.context.getImageData({x} * heat.canvas.width, {y} * heat.canvas.height, 1, 1).data)")
            legend = page.value("Object.fromEntries([...document.querySelectorAll('#scale li')].map(li => [li.textContent,"
                                "getComputedStyle(li.querySelector('rect')).fill.match(/\\d+/g).map(Number)]))")
            self.assertEqual(seen[:3], legend[cost if cost != "0" else "itself"])
        self.assertEqual((page.text("#title"), self.find(page, "r1-1")), ("ib0", None))
        page.value("document.getElementById('plane').focus()")
        page.press("ArrowDown")
        self.assertEqual(page.text("#title"), "ib1")
        self.assertEqual(page.value("[...document.querySelectorAll('.block')].map(g => g.getAttribute('aria-label'))")[32],
                         "group32, folded: 8 switches, 16 hosts")
        self.assertEqual(page.value("document.querySelectorAll('.link').length"), 33 * 32 // 2)
        self.assertEqual(self.find(page, "r7-3"), "switch r7-3")
        self.assertEqual(page.value("drawing.fold.items.switch[drawing.selected.index].parent.parent.name"), "group7")


class Used(Case):
    """One page, with the mouse and with the keyboard."""

    def test_as_a_person_does(self):
        page = self.show("fattree3:16")
        self.search(page)
        self.unfold(page)
        self.read_costs(page)

    def test_zoom(self):
        """Ctrl with the wheel zooms about the pointer, a drag moves what is under it and selects nothing; two fingers do both."""
        page = self.show("fattree3:8")
        page.value("document.getElementById('drawing').scrollIntoView({block: 'center'})")
        x, y, w, h = page.value("(b => [b.x, b.y, b.width, b.height])(drawing.svg.getBoundingClientRect())")
        x, y = round(x + w / 3), round(y + h / 3)
        under = "drawing.zoom.invert(drawing.zoom.place({{clientX: {}, clientY: {}}}))"
        scale, text = "drawing.zoom.k", "document.querySelector('#details').innerText"
        before, chosen = page.value(under.format(x, y)), page.value(text)
        page.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=0, modifiers=2)
        self.assertEqual(page.value(scale), 1)
        page.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-50, modifiers=2)
        self.assertAlmostEqual(page.value(scale), 2, 3)
        self.near(page.value(under.format(x, y)), before)
        self.mouse(page, ("mousePressed", x, y), ("mouseMoved", x + 30, y + 10), ("mouseMoved", x + 80, y + 40), ("mouseReleased", x + 80, y + 40))
        self.near(page.value(under.format(x + 80, y + 40)), before)
        self.assertEqual((page.value(scale), page.value(text)), (2, chosen))
        self.mouse(page, ("mouseMoved", x, y))
        self.near(page.value(under.format(x + 80, y + 40)), before)
        self.fingers(page, "touchStart", (x, y), (x + 60, y))
        middle = page.value(under.format(x + 30, y))
        for i in range(1, 7):
            self.fingers(page, "touchMove", (x - 10 * i, y + 5 * i), (x + 60 + 10 * i, y + 5 * i))
        self.fingers(page, "touchEnd")
        self.assertAlmostEqual(page.value(scale), 2 * 180 / 60, 3)
        self.near(page.value(under.format(x + 30, y + 30)), middle)
        page.click("#fit")
        self.assertEqual(page.value("[drawing.zoom.x, drawing.zoom.y, drawing.zoom.k]"), [0, 0, 1])
        self.zoom_costs(page)

    def zoom_costs(self, page):
        """The map never leaves its frame."""
        page.value("heat.canvas.scrollIntoView({block: 'center'})")
        x, y, w, h = page.value("(b => [b.x, b.y, b.width, b.height])(heat.canvas.getBoundingClientRect())")
        x, y = round(x + 0.6 * w), round(y + 0.6 * h)
        page.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-50, modifiers=2)
        k = page.value("heat.zoom.k")
        self.assertGreater(k, 1.5)
        self.mouse(page, ("mousePressed", x, y), ("mouseMoved", x - 400, y - 400), ("mouseReleased", x - 400, y - 400))
        self.near(page.value("[heat.zoom.x, heat.zoom.y]"), page.value("Array(2).fill((MARGIN + heat.size) * (1 - heat.zoom.k))"))
        self.assertEqual(page.value("heat.zoom.k"), k)

    def near(self, point, expected):
        for a, b in zip(point, expected):
            self.assertAlmostEqual(a, b, 2)

    @staticmethod
    def mouse(page, *events):
        pressed = False
        for kind, x, y in events:
            pressed = kind == "mousePressed" or pressed and kind == "mouseMoved"
            page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
                     buttons=1 if pressed else 0, clickCount=0 if kind == "mouseMoved" else 1)

    @staticmethod
    def fingers(page, kind, *places):
        page.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)])

    def search(self, page):
        self.assertEqual(page.value("document.querySelectorAll('.host').length"), 0)
        self.assertEqual(self.find(page, "node0700"), "host node0700")
        self.assertIn("leaf10-7", page.text("#details"))
        guid = page.value("drawing.plane.switches.guid[5]")
        self.assertRegex(self.find(page, guid), "^switch leaf")
        page.press("/")
        page.value("document.activeElement.select()")
        page.type("nobody")
        self.assertEqual(page.text("#found"), "no match")
        page.press("Escape")
        self.assertTrue(page.value("document.getElementById('found').hidden"))
        page.click("#fold")

    def unfold(self, page):
        """Links of what is folded are one line."""
        lines, blocks = "document.querySelectorAll('.link').length", "document.querySelectorAll('.block').length"
        label = "document.activeElement.getAttribute('aria-label')"
        self.assertEqual((page.value(lines), page.value(blocks)), (16 * 64, 16))
        page.click(".block > rect")
        self.assertEqual(page.value(label), "pod0, unfolded: 16 switches, 64 hosts")
        self.assertEqual((page.value(lines), page.value(blocks)), (15 * 64 + 64 + 64, 16 + 8))
        page.press("Escape")
        self.assertEqual(page.value(label), "pod0, folded: 16 switches, 64 hosts")
        page.press("ArrowRight")
        page.press("Enter")
        self.assertEqual(page.value(label), "pod1, unfolded: 16 switches, 64 hosts")
        page.press("ArrowDown")
        page.press("Enter")
        self.assertRegex(page.text("#details h3"), r"^Switch \S+1-\d$")
        page.click("#fold")
        self.assertEqual(page.value(blocks), 16)

    def read_costs(self, page):
        """From two groups to their devices, one cell, and back; and by the names of two hosts: what `cost` says."""
        page.value("document.getElementById('heat').focus()")
        reading = "document.getElementById('reading').value"
        page.press("ArrowRight", 3)
        page.press("ArrowDown")
        self.assertEqual(page.value(reading), "leaf0-1 → leaf0-3: cost 40")
        page.press("Enter")
        page.press("ArrowRight")
        names = re.match(r"(node\d+):HCA-1:1 → (node\d+):HCA-1:1: cost (\d+)$", page.value(reading))
        self.assertTrue(names, page.value(reading))
        self.assertEqual([int(names.group(3))], list(self.costs([names.group(1, 2)])))
        page.press("Escape")
        self.assertRegex(page.value(reading), "^leaf0-1 → leaf0-3")
        pairs = [("node0001", "node0002"), ("node0003", "node0060"), ("node1024", "node0005")]
        for (a, b), cost in zip(pairs, self.costs(pairs)):
            self.choose(page, a, b)
            self.assertRegex(page.value(reading), rf"^{a}:HCA-1:1 → {b}:HCA-1:1: cost {cost}$")
        self.choose(page, "nobody")
        self.assertEqual(page.value(reading), "Nothing is called nobody.")

    @staticmethod
    def choose(page, *names):
        for field, text in zip(("#from", "#to"), names):
            page.click(field)
            page.value("document.activeElement.select()")
            page.type(text)
            page.press("Enter")


class Health(Case):
    """What is wrong, where it is drawn, and the ways between a finding and its place."""

    def told(self, whole, changed, retain=600, **options):
        """The page of a fabric that was whole, and has changed."""
        capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(capture, whole)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}, "changes": {"light_sweep": 0, "retain_seconds": retain}})
        self.addCleanup(daemon.stop)
        lab.replace_file(capture, changed)
        daemon.refresh()
        self.assertEqual(daemon.ctl("report", "-o", self.path).returncode, 0)
        return daemon, self.opened(self.path, **options)

    def boxes(self, page, names):
        """What is said of each."""
        return page.value(f"{json.dumps(names)}.map(name => drawing.plane.named(name)).map(({{kind, index}}) => drawing.describe(drawing.fold.items[kind][index]))")

    def test_opens_where_it_is_worst(self):
        """Of two planes the second has lost a cable: it is shown, named in the choice, and the finding leads to it from the first."""
        first = lab.fabric("fattree2:4,2,4", "capture")
        second = re.sub(r"(-0{10}|0x|\()([12])(0[0-9a-f]{4})", lambda m: f"{m.group(1)}{int(m.group(2)) + 2}{m.group(3)}", first)
        second = second.replace("leaf", "edge").replace("spine", "core").replace("HCA-1", "HCA-2")
        both = first.rstrip("\n") + "\n\n" + second[second.index("vendid"):]
        _, page = self.told(both, fabric_text.without_cables(both, "edge2", "core1"))
        self.assertEqual((page.text("#title"), page.value("document.getElementById('plane').value")), ("ib1", "1"))
        self.assertEqual(page.value("[...document.querySelectorAll('#plane option')].map(o => o.textContent)"), ["ib0: well", "ib1: 1 warning"])
        self.assertEqual(page.text("#verdict"), "1 warning: edge2[5] - core1[2] link-lost")
        page.value("choosePlane(0)")
        page.click("#findings button.name")
        self.assertEqual((page.text("#title"), page.text("#details h3")), ("ib1", "core1 – edge2"))
        self.assertEqual(page.value("document.querySelectorAll('.link.selected.bad-link').length"), 1)
        page.click("#details ul button.name")
        self.assertEqual(page.value("document.activeElement.closest('tr').id"), "finding-0")
        self.assertTrue(page.value("document.getElementById('finding-0').classList.contains('chosen')"))
        self.find(page, "node0003")
        self.assertEqual(page.value("[...document.querySelectorAll('#details tr')].map(tr => tr.innerText).filter(t => t.startsWith('other planes'))"),
                         ["other planes\tib0: 1 of 1 up"])

    def test_marks(self):
        """A box or a line has as many as are at it; folded blocks have those of what is in them. A click selects."""
        whole = lab.fabric("fattree3:8", "capture")
        _, page = self.told(whole, fabric_text.slower(whole, "node0001"))
        marks = "[...document.querySelectorAll('.mark')].map(mark => mark.textContent)"
        self.assertEqual(page.value(marks), ["!"])
        page.click("#fold")
        self.assertEqual(page.value("(d => [d.name, d.n.hosts])(document.querySelector('.mark').item)"), ["pod0", 16])
        page.click(".mark circle")
        self.assertEqual((page.text("#details h3"), page.text("#details h4")), ("pod0", "1 finding"))
        page.click("#findings button.name")
        self.assertEqual(page.text("#details h3"), "Host node0001")
        self.assertEqual(page.value("document.querySelectorAll('.host.warning').length"), 1)

    def test_one_rail_of_eight(self):
        """A host that has lost one device of eight, for a while or for good, is no host that is down."""
        whole = lab.fabric("rails:1,8,6,2", "capture")
        for retain, state in ((600, "missing"), (0, "lost")):
            with self.subTest(state=state):
                _, page = self.told(whole, fabric_text.without(whole, "node0002 HCA-3"), retain=retain)
                well, ill = self.boxes(page, ["node0001", "node0002"])
                self.assertEqual(well, "host node0001")
                self.assertRegex(ill, r"^host node0002, 1 of 8 devices down, \d findings?$")
                self.assertEqual(page.value("[...document.querySelectorAll('.host text')].map(t => t.textContent)")[1], "node0002 7/8")
                self.assertEqual([page.value(f"document.querySelectorAll('.host{kind}').length") for kind in (" .device", " .bad-device", ".down", ".error")],
                                 [48, 1, 0, 1])
                self.find(page, "node0002")
                self.assertIn(state, page.text("#details"))

    def test_lost_switches_stay(self):
        """Each at its level, with its cables, dashed; what hung on it is lost with it; costs are of what is there."""
        whole = lab.fabric("fattree3:4", "capture")
        names = re.findall(r'^Switch.*# "([^"]+)"', whole, re.MULTILINE)
        core, middle, leaf = (next(name for name in names[::-1] if name.startswith(kind)) for kind in ("core", "mid", "leaf"))
        gone = re.findall(r'"(node\d+)"', re.search(rf'# "{leaf}" enhanced.*\n((?:\[.*\n)+)', whole).group(1))
        self.assertEqual(len(gone), 2)
        levels = page_levels(self.show("fattree3:4"))
        _, page = self.told(whole, fabric_text.without(whole, core, middle, leaf, *gone), retain=0)
        self.assertEqual({name: level for name, level in page_levels(page).items() if name in (core, middle, leaf)}, {n: levels[n] for n in (core, middle, leaf)})
        self.assertEqual(self.boxes(page, [core, gone[0]]), [f"switch {core}, lost, 1 finding", f"host {gone[0]}, lost, 1 finding"])
        self.assertEqual(page.value("drawing.plane.nLinks"), 48)
        self.assertEqual(page.value("[heat.order.length, drawing.plane.live.switches]"), [14, 17])
        self.assertIn("5 lost", page.text("#summary"))
        self.find(page, core)
        self.assertIn("lost", page.text("#details table"))

    def test_the_only_spine(self):
        """Without it each leaf is a plane: it is drawn in each, and is lost. A switch that is in another plane is not."""
        whole = lab.fabric("fattree2:3,1,3", "capture")
        _, page = self.told(whole, fabric_text.without(whole, "spine1"))
        self.assertEqual(page.value("planes.map(plane => plane.named('spine1') !== undefined)"), [True] * 3)
        self.assertEqual(self.boxes(page, ["spine1"]), ["switch spine1, lost, 1 finding"])
        _, page = self.told(whole, fabric_text.without_cables(whole, "leaf2", "spine1"))
        at = page.value("planes.findIndex(plane => plane.live.switches === 1)")
        page.value(f"choosePlane({at})")
        self.assertEqual(self.boxes(page, ["spine1"]), ["switch spine1, in another plane"])

    def test_acknowledged(self):
        """It stays seen, is no alarm, and opens no plane."""
        whole = lab.fabric("fattree2:3,2,4", "capture")
        daemon, page = self.told(whole, fabric_text.slower(whole, "node0005"))
        self.assertEqual(page.text("#verdict"), "1 warning: leaf2[1] - node0005 HCA-1[1] slow-link")
        self.assertEqual(daemon.ctl("ack", "slow-link").returncode, 0)
        self.assertEqual(daemon.ctl("report", "-o", self.path).returncode, 0)
        page = self.opened(self.path)
        self.assertEqual(page.text("#verdict"), "No open findings; 1 acknowledged.")
        self.assertEqual(page.value("document.querySelectorAll('.host.notice').length"), 1)

    def test_phone(self):
        """Nothing is wider than the screen, and names in the drawing can be read."""
        for spec, changed in (("fattree2:8,4,8", "leaf2"), ("dragonfly:2,8,4", "r3-2"), ("rails:4,8,8,4", "leaf1-2")):
            with self.subTest(spec=spec):
                whole = lab.fabric(spec, "capture")
                _, page = self.told(whole, fabric_text.slower(whole, changed), width=390, height=844)
                self.assertLessEqual(page.value("document.documentElement.scrollWidth"), page.value("document.documentElement.clientWidth"))
                self.assertGreater(page.value("11 * drawing.svg.getScreenCTM().a"), 5.5)
                self.assertGreater(page.value("document.querySelectorAll('.mark').length"), 0)

    def test_boxes_of_a_ring(self):
        """None lies on another, however many they are."""
        for spec in ("dragonfly:1,2,1", "dragonfly:2,4,2", "dragonfly:2,8,4", "dragonfly:4,8,4"):
            for width in (1500, 390):
                with self.subTest(spec=spec, width=width):
                    page = self.show(spec, width=width)
                    self.assertEqual(page.value(
                        "(all => all.flatMap((a, i) => all.slice(0, i).filter(b => Math.max(a.left, b.left) < Math.min(a.left + a.w, b.left + b.w) &&"
                        "Math.max(a.top, b.top) < Math.min(a.top + a.h, b.top + b.h))).length)(drawing.fold.root.blocks)"), 0)

    def test_one_cost(self):
        """Instead of a map of one colour."""
        page = self.show("fattree2:1,1,6")
        self.assertEqual(page.text("#costs-note"), "The cost between any two hosts is 20.")
        self.assertEqual(page.value("getComputedStyle(document.getElementById('heat')).display"), "none")


def page_levels(page):
    return page.value("Object.fromEntries(drawing.plane.switches.name.map((name, i) => [name, drawing.plane.switches.level[i]]))")


class Told(Case):
    """With a daemon: a host and a spine are lost, and a leaf is slower."""

    @classmethod
    def setUpClass(cls):
        capture = os.path.join(lab.tmpdir(), "capture")
        whole = lab.fabric("fattree2:8,4,8", "capture").replace('"node0009"', f'"{HOSTILE}"').replace('"leaf5"', '"<b>leaf5</b>&amp;"')
        lab.replace_file(capture, whole)
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}, "names": {"pattern": "^([^ ]+)$"}})
        lab.replace_file(capture, fabric_text.slower(fabric_text.without(whole, "node0003", "spine2"), "leaf2"))
        cls.daemon.refresh()
        cls.file = os.path.join(lab.tmpdir(), "page.html")
        cls.done = cls.daemon.ctl("report", "-o", cls.file)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def test_findings_names_colours_and_print(self):
        page = self.opened(self.file)
        self.check_findings(page)
        self.check_links(page)
        self.check_names(page)
        self.check_themes(page)
        self.check_print(page)

    def check_findings(self, page):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        shown = page.value("[...document.querySelectorAll('#findings tbody tr')].map(tr => [...tr.cells].map(cell => cell.innerText))")
        known = json.loads(self.daemon.ctl("--format", "json", "check").stdout)["findings"]
        self.assertEqual([row[:4] for row in shown], [[f["severity"], f["kind"], f["where"], f["what"]] for f in known])
        shown = page.value("[...document.querySelectorAll('#changes tbody tr')].map(tr => [...tr.cells].map(cell => cell.innerText))")
        known = self.daemon.ctl_json("history", "--limit", "50")[::-1]
        self.assertEqual([(row[1], row[2], row[3]) for row in shown], [(str(c["generation"]), c["kind"], c["what"]) for c in known])
        page.click("#findings button.name")
        self.assertRegex(page.text("#details h3"), "^(Host|Switch) ")

    def check_links(self, page):
        """A slow cable is a warning, and narrower; what is down or lost is dashed."""
        self.assertEqual(page.value("[...document.querySelectorAll('#legend li')].map(li => li.innerText)"),
                         ["well: 76 cables", "warning: 11 cables", "down, missing or lost: 9", "200 Gb/s: 77 cables", "100 Gb/s: 11 cables"])
        self.assertEqual([page.value(f"document.querySelectorAll('.link.{kind}').length") for kind in ("well", "warning", "error.bad-link")], [21, 3, 8])
        self.assertEqual(page.value("document.querySelectorAll('.host.warning').length"), 8)
        warn, bad = (page.value(f"getComputedStyle(document.querySelector('.link.{kind}')).stroke") for kind in ("warning", "error"))
        self.assertEqual(len({warn, bad, page.value("getComputedStyle(document.querySelector('.link.well')).stroke")}), 3)
        slow, fast = (page.value(f"+document.querySelector('.link.{kind}').getAttribute('stroke-width')") for kind in ("warning", "well"))
        self.assertLess(slow, 0.75 * fast)
        self.assertEqual(self.find(page, "node0003"), "host node0003, down, 1 finding")
        self.assertIn("missing", page.text("#details"))
        self.assertEqual(page.value("document.querySelectorAll('.host.down').length"), 1)

    def check_names(self, page):
        """None breaks the page."""
        self.assertEqual(page.value("document.title"), "Fabric ib0")
        self.assertEqual(page.value("document.scripts.length"), 2)
        name = page.value("drawing.plane.hosts.name.find(name => name.includes('script'))")
        self.assertEqual(name, HOSTILE)
        self.assertEqual(self.find(page, HOSTILE), f"host {HOSTILE}, 2 findings")
        self.assertEqual(page.text("#details h3"), f"Host {HOSTILE}")
        self.assertEqual(self.find(page, "<b>leaf5"), "switch <b>leaf5</b>&amp;")
        self.assertEqual(page.value("document.querySelectorAll('b').length"), 0)

    def check_themes(self, page):
        """What is written can be read in both, and the page follows while it is open."""
        papers = []
        for dark in (False, True):
            page.theme(dark)
            colours = page.value("Object.fromEntries(['paper', 'ink', 'quiet', 'accent', 'bad', 'warn', 'well', 'notice'].map(name =>"
                                 "[name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3')]))")
            paper = luminance(colours.pop("paper"))
            papers.append(paper)
            for name, colour in colours.items():
                light, deep = sorted((paper, luminance(colour)), reverse=True)
                self.assertGreater((light + 0.05) / (deep + 0.05), 4.5, (dark, name))
            corner = page.value("heat.draw(), heat.context.getImageData(1, 1, 1, 1).data[0]")
            self.assertEqual(corner > 128, not dark)
        self.assertGreater(papers[0], 0.8)
        self.assertLess(papers[1], 0.05)

    def check_print(self, page):
        """From the dark theme, in light colours, the whole fabric, with all that the tables hold; afterwards the page is as it was."""
        self.find(page, "node0020")
        before = page.value("drawing.view.getAttribute('transform')")
        page.value("addEventListener('beforeprint', () => { window.printed = drawing.view.getAttribute('transform'); })")
        self.assertTrue(page.pdf().startswith(b"%PDF"))
        self.assertEqual((page.value("window.printed"), page.value("drawing.view.getAttribute('transform')")), (None, before))
        page.ask("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(page.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.assertEqual(page.value("getComputedStyle(document.querySelector('.controls')).display"), "none")
        frame = "new Promise(done => requestAnimationFrame(done))"  # what hears of another medium has by then
        self.assertEqual(page.value(f"{frame}.then(() => heat.context.getImageData(1, 1, 1, 1).data[0])"), 255)

    def test_the_policy_holds(self):
        """What got into the page all the same could neither run nor call home."""
        page = browser.Page(Shared.browser, self.file)
        self.addCleanup(page.close)
        page.value("document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = \"gone\"'}))")
        page.value("document.body.append(Object.assign(document.createElement('img'), {src: 'https://127.0.0.1:9/x.png'}))")
        self.assertEqual(page.value("fetch('https://127.0.0.1:9/').then(() => 'answered', () => 'refused')"), "refused")
        self.assertEqual(page.value("document.title"), "Fabric ib0")
        self.assertEqual(sum("Content Security Policy" in text for text in page.complaints), len(page.complaints))
        self.assertGreaterEqual(len(page.complaints), 3)

    def test_more_findings_than_anybody_reads(self):
        capture, whole = os.path.join(lab.tmpdir(), "capture"), lab.fabric("fattree2:30,2,20", "capture")
        lab.replace_file(capture, whole)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        self.addCleanup(daemon.stop)
        lab.replace_file(capture, fabric_text.without(whole, *(f"node{n:04}" for n in range(1, 560))))
        daemon.refresh()
        self.assertEqual(daemon.ctl("report", "-o", self.path).returncode, 0)
        page = self.opened(self.path)
        self.assertEqual(page.value("document.querySelectorAll('#findings tbody tr').length"), 500)
        self.assertRegex(page.text("#findings p"), rf"^The gravest 500 of {len(daemon.control('check')['findings'])}: fabricctl check")
        self.assertRegex(page.value("document.querySelector('.block text.alarm').textContent"), "^20 down$")
        self.assertRegex(page.text("#verdict"), rf"^{len(daemon.control('check')['findings'])} findings, the gravest of them: node0001")

    def test_over_pmix(self):
        """Without what only the daemon's own host can ask."""
        done = lab.run([lab.program("fabricctl"), "--uri", self.daemon.uri(), "report", "-o", self.path], env=self.daemon.tool_env())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.opened(self.path).text("#findings p"), "Not available: over PMIx only the planes can be read")


if __name__ == "__main__":
    unittest.main()

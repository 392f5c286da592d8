"""picture.py FILE - the README's picture: the report of a simulated fabric in which a leaf is dead and three cables are slow."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sim"))
# pylint: disable=wrong-import-position
import browser
import sim
from sim import lab

WIDTH, HEIGHT = 1200, 740


def main(picture):
    folder = lab.tmpdir()
    site = sim.Site("fattree2:12,4,8")
    for spine in ("spine2", "spine3", "spine4"):
        site.rate("leaf5", site.cable("leaf5", spine), 4, "EDR")
    site.refresh()
    for port in range(1, 13):
        site.pull("leaf9", port)
    site.refresh()
    path = os.path.join(folder, "fabric.html")
    done = site.ctl("report", "-o", path)
    if done.returncode != 0:
        sys.exit(done.stderr)
    chromium = browser.Browser()
    page = browser.Page(chromium, path, width=WIDTH, height=HEIGHT)
    page.ask("Emulation.setScrollbarsHidden", hidden=True)
    page.screenshot(picture, whole=False)
    chromium.close()
    site.free()


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

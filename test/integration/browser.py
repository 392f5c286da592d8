"""browser - Debian's Chromium without a window, driven over its own pipes (the DevTools protocol).

    chromium = browser.Browser()
    page = browser.Page(chromium, path, dark=True)
    page.value("document.title")
    page.press("Enter")
    page.screenshot("/tmp/page.png")
    page.close()
    chromium.close()

What the page says on its console, and every request that it makes beyond its own file, is in page.complaints and
page.requests.
"""
import base64
import json
import os
import select
import subprocess
import time

import lab

KEYS = {"Enter": ("\r", 13), "Escape": (None, 27), "ArrowLeft": (None, 37), "ArrowUp": (None, 38), "ArrowRight": (None, 39),
        "ArrowDown": (None, 40), "Tab": (None, 9), " ": (" ", 32)}


class Browser:
    """A browser, for any number of pages."""

    def __init__(self):
        lab.require("chromium")
        self.count, self._buffer = 0, b""
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        folder = lab.tmpdir()  # for its temporary files, too: it is killed
        # The browser takes its orders on 3, and answers on 4.
        argv = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", lab.find_command("chromium"), "--headless", "--no-sandbox",
                "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-breakpad", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self.process = lab.spawn(argv, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=folder))
        os.close(to_read)
        os.close(to_write)
        self.ask("Browser.getVersion")  # its helpers are there now, and belong to who has made it

    # -- the protocol: JSON with a NUL behind it

    def ask(self, method, session=None, heard=lambda event: None, **params):
        """Call a method, of a page's session or of the browser; its result. heard() gets the events that come meanwhile."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self.until(lambda event: event.get("id") == self.count, method, heard)
        if "error" in answer:
            raise lab.LabError(f"chromium: {method}: {answer['error']['message']}")
        return answer["result"]

    def until(self, wanted, what, heard):
        """The first message that is wanted."""
        while True:
            event = self._next(what)
            if wanted(event):
                return event
            heard(event)

    def _next(self, what):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], lab.HUNG)[0]:
                raise lab.LabError(f"chromium: no answer: {what}")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise lab.LabError(f"chromium ended: {what}")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)

    def close(self):
        lab.kill_group(self.process)
        os.close(self._in)
        os.close(self._out)


class Page:
    """One page of a browser, with storage of its own."""

    def __init__(self, browser, path, dark=False, width=1500, height=1100):
        self.browser = browser
        self.complaints, self.requests, self._session = [], [], None
        self._context = browser.ask("Target.createBrowserContext")["browserContextId"]
        self._target = browser.ask("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = browser.ask("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.theme(dark)
        self.url = "file://" + os.path.abspath(path)
        started = time.monotonic()
        self.ask("Page.navigate", url=self.url)
        browser.until(lambda event: event.get("method") == "Page.loadEventFired" and event.get("sessionId") == self._session, path,
                      self._heard)
        self.milliseconds = (time.monotonic() - started) * 1e3

    def ask(self, method, **params):
        """Call a method, and its result."""
        return self.browser.ask(method, self._session, self._heard, **params)

    def close(self):
        self.browser.ask("Target.closeTarget", targetId=self._target)
        self.browser.ask("Target.disposeBrowserContext", browserContextId=self._context)

    def _heard(self, event):
        method, params = event.get("method"), event.get("params", {})
        if event.get("sessionId") != self._session:
            return
        if method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description") or params["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(arg.get("value")) for arg in params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and params["request"]["url"] != self.url:
            self.requests.append(params["request"]["url"])

    # -- what a person does

    def theme(self, dark):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def value(self, expression):
        """What an expression of the page's own language has for a value."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise lab.LabError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def press(self, key, times=1):
        text, code = KEYS.get(key, (key, 0))
        for _ in range(times):
            self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def click(self, selector, x=0.5, y=0.5):
        """In the middle of an element, or at such a part of its width and height."""
        box = self.value(f"(e => {{ e.scrollIntoView({{block: 'nearest'}}); const b = e.getBoundingClientRect();"
                         f"return [b.x + b.width * {x}, b.y + b.height * {y}]; }})(document.querySelector({json.dumps(selector)}))")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def screenshot(self, path, whole=True):
        """A picture, in the format that the path ends with."""
        form = {"format": os.path.splitext(path)[1][1:], **({"quality": 70} if path.endswith(".webp") else {})}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=whole, **form)["data"]))

    def pdf(self):
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])

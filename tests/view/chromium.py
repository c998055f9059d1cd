# SPDX-License-Identifier: MIT
"""A headless Chromium, driven by its DevTools protocol over a pipe."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds that only a fault needs
NAMES = ["chromium", "chromium-browser", "google-chrome"]
OPTIONS = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
           "--no-first-run", "--disable-extensions", "--disable-background-networking",
           "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
           "--hide-scrollbars", "--force-color-profile=srgb"]


def program():
    """Its path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self):
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (*os.pipe(), *os.pipe())]
        theirs, self.out, self.into, other = ends  # the low numbers stay taken while it starts

        def place():  # it reads from 3 and writes to 4
            os.dup2(theirs, 3)
            os.dup2(other, 4)

        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program(), *OPTIONS, f"--user-data-dir={self.folder.name}"], preexec_fn=place,
            close_fds=False, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(other)
        self.number, self.bytes, self.events, self.tabs = 0, b"", [], []

    def close_tabs(self):
        while self.tabs:
            self.call("Target.closeTarget", targetId=self.tabs.pop())
        self.events = []

    def close(self):
        self.call("Browser.close")  # it does not end with its pipe
        os.close(self.out)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.into)
        self.folder.cleanup()

    def message(self, until):
        while b"\0" not in self.bytes:
            ready, _, _ = select.select([self.into], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not reply"
            part = os.read(self.into, 1 << 20)
            assert part, "the browser has ended"
            self.bytes += part
        text, _, self.bytes = self.bytes.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.number += 1
        text = {"id": self.number, "method": method, "params": parameters}
        if session:
            text["sessionId"] = session
        data = json.dumps(text).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        until = time.monotonic() + PATIENCE
        while (reply := self.message(until)).get("id") != self.number:
            self.events.append(reply)
        assert "error" not in reply, f"{method}: {reply['error']}"
        return reply["result"]

    def wait(self, method, session):
        """The next event of a kind, in order; those before it stay."""
        until = time.monotonic() + PATIENCE
        seen = 0
        while True:
            for i in range(seen, len(self.events)):
                event = self.events[i]
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(i)["params"]
            seen = len(self.events)
            self.events.append(self.message(until))


class Tab:
    """A page.  `requests` and `errors` have what it asked for and what went wrong."""

    def __init__(self, browser, url, width=1200, height=900, dark=False, scripts=True):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.tabs.append(target)
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network", "DOM":
            self(domain + ".enable")
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
             mobile=False)
        self("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if not scripts:
            self("Emulation.setScriptExecutionDisabled", value=True)
        self.load(url)

    def __call__(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def load(self, url):
        self("Page.navigate", url=url)
        self.browser.wait("Page.loadEventFired", self.session)

    def events(self, *methods):
        return [e["params"] for e in self.browser.events
                if e.get("sessionId") == self.session and e.get("method") in methods]

    def requests(self):
        self.js("0")  # events before this reply are there
        return [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]

    def errors(self):
        self.js("0")
        return [e for e in self.events("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                                       "Log.entryAdded")]

    def js(self, expression):
        reply = self("Runtime.evaluate", expression=expression, returnByValue=True,
                     awaitPromise=True)
        assert "exceptionDetails" not in reply, (expression, reply["exceptionDetails"])
        return reply["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x1, y1, x2, y2):
        self.mouse("mouseMoved", x1, y1)
        self.mouse("mousePressed", x1, y1, button="left", buttons=1, clickCount=1)
        self.mouse("mouseMoved", (x1 + x2) / 2, y2, button="left", buttons=1)
        self.mouse("mouseMoved", x2, y2, button="left", buttons=1)
        self.mouse("mouseReleased", x2, y2, button="left", clickCount=1)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self("Input.insertText", text=text)

    def picture(self, path=None):
        """The screen as base64 of a PNG.  A page behind another one draws no picture."""
        self("Page.bringToFront")
        data = self("Page.captureScreenshot", format="png")["data"]
        if path:
            with open(path, "wb") as f:
                f.write(base64.b64decode(data))
        return data

    def pdf(self):
        return base64.b64decode(self("Page.printToPDF", preferCSSPageSize=True)["data"])

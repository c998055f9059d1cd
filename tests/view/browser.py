# SPDX-License-Identifier: MIT
"""The page of the verb report in a headless Chromium: pictures, pointer, keys, search and print.

Numbers are compared with recount.py, which counts the lines of a night in its own way.
"""
import collections
import http.server
import json
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import chromium  # noqa: E402
import nights  # noqa: E402
import recount  # noqa: E402
from tool import Skip, contains, equal, run  # noqa: E402

NAMES = [name for name in nights.NIGHTS if name != "large"]
MANY = 20000      # tasks: more attempts on a lane than it has dots
LARGE = 100000
READABLE = 4.5    # least contrast of a text
PHONE = 400       # CSS pixels
MS = 10**6

# The background of an element is that of the nearest element that has one.
CONTRASTS = """(() => {
  const rgb = s => s.match(/[\\d.]+/g).map(Number);
  const luminance = c => c.slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92
    : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const ret = [];
  for (const e of document.body.querySelectorAll('*')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    if (['SCRIPT', 'STYLE', 'title'].includes(e.tagName) || !e.getClientRects().length) continue;
    const s = getComputedStyle(e), svg = e.namespaceURI.endsWith('svg');
    const [a, b] = [rgb(svg ? s.fill : s.color), ground(e)].map(luminance);
    ret.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName,
      e.textContent.slice(0, 40)]);
  }
  return ret;
})()"""


class Page(chromium.Tab):
    """The page of a night, and the night counted again."""

    def __init__(self, tool, name, tasks=None, change=lambda text: text, **how):
        lines = nights.text(name, tasks=tasks)
        path = tool.path(name + ".html")
        status, _, err = tool.run("report", "-o", path, "--from", tool.write("night.txt", lines))
        equal((status, err), (0, ""))
        with open(path) as f:
            text = f.read()
        tool.write(name + ".html", change(text))
        self.night = recount.Night(lines)
        self.order = {key: i for i, key in enumerate(self.night.gpus)}
        super().__init__(browser(), "file://" + path, **how)

    def ms(self, time):
        return (time - self.night.since) // MS

    def lane_of(self, attempt):
        return min((self.order[g] for g in attempt.gpus), default=len(self.order))

    def show_timeline(self):
        self.js("document.getElementById('timeline').scrollIntoView({block: 'center'})")

    def point(self, lane, ms, part=.5):
        """Where on the screen a time of a lane is; part: of the height of its bar."""
        return self.js("""(() => {
          const d = document.getElementById('timeline').dataset;
          const svg = document.getElementById('lanes');
          const r = svg.getBoundingClientRect(), k = r.width / 1100, g = {...svg.dataset};
          const x = +g.left + (%r - d.from) / (d.to - d.from) * g.dots;
          return [r.x + x * k, r.y + (+d.top + %d * d.lane + +d.above + %r * d.bar) * k];
        })()""" % (ms, lane, part))

    def tip(self):
        return self.js("document.getElementById('tip').textContent")

    def span(self):
        return [float(self.js(f"document.getElementById('timeline').dataset.{end}"))
                for end in ("from", "to")]

    def zoom(self, begin, end, lane=0):
        self.drag(*self.point(lane, begin), *self.point(lane, end))

    def find(self, text):
        self.js("document.querySelector('#search input').select()")
        self.type(text)
        shown = self.js("document.getElementById('count').textContent")
        rows = self.js("""[...document.querySelectorAll('#search tbody tr')]
                          .map(tr => [...tr.children].map(c => c.textContent))""")
        return int(re.sub(r"\D", "", shown.split("attempt")[0]) or 0), rows

    def fills(self):
        """Texture -> boxes, of the lanes as they are drawn."""
        return collections.Counter(self.js("""[...document.querySelectorAll(
          '#lanes path:is([fill^=url], [class^=t]:not(.tick))')].map(
          p => p.getAttribute('fill').startsWith('url') ? p.getAttribute('fill')
            : p.getAttribute('class'))""".replace(
                "p.getAttribute('fill').startsWith('url')",
                "(p.getAttribute('fill') || '').startsWith('url')")))

    def marks(self):
        """Lane -> the sum of its marks."""
        return {lane: n for lane, n in self.js("""[...document.querySelectorAll('#lanes g')].map(
          (g, i) => [i, [...g.querySelectorAll('.mark')].reduce(
            (sum, m) => sum + Number(m.dataset.n), 0)])""") if n}

    def bad_ends(self, begin, end):
        """The same from the lines of the night."""
        whole = self.ms(self.night.to)
        wanted = collections.Counter()
        for a in self.night.attempts:
            at = min(max(self.ms(max(a.ended, a.started)), 0), whole)
            if a.outcome not in ("ok", "running") and begin <= at and (at < end or end == whole):
                wanted[self.lane_of(a)] += 1
        return dict(wanted)


def browser():
    """One for all cases, without the tabs of the page before."""
    if not chromium.program():
        raise Skip("there is no Chromium here")
    if not browser.started:
        browser.started = chromium.Browser()
    browser.started.close_tabs()
    return browser.started


browser.started = None


def check_quiet(page):
    """It asks for nothing but itself, and nothing goes wrong."""
    requests = page.requests()
    equal((len(requests), requests[0][:5]), (1, "file:"))
    equal(page.errors(), [])


def test_each_night_is_quiet(tool):
    for name in NAMES:
        page = Page(tool, name)
        page.show_timeline()
        if page.night.attempts:
            page.mouse("mouseMoved", *page.point(0, page.ms(page.night.attempts[-1].started)))
            page.zoom(page.ms(page.night.to) / 4, page.ms(page.night.to) / 2)
            page.find("1")
        check_quiet(page)


def test_hover(tool):
    page = Page(tool, "night")
    page.show_timeline()
    equal(page.tip(), "")
    long = [a for a in page.night.attempts if a.ended - a.started > 100 * 1000 * MS][:20]
    assert len(long) == 20
    for a in long:
        page.mouse("mouseMoved", *page.point(page.lane_of(a), page.ms((a.started + a.ended) / 2)))
        assert page.tip().startswith("%d.%d " % a.task), (page.tip(), a)
        contains(page.tip(), f"GPU {page.lane_of(a)}")
    out = next(r for r in page.night.rows if r.kind == "out")
    gpu = page.order[out.what]
    page.mouse("mouseMoved", *page.point(gpu, page.ms(out.since + 600 * 1000 * MS)))
    contains(page.tip(), f"GPU {gpu}, out of use")
    bad = next(a for a in page.night.attempts if a.outcome == "crashed")
    page.mouse("mouseMoved", *page.point(page.lane_of(bad), page.ms(bad.ended), -.2))
    contains(page.tip(), "crashed")
    contains(page.tip(), "SIGSEGV")
    page.mouse("mouseMoved", 5, 5)
    equal(page.tip(), "")
    check_quiet(page)


def test_zoom_shows_each_bad_end(tool):
    """Also where an attempt is smaller than a dot.  [V4]"""
    for name, tasks in ("night", None), ("night", MANY), ("failed", None), ("failed", 9000):
        page = Page(tool, name, tasks)
        page.show_timeline()
        rng = random.Random(f"{name} {tasks}")
        whole = page.ms(page.night.to)
        equal(page.marks(), page.bad_ends(0, whole))
        for i in range(8):
            begin = rng.randrange(whole * 9 // 10)
            page.zoom(begin, rng.randrange(begin + whole // 40, whole))
            begin, end = page.span()
            assert end - begin < whole, "no zoom"
            equal((page.span(), page.marks()), ([begin, end], page.bad_ends(begin, end)))
            page.key("Escape")
            equal(page.span(), [0, whole])
        check_quiet(page)


def test_zoom_shows_the_same_kinds(tool):
    """Loads, GPUs that are kept free or out of use, time without an agent, and each class."""
    for name, tasks in ("night", None), ("night", MANY), ("adoption", None), ("shares", None):
        page = Page(tool, name, tasks)
        page.show_timeline()
        before = page.fills()
        whole = page.ms(page.night.to)
        page.zoom(whole * .001, whole * .999)
        assert page.span() != [0, whole]
        equal(set(page.fills()), set(before))
        page.key("Escape")
        equal(page.fills(), before)


def test_keys(tool):
    page = Page(tool, "night")
    page.show_timeline()
    whole = page.ms(page.night.to)
    page.js("document.getElementById('timeline').focus()")
    on_first = [a for a in page.night.attempts if 0 in [page.order[g] for g in a.gpus]]
    seen = []
    for _ in range(40):
        page.key("ArrowRight")
        seen.append(page.tip())
    tasks = [tip.split(" ")[0] for tip in seen if re.match(r"\d+\.\d+ ", tip)]
    equal(tasks, ["%d.%d" % a.task for a in sorted(on_first, key=lambda a: a.started)][:len(tasks)])
    assert len(tasks) > 30 and any("loading models" in tip for tip in seen), seen
    page.key("ArrowLeft")
    equal(page.tip(), seen[-2])
    page.key("ArrowDown")
    contains(page.tip(), "GPU 1")
    page.key("+")
    page.key("+")
    begin, end = page.span()
    equal(round(end - begin), round(whole / 4))
    for _ in range(300):
        page.key("ArrowRight")
    assert page.span()[0] > begin, "the cursor leaves the picture"
    page.key("-")
    page.key("Escape")
    equal((page.span(), page.tip()), ([0, whole], ""))
    check_quiet(page)


def test_search(tool):
    page = Page(tool, "night")
    attempts = page.night.attempts
    names = {number.decode() if isinstance(number, bytes) else str(number): batch["name"]
             for number, batch in page.night.batches.items()}

    def wanted(test):
        return sum(1 for a in attempts if test(a))
    equal(page.find("15.610")[0], wanted(lambda a: a.task == (15, 610)))
    equal(page.find("61")[0], wanted(lambda a: 61 in a.task))
    equal(page.find("crashed")[0], wanted(lambda a: a.outcome == "crashed"))
    equal(page.find("judge, ERROR")[0],
          wanted(lambda a: a.outcome == "error" and names[str(a.task[0])] == "judge"))
    on = [[a for a in attempts if gpu in [page.order[g] for g in a.gpus]] for gpu in range(8)]
    most = max(range(8), key=lambda gpu: len(on[gpu]))
    number, rows = page.find(f"gpu {most}")
    equal((number, len(rows)), (len(on[most]), 100))
    assert all(f"GPU {most}" in row[2] for row in rows), rows
    contains(page.js("document.getElementById('count').textContent"), "the first 100 are shown")
    equal(page.find("no such task")[0], 0)
    equal(page.find("")[1], [])
    number, rows = page.find("crashed")
    page.js("document.querySelector('#search tbody button').click()")
    equal(page.tip().split(" ")[0], rows[0][0].split(" ")[0])
    begin, end = page.span()
    assert end - begin < page.ms(page.night.to) / 10
    check_quiet(page)


def test_hostile_texts_make_no_elements(tool):
    """[V5]"""
    page = Page(tool, "hostile")
    page.show_timeline()
    tags = set(page.js("[...document.querySelectorAll('*')].map(e => e.tagName)"))
    for word in "script", "img", "error", "ok":
        number, rows = page.find(word)
        assert number or word == "img", word
        inside = page.js("""[...document.querySelectorAll('#search td, #search th, #tip')].map(
          e => e.querySelectorAll(':not(button)').length).reduce((a, b) => a + b)""")
        equal((word, inside), (word, 0))
    assert any("<script>" in cell for row in page.find("script")[1] for cell in row)
    page.js("document.getElementById('timeline').focus()")
    for _ in range(60):
        page.key("ArrowRight")
    for key in "+", "ArrowDown", "ArrowDown", "+":
        page.key(key)
    equal(set(page.js("[...document.querySelectorAll('*')].map(e => e.tagName)")) - tags, set())
    check_quiet(page)


def test_contrast(tool):
    """[V7]"""
    for dark in False, True:
        page = Page(tool, "night", dark=dark)
        page.show_timeline()
        whole = page.ms(page.night.to)
        page.zoom(whole * .2, whole * .4)
        page.find("crashed")
        page.show_timeline()
        page.mouse("mouseMoved", *page.point(1, whole * .3))
        assert page.tip()
        seen = page.js(CONTRASTS)
        assert len(seen) > 200, len(seen)
        equal([s for s in seen if s[0] < READABLE], [])
        ground = page.js("getComputedStyle(document.body).backgroundColor")
        equal(sum(map(int, re.findall(r"\d+", ground))) < 384, dark)


def test_narrow(tool):
    """No text leaves a narrow page; wide tables and pictures scroll in themselves."""
    for name in "night", "hostile", "mig":
        page = Page(tool, name, width=PHONE, height=800)
        page.find("error")
        page.show_timeline()
        page.mouse("mouseMoved", PHONE - 20, page.point(0, 0)[1])
        equal(page.js("document.documentElement.scrollWidth"), PHONE)
        wide = page.js("""[...document.querySelectorAll(
          'h1, h2, p, .answers *, .legend, #tip')]
          .filter(e => e.getBoundingClientRect().right > innerWidth + .5
                       || e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
          .map(e => e.textContent.slice(0, 60))""")
        equal((name, wide), (name, []))


def test_print(tool):
    """Nothing is cut: the last column of each table is on paper."""
    if not shutil.which("pdftotext"):
        raise Skip("there is no pdftotext here")
    for name in "night", "hostile":
        page = Page(tool, name)
        cells = page.js("""[...document.querySelectorAll('section:not(.screen) table')].flatMap(
          t => [...t.rows].map(r => r.cells[r.cells.length - 1].innerText))""")
        with open(tool.path("page.pdf"), "wb") as f:
            f.write(page.pdf())
        text = subprocess.run(["pdftotext", "-raw", tool.path("page.pdf"), "-"], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        plain = re.sub(r"[\s\u00ad]", "", text).lower()
        assert len(cells) > 10
        for cell in cells:
            contains(plain, re.sub(r"\s", "", cell).lower())
        assert "findatask" not in plain


def pixels(page, *places):
    """Colours of squares of 14 x 10 pixels, each as a text that equals that of an equal square."""
    other = chromium.Tab(page.browser, "about:blank")
    return other.js("""(async () => {
      const blob = await (await fetch('data:image/png;base64,%s')).blob();
      const picture = await createImageBitmap(blob), canvas = document.createElement('canvas');
      canvas.width = picture.width, canvas.height = picture.height;
      const context = canvas.getContext('2d');
      context.drawImage(picture, 0, 0);
      return %s.map(([x, y]) => [...context.getImageData(x - 7, y - 5, 14, 10).data].join());
    })()""" % (page.picture(), json.dumps([[round(x), round(y)] for x, y in places])))


def check_lanes_differ(page):
    """Squares in an attempt of each class, a load, and a GPU that is out of use or kept free."""
    long = {}
    for a in page.night.attempts:
        if a.ended - a.started > 600 * 1000 * MS and a.outcome == "ok":
            long.setdefault(a.shape, (page.lane_of(a), page.ms((a.started + a.ended) / 2)))
    for row in page.night.rows:
        if row.kind in ("out", "kept") and (row.until or page.night.to) - row.since > 10**12:
            long.setdefault(row.kind, (page.order[row.what], page.ms(row.since + 9 * 10**11)))
    assert {"out", "kept"} < set(long), long
    whole = page.ms(page.night.to)
    page.js(f"""Object.assign(document.getElementById('timeline').dataset,
                              {{from: 0, to: {whole}}})""")
    squares = pixels(page, *(page.point(lane, ms, .7) for lane, ms in long.values()))
    equal(len(set(squares)), len(squares))
    for square in squares:
        assert len(set(square.split(","))) > 1, "nothing is drawn"


def test_without_scripts(tool):
    page = Page(tool, "night", scripts=False)
    page.show_timeline()
    equal(page.js("document.querySelectorAll('#search input, #tip').length"), 0)
    contains(page.js("document.getElementById('search').innerText"), "needs scripts")
    check_lanes_differ(page)
    check_quiet(page)


def test_without_style_sheets(tool):
    """As a server of artefacts sends it, which allows neither scripts nor style sheets in it."""
    page = Page(tool, "night")
    with open(tool.path("night.html"), "rb") as f:
        text = f.read()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy",
                             "sandbox; default-src 'none'; style-src 'self'")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            page.load(f"http://127.0.0.1:{server.server_port}/")
            page.show_timeline()
            equal(page.js("getComputedStyle(document.body).maxWidth"), "none")
            equal(page.js("document.querySelectorAll('#search input, #tip').length"), 0)
            check_lanes_differ(page)
        finally:
            server.shutdown()
            thread.join()


def test_a_page_that_loads_itself_keeps_its_place(tool):
    page = Page(tool, "running", change=lambda text: text.replace(
        "<title>", "<meta http-equiv=\"refresh\" content=\"600\">\n<title>", 1))
    page.find("crashed")
    page.show_timeline()
    whole = page.ms(page.night.to)
    page.zoom(whole * .2, whole * .4)

    def place():
        return (list(map(round, page.span())), page.js("scrollY"),
                page.js("document.querySelector('#search input').value"))
    before = place()
    page("Page.reload")
    page.browser.wait("Page.loadEventFired", page.session)
    equal(place(), before)
    page.key("Escape")
    equal(page.errors(), [])


def cpu(page):
    """ms of CPU time that the process of the page has taken."""
    return 1000 * next(m["value"] for m in page("Performance.getMetrics")["metrics"]
                       if m["name"] == "ProcessTime")


def timed(page, name, does):
    """Prints medians of five: the time of a script until the next picture; of that, the script
    itself; and the CPU time of both, which other programs do not lengthen."""
    taken = []
    for i in range(5):
        before = cpu(page)
        script, whole = page.js("""new Promise(done => requestAnimationFrame(() => {
          const begin = performance.now();
          %s;
          const script = performance.now() - begin;
          requestAnimationFrame(() => setTimeout(
            () => done([script, performance.now() - begin])));
        }))""" % does(i))
        taken.append((whole, script, cpu(page) - before))
    whole, script, used = map(statistics.median, zip(*taken))
    print(f"{name}: {whole:.0f} ms, script {script:.0f} ms, CPU time {used:.0f} ms")


def test_figures(tool):
    """Prints how long a page of 100,000 attempts takes."""
    page = Page(tool, "large", LARGE)
    size = pathlib.Path(tool.path("large.html")).stat().st_size
    assert size < 3 * 2**20, size
    page("Performance.enable")
    page.show_timeline()
    whole = page.ms(page.night.to)
    print(f"\npage: {size / 2**20:.2f} MiB")
    print("loaded: %.0f ms, CPU time %.0f ms" % (
        page.js("performance.getEntriesByType('navigation')[0].loadEventEnd"), cpu(page)))
    x, y = page.point(0, whole / 3)
    timed(page, "hover", lambda i: f"""document.getElementById('lanes').dispatchEvent(
      new PointerEvent('pointermove', {{clientX: {x + 20 * i}, clientY: {y}}}))""")
    assert page.tip()
    timed(page, "search", lambda i: f"""document.querySelector('#search input').value =
      'rec-11 ok 1{i}';
      document.querySelector('#search input').dispatchEvent(new Event('input'))""")
    assert page.js("document.querySelectorAll('#search tbody tr').length")
    page.js("document.getElementById('timeline').focus()")
    timed(page, "zoom", lambda i: """document.getElementById('timeline').dispatchEvent(
      new KeyboardEvent('keydown', {key: '+'}))""")
    assert page.span() != [0, whole]
    page.key("Escape")
    timed(page, "zoom to most of it", lambda i: """
      document.getElementById('timeline').dispatchEvent(
        new KeyboardEvent('keydown', {key: 'Escape'}));
      document.getElementById('lanes').dispatchEvent(new WheelEvent('wheel',
      {ctrlKey: true, deltaY: -1, clientX: 600, clientY: 300, cancelable: true}))""")
    check_quiet(page)


try:
    run(globals(), "browser")
finally:
    if browser.started:
        browser.started.close()

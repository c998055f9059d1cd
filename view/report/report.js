// SPDX-License-Identifier: MIT
// report.js - hover, zoom and search.  A text of the night is set as text, never as markup.
'use strict';
(() => {
const D = JSON.parse(document.getElementById('data').textContent), N = D.attempts;
const figure = document.getElementById('timeline'), svg = document.getElementById('lanes');
if (!D.whole || !D.span) return;
const G = {}, data = {...figure.dataset, ...svg.dataset}; // dots: of lanes, and of the time
for (const k in data) G[k] = +data[k];
const OK = 1, WIDTH = 1100, ROWS = 8, RECTANGLES = 8000, LETTER = 7, LEAST = 1000, DAY = 86400e3;

function make(parent, tag, attributes, text) {
  const node = document.createElementNS(parent.namespaceURI, tag);
  for (const k in attributes) node.setAttribute(k, attributes[k]);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

// ---- Rows (data.c).  An item is an attempt, or N + a bar; times are ms since the begin ----
function column(name, n) {
  const ret = new Float64Array(n);
  let value = 0, i = 0;
  for (const e of D[name]) {
    if (typeof e === 'number') ret[i++] = value += e;
    else for (let k = e[1]; k; k--) ret[i++] = value += e[0];
  }
  return ret;
}
function both(a, b) {
  const ret = new Float64Array(N + D.bars);
  ret.set(column(a, N));
  ret.set(column(b, D.bars), N);
  return ret;
}
const batch = column('batch', N), number = column('number', N), attempt = column('attempt', N);
const outcome = column('outcome', N), ready = column('ready', N), name = column('name', N);
const start = both('start', 'bar_start'), length = both('length', 'bar_length');
const kind = both('class', 'bar_class'), text = both('text', 'bar_text');
const set = column('set', N), gpu = column('bar_gpu', D.bars), use = column('bar_use', D.bars);
const end = start.map((s, i) => length[i] < 0 ? Math.max(s, D.span) : s + length[i]);
const isBad = i => i < N && outcome[i] > OK;

// ---- Words (words.c) ----
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const two = n => String(n).padStart(2, '0'), count = n => n.toLocaleString('en');
const zone = t => (D.zones.findLast(z => z[0] <= t) || D.zones[0])[1] * 1000;
function clock(t, seconds) {
  const d = new Date(D.from + t + zone(t));
  const date = D.span > DAY || t < 0 ? `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]} ` : '';
  return `${date}${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` +
    (seconds ? ':' + two(d.getUTCSeconds()) : '');
}
function span(t) {
  const s = Math.floor(t / 1e3), minutes = Math.floor(s / 60), h = Math.floor(s / 3600);
  return t < 1e3 ? t + ' ms' : s < 10 ? (Math.floor(t / 100) / 10).toFixed(1) + ' s'
    : s < 100 ? s + ' s' : minutes < 90 ? minutes + ' min'
    : h < 48 ? `${h} h ${two(minutes % 60)}` : `${Math.floor(h / 24)} d ${h % 24} h`;
}
function when(i) {
  return clock(start[i], true) + (length[i] < 0 ? ', still runs' : length[i] === 0 ? ''
    : ' to ' + clock(end[i], true));
}
const batches = new Map(D.batches), id = i => `${batch[i]}.${number[i]}`;
const HEADS = ['task', 'end', 'where', 'when', 'ran', 'waited', 'class', 'why'];
function words(i) {
  if (i >= N)
    return [D.gpus[gpu[i - N]], D.uses[use[i - N]][0], kind[i] < 0 ? '' : D.classes[kind[i]][0],
      D.texts[text[i]], when(i), span(length[i])];
  const again = attempt[i] > 1 ? 'attempt ' + attempt[i] : '';
  return [[id(i), batches.get(batch[i]), D.texts[name[i]], again].filter(Boolean).join(' '),
    `${D.glyphs[outcome[i]]} ${D.outcomes[outcome[i]]}`.trim(),
    D.sets[set[i]].map(g => D.gpus[g]).join(', ') || 'no GPU', when(i),
    attempt[i] ? 'ran ' + span(end[i] - start[i]) : 'did not run',
    ready[i] > D.span ? '' : 'waited ' + span(start[i] - ready[i]), D.classes[kind[i]][0],
    D.texts[text[i]]];
}

// ---- Lanes: the items of each by start, and the row of each (lanes.c) ----
const whole = [...svg.childNodes];
const lanes = [...svg.querySelectorAll('g[data-gpu]')].map((g, k) => (
  {k, gpu: g.dataset.gpu, head: [...g.children].slice(0, 2), items: [], row: [], rows: []}));
const lanesOf = D.sets.map(set => set.length ? set : [D.gpus.length]);
for (const i of Uint32Array.from(start.keys()).sort((a, b) => start[a] - start[b] || a - b))
  for (const k of i < N ? lanesOf[set[i]] : [gpu[i - N]]) lanes[k].items.push(i);
for (const lane of lanes) {
  let until = [], last = -Infinity;
  const close = () => {
    while (lane.rows.length < lane.row.length) lane.rows.push(until.length || 1);
    until = [];
  };
  for (const i of lane.items) {
    const runs = i < N && attempt[i], free = until.findIndex(t => t <= start[i]);
    if (runs && start[i] >= last) close();
    const row = runs && start[i] < last ? free < 0 ? until.length : free : 0;
    lane.row.push(row);
    if (runs) until[row] = end[i], last = Math.max(last, end[i]);
  }
  close();
}
const isMarked = (lane, i) => isBad(i) && lanesOf[set[i]][0] === lane.k;
const top = lane => G.top + lane.k * G.lane + G.above;

// ---- The part of the night that is drawn ----
let from = 0, to = D.span;
const inside = t => Math.min(Math.max(t, from), to);
const x = t => G.left + (inside(t) - from) / (to - from) * G.dots;
const dotOf = t => Math.min(Math.floor((inside(t) - from) / (to - from) * G.dots), G.dots - 1);

// Boxes of a lane, a path for each texture.
function painter(lane) {
  const paths = [], boxes = [];
  return {
    boxes,
    add(x1, x2, up, high, t) {
      if (high <= 0 || x2 <= x1) return;
      boxes.push({x1, x2, t});
      const w = (x2 - x1).toFixed(1), d = `M${x1.toFixed(1)} ${(top(lane) + up).toFixed(1)}`;
      (paths[t] ||= []).push(`${d}h${w}v${high.toFixed(1)}h-${w}z`);
    },
    write: g => paths.forEach((d, t) => make(g, 'path', {d: d.join(''),
      ...document.getElementById('t' + t) ? {fill: `url(#t${t})`} : {class: 't' + t}})),
  };
}

function paintItems(lane, list, paint) {
  for (const k of list) {
    const i = lane.items[k], high = G.bar / lane.rows[k], x1 = x(start[i]), x2 = x(end[i]);
    const until = Math.max(i < N && x2 - x1 > 3 ? x2 - .5 : x2, x1 + .6);
    if (i >= N && use[i - N] === D.low) paint.add(x1, until, G.bar - 4, 4, D.uses[D.low][1]);
    else if (i >= N) paint.add(x1, until, 0, G.bar, D.uses[use[i - N]][1]);
    else if (attempt[i]) paint.add(x1, until, high * lane.row[k],
      high - (lane.rows[k] > 1 ? .5 : 0), isBad(i) ? D.uses[1][1] : D.classes[kind[i]][1]);
  }
}

// Adds the time of a stretch, in dots, to the dots that it is in.
function spread(sums, a, b) {
  const by = G.dots / (to - from), begin = (inside(a) - from) * by, until = (inside(b) - from) * by;
  const last = Math.min(Math.floor(until), G.dots - 1);
  for (let d = Math.min(Math.floor(begin), last); d <= last && begin < until; d++)
    sums[d] += Math.min(until, d + 1) - Math.max(begin, d);
}
// The height of a dot is what part of it was used; tasks without a GPU: how many ran.
function paintBins(lane, list, paint) {
  const time = [], uses = D.uses.map(() => new Float64Array(G.dots)), until = [from, from];
  for (const k of list) {
    const i = lane.items[k], u = i >= N ? use[i - N] : lane.gpu ? +isBad(i) : 0;
    if (i < N && !attempt[i]) continue;
    const t = i < N ? D.classes[kind[i]][1] : 0;
    if (u === 0) spread(time[t] ||= new Float64Array(G.dots), start[i], end[i]);
    spread(uses[u], i < N && lane.gpu ? Math.max(start[i], until[u]) : start[i], end[i]);
    if (i < N) until[u] = Math.max(until[u], end[i]);
  }
  const most = lane.gpu ? 1 : Math.max(...uses[0]), open = [];
  for (let d = 0; d <= G.dots; d++) {
    let below = 0, longest = 0;
    time.forEach((sums, t) => { if (!(sums[d] <= (time[longest] || [0])[d])) longest = t; });
    for (let u = 0; u < D.low; u++) {
      const bottom = Math.round(below * G.bar), t = u ? D.uses[u][1] : longest;
      below = Math.min(below + (d < G.dots && most ? uses[u][d] / most : 0), 1);
      const high = Math.round(below * G.bar), o = open[u] || {};
      if (d < G.dots && o.high === high && o.bottom === bottom && o.t === t) continue;
      paint.add(G.left + o.d, G.left + d, G.bar - o.high, o.high - o.bottom, o.t);
      open[u] = {d, high, bottom, t};
    }
  }
}

// Each bad end is a tick, and is in the number of a mark (marks.c).
function drawMarks(g, lane, list) {
  const dots = [], groups = [], y = top(lane) - G.above;
  for (const k of list) {
    const i = lane.items[k], e = Math.min(end[i], D.span), d = dotOf(e);
    if (!isMarked(lane, i) || e < Math.min(from, D.span) || (e >= to && to < D.span)) continue;
    dots[d] ||= D.outcomes.map(() => 0);
    dots[d][outcome[i]]++;
  }
  const said = n => n.map((c, o) => c ? D.glyphs[o] + (c > 1 ? count(c) : '') : '')
    .filter(Boolean).join(' ');
  const half = m => said(m.n).length * 4.5 + 2;
  const middle = m => Math.min(Math.max((m.a + m.b) / 2, half(m)), G.dots - half(m));
  dots.forEach((n, d) => {
    let m = {a: d, b: d, n}, o;
    while ((o = groups.at(-1)) && middle(o) + half(o) > middle(m) - half(m))
      m = {a: groups.pop().a, b: m.b, n: m.n.map((c, k) => c + o.n[k])};
    groups.push(m);
  });
  const ticks = dots.map((_, d) => `M${G.left + d} ${y + 6}h1.5v5h-1.5z`).join('');
  if (ticks) make(g, 'path', {class: 'tick', d: ticks});
  for (const m of groups)
    make(g, 'text', {class: 'mark', 'text-anchor': 'middle', x: G.left + middle(m), y: y + 5,
      'data-n': m.n.reduce((a, b) => a + b)}, said(m.n));
}

// Ids of tasks and texts of bars where they fit, and each class once.
function drawNotes(g, lane, list, boxes) {
  const written = new Set(), y = top(lane) + G.bar / 2 + 4;
  const note = (x1, x2, s, least) => {
    const room = Math.floor((x2 - x1 - 10) / LETTER);
    if (!s || s.length > room && room < least) return false;
    make(g, 'text', {class: 'note', x: x1 + 5, y, 'stroke-width': 4, 'stroke-linejoin': 'round',
      'paint-order': 'stroke'}, s.length > room ? s.slice(0, room - 1) + '…' : s);
    return true;
  };
  for (const k of list) {
    const i = lane.items[k], x1 = x(start[i]), x2 = x(end[i]);
    if (i >= N) note(x1, x2, D.texts[text[i]] || D.uses[use[i - N]][0], 8);
    else if (attempt[i] && lane.rows[k] === 1) {
      const name = D.classes[kind[i]], first = !written.has(name[1]);
      if (first && note(x1, x2, `${id(i)} ${name[0]}`, Infinity) || note(x1, x2, id(i), Infinity))
        written.add(name[1]);
    }
  }
  const stretches = [];
  for (const b of boxes) {
    const last = stretches.at(-1);
    if (last && last.t === b.t && b.x1 <= last.x2 + 4) last.x2 = Math.max(last.x2, b.x2);
    else stretches.push({...b});
  }
  for (const s of stretches) {
    const [name, other] = D.classes.filter(c => c[1] === s.t);
    if (name && !other && !written.has(s.t) && s.x2 - s.x1 > 90 && note(s.x1, s.x2, name[0], 8))
      written.add(s.t);
  }
}

function drawLane(lane) {
  const g = make(svg, 'g', {'data-gpu': lane.gpu}), paint = painter(lane), list = [];
  lane.items.forEach((i, k) => { if (end[i] >= from && start[i] <= to) list.push(k); });
  const few = list.length <= Math.min(RECTANGLES / lanes.length, G.dots)
    && list.every(k => lane.rows[k] <= ROWS);
  g.append(...lane.head.map(node => node.cloneNode(true)));
  (few ? paintItems : paintBins)(lane, list, paint);
  paint.write(g);
  drawNotes(g, lane, few ? list : list.filter(k => lane.items[k] >= N), paint.boxes);
  drawMarks(g, lane, list);
  if (to === D.span && list.some(k => lane.items[k] < N && length[lane.items[k]] < 0))
    make(g, 'path', {class: 'runs',
      d: `M${G.left + G.dots + 1} ${top(lane) + G.bar / 2 - 5}l6 5l-6 5z`});
}

const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400]; // s, as those of chart.c
function drawAxis(bottom) {
  const most = D.span > DAY ? 9 : 13, fits = STEPS.find(s => (to - from) / (s * 1e3) < most);
  const step = fits ? fits * 1e3 : (Math.floor((to - from) / DAY / most) + 1) * DAY;
  const base = D.from + zone(from);
  for (let t = Math.ceil((base + from) / step) * step - base; t <= to; t += step) {
    make(svg, 'path', {class: 'line', d: `M${x(t).toFixed(1)} ${G.top - 4}V${bottom}`});
    make(svg, 'text', {class: 'dim', x: x(t), y: 12, 'text-anchor': 'middle'},
      clock(t, step < 6e4));
  }
  for (const [t, s] of D.lives.filter(l => l[0] >= from && l[0] <= to)) {
    make(svg, 'path', {class: 'life', fill: 'none', 'stroke-dasharray': '3 3',
      d: `M${x(t)} ${G.top}V${bottom - 14}`});
    make(svg, 'text', {class: 'dim', x: x(t) + 2, y: bottom - 4}, s);
  }
}

function zoom(a, b) {
  const wide = Math.min(Math.max(b - a, LEAST), D.span);
  from = Math.max(0, Math.min((a + b - wide) / 2, D.span - wide));
  to = Math.min(from + wide, D.span);
  figure.dataset.from = from;
  figure.dataset.to = to;
  showAll.disabled = to - from === D.span;
  svg.replaceChildren(...showAll.disabled ? whole : []);
  if (showAll.disabled) return;
  drawAxis(svg.viewBox.baseVal.height);
  lanes.forEach(drawLane);
}
const scale = (t, by) => zoom(t - (t - from) * by, t + (to - t) * by);

// ---- Pointer ----
const tip = make(document.body, 'div', {id: 'tip', role: 'status', class: 'screen'});
function say(i, left, y) {
  tip.textContent = words(i).filter(Boolean).join(', ');
  const under = y + 18 + tip.offsetHeight < innerHeight;
  tip.style.left = Math.max(4, Math.min(left + 12, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (under ? y + 18 : y - tip.offsetHeight - 8) + 'px';
}
const hush = () => { tip.textContent = ''; };
function at(e) {
  const r = svg.getBoundingClientRect(), k = WIDTH / r.width, y = (e.clientY - r.top) * k - G.top;
  const dot = (e.clientX - r.left) * k;
  return {dot, t: inside(from + (dot - G.left) / G.dots * (to - from)),
    lane: lanes[Math.floor(y / G.lane)], part: (y % G.lane - G.above) / G.bar};
}
// The item at a point, or the nearest attempt within two dots; above a bar the nearest bad end.
function find(p) {
  const dot = (to - from) / G.dots, mark = p.part < 0;
  let best = -1, least = (mark ? 6 : 2) * dot;
  for (let k = 0; p.lane && p.dot >= G.left && k < p.lane.items.length; k++) {
    const i = p.lane.items[k], rows = p.lane.rows[k];
    const row = Math.floor(Math.min(Math.max(p.part, 0), .999) * rows);
    if (mark ? !isMarked(p.lane, i) : i < N && rows > 1 && row !== p.lane.row[k]) continue;
    const away = Math.max(start[i] - p.t, p.t - end[i]);
    const far = mark ? Math.abs(end[i] - p.t) : i < N ? away : away < 0 ? dot / 2 : Infinity;
    if (far < least) best = i, least = far;
  }
  return best;
}
let drag = null;
svg.addEventListener('pointermove', e => {
  const p = at(e), i = find(p);
  if (drag) drag.box.setAttribute('x', Math.min(p.dot, drag.dot));
  if (drag) drag.box.setAttribute('width', Math.abs(p.dot - drag.dot));
  if (i < 0) hush(); else say(i, e.clientX, e.clientY);
});
svg.addEventListener('pointerleave', hush);
svg.addEventListener('pointerdown', e => {
  if (e.button || e.pointerType === 'touch') return; // a finger scrolls
  svg.setPointerCapture(e.pointerId);
  const box = {class: 'drag', y: G.top, height: lanes.length * G.lane};
  drag = {...at(e), box: make(svg, 'rect', box)};
});
function drop(e) {
  const begin = drag, p = at(e);
  drag = null;
  if (begin) begin.box.remove();
  if (begin && e.type === 'pointerup' && Math.abs(p.dot - begin.dot) > 6)
    zoom(Math.min(begin.t, p.t), Math.max(begin.t, p.t));
}
svg.addEventListener('pointerup', drop);
svg.addEventListener('pointercancel', drop);
svg.addEventListener('wheel', e => {
  if (!e.ctrlKey) return; // without it the page scrolls
  e.preventDefault();
  scale(at(e).t, e.deltaY > 0 ? 1.25 : .8);
}, {passive: false});

// ---- Keys: a cursor on the items ----
let cursor = {lane: 0, k: -1};
function show(lane, k) {
  if (!lane.items.length) return hush();
  cursor = {lane: lane.k, k: Math.min(Math.max(k, 0), lane.items.length - 1)};
  const i = lane.items[cursor.k], wide = to - from;
  if (end[i] < from || start[i] > to) zoom(start[i] - wide / 2, start[i] + wide / 2);
  const r = svg.getBoundingClientRect(), size = r.width / WIDTH;
  say(i, r.left + (x(start[i]) + x(end[i])) / 2 * size, r.top + (top(lane) + G.bar) * size - 12);
}
function middle() {
  return cursor.k < 0 ? (from + to) / 2 : inside(start[lanes[cursor.lane].items[cursor.k]]);
}
function nearest(lane, t) {
  const k = lane.items.findIndex(i => end[i] >= t);
  return k < 0 ? lane.items.length - 1 : k;
}
function across(by) {
  const lane = lanes[cursor.lane];
  if (lane) show(lane, cursor.k < 0 ? nearest(lane, from) : cursor.k + by);
}
function along(by) {
  const lane = lanes[Math.min(Math.max(cursor.lane + by, 0), lanes.length - 1)];
  cursor = {lane: lane.k, k: cursor.k < 0 ? -1 : nearest(lane, middle())};
  show(lane, cursor.k < 0 ? nearest(lane, from) : cursor.k);
}
const keys = {
  '+': () => scale(middle(), .5), '=': () => scale(middle(), .5), '-': () => scale(middle(), 2),
  Escape: () => { hush(); zoom(0, D.span); },
  ArrowLeft: () => across(-1), ArrowRight: () => across(1),
  ArrowUp: () => along(-1), ArrowDown: () => along(1),
};
figure.addEventListener('keydown', e => {
  if (e.ctrlKey || e.altKey || e.metaKey || !keys[e.key] || !lanes.length) return;
  e.preventDefault();
  keys[e.key]();
});
figure.addEventListener('blur', hush);
const tools = document.createElementNS(figure.namespaceURI, 'p');
tools.className = 'screen dim';
tools.textContent = 'Point at a task to read it. Drag over a part to enlarge it, or turn ' +
  'the wheel with Ctrl. Keys: arrows, + and -, Esc. ';
function button(parent, s, does) {
  const ret = make(parent, 'button', {type: 'button'}, s);
  ret.addEventListener('click', does);
  return ret;
}
button(tools, 'enlarge', keys['+']);
button(tools, 'shrink', keys['-']);
const showAll = button(tools, 'show all', keys.Escape);
figure.after(tools);
svg.classList.add('zooms');

// ---- Search ----
const section = document.getElementById('search'), line = document.getElementById('find');
line.textContent = '';
const input = make(line, 'input', {type: 'search', 'aria-label': 'Find a task',
  placeholder: '15.610, sweep, crashed, GPU 5'});
const found = make(line, 'span', {role: 'status', id: 'count'});
const table = make(make(section, 'div', {class: 'scroll'}), 'table', {});
const heads = make(make(table, 'thead', {}), 'tr', {}), body = make(table, 'tbody', {});
for (const s of HEADS) make(heads, 'th', {scope: 'col'}, s);
table.hidden = true;

// Which attempts have a word: digits are an id, or stand in a text.
function has(word) {
  const within = list => list.map(s => s.toLowerCase().includes(word));
  const [isId, b, n] = /^(\d+)(?:\.(\d+))?$/.exec(word) || [];
  const texts = within(D.texts), outcomes = within(D.outcomes);
  const classes = within(D.classes.map(c => isId ? '' : c[0]));
  const named = new Set(D.batches.filter(b => b[1].toLowerCase().includes(word)).map(b => b[0]));
  const gpus = D.gpus.map(g => !isId && (' ' + g.toLowerCase()).replace(':', ' :') + ' ')
    .map(g => g && g.includes(` ${word.replace(':', ' :')} `));
  const sets = D.sets.map(set => set.some(g => gpus[g]));
  return i => texts[text[i]] || texts[name[i]] || outcomes[outcome[i]] || classes[kind[i]] ||
    sets[set[i]] || named.has(batch[i]) ||
    isId && (n === undefined ? batch[i] === +b || number[i] === +b
      : batch[i] === +b && number[i] === +n);
}
function goTo(i) {
  const lane = lanes[lanesOf[set[i]][0]], wide = 4 * Math.max(end[i] - start[i], LEAST);
  zoom(start[i] - wide, end[i] + wide);
  figure.scrollIntoView({block: 'center'});
  figure.focus({preventScroll: true});
  show(lane, lane.items.indexOf(i));
}
function search() {
  const wanted = (input.value.toLowerCase().match(/gpu \d[\w:]*|[^\s,]+/g) || []).map(has);
  let n = 0;
  body.textContent = '';
  for (let i = 0; wanted.length && i < N; i++) {
    if (!wanted.every(fits => fits(i)) || ++n > 100) continue;
    const tr = make(body, 'tr', {}), [first, ...rest] = words(i);
    button(make(tr, 'th', {scope: 'row'}), first, () => goTo(i));
    for (const s of rest) make(tr, 'td', {}, s);
  }
  table.hidden = n === 0;
  found.textContent = !wanted.length ? '' : ` ${count(n)} ${n === 1 ? 'attempt' : 'attempts'}` +
    (n > 100 ? ', the first 100 are shown' : '');
}
input.addEventListener('input', search);

// ---- A page that loads itself again keeps its place ----
zoom(0, D.span);
if (document.querySelector('meta[http-equiv=refresh]')) {
  const key = 'gpudispatch ' + location.pathname;
  try { // a browser may keep nothing for a file
    const kept = JSON.parse(sessionStorage.getItem(key)) || {y: scrollY, find: ''};
    if (kept.from) zoom(kept.from - D.from, kept.to - D.from);
    input.value = kept.find;
    search();
    scrollTo(0, kept.y);
    addEventListener('pagehide', () => sessionStorage.setItem(key, JSON.stringify({y: scrollY,
      find: input.value, ...showAll.disabled ? {} : {from: from + D.from, to: to + D.from}})));
  } catch { /* each load begins anew */ }
}
})();

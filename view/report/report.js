// SPDX-License-Identifier: MIT
// report.js - hover, zoom and search.  A text of the night is set as text, never as markup.
'use strict';
(() => {
const D = JSON.parse(document.getElementById('data').textContent);
const figure = document.getElementById('timeline'), svg = document.getElementById('lanes');
if (!D.whole || !D.span) return;
const G = {}; // of the picture: dots from the left and the top, ...
for (const [k, v] of Object.entries({...figure.dataset, ...svg.dataset})) G[k] = +v;
const WIDTH = 1100, ROWS = 8, RECTANGLES = 8000, LEAST = 1000, DAY = 86400e3;
const clamp = (v, least, most) => Math.min(Math.max(v, least), most);

function make(parent, tag, attributes, text) {
  const node = document.createElementNS(parent.namespaceURI, tag);
  for (const k in attributes) node.setAttribute(k, attributes[k]);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

// ---- Rows (data.c): attempts, and then stretches of GPUs without work.  Times are ms ----
const N = D.attempts, ITEMS = N + D.bars;
const columns = Object.entries(D.columns).map(([name, steps]) => {
  const ret = new Float64Array(ITEMS);
  let value = 0, i = 0;
  for (const step of steps) {
    const [by, times] = typeof step === 'number' ? [step, 1] : step;
    for (let k = 0; k < times; k++) ret[i++] = value += by;
  }
  return [name, ret];
});
const {batch, number, attempt, outcome, ready, name, start, length, use, text, set, class: kind} =
  Object.fromEntries(columns);
const end = start.map((s, i) => length[i] < 0 ? Math.max(s, D.span) : s + length[i]);
const isBad = i => i < N && outcome[i] > 1, runs = i => i < N && attempt[i] > 0;

// ---- Words (words.c) ----
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const two = n => String(n).padStart(2, '0'), {format: count} = new Intl.NumberFormat('en');
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
const batches = new Map(D.batches), id = i => `${batch[i]}.${number[i]}`;
const where = D.sets.map(gpus => gpus.map(g => D.gpus[g]).join(', ') || 'no GPU');
const label = i => kind[i] < 0 ? '' : D.classes[kind[i]][0];
const task = i => [id(i), batches.get(batch[i]), D.texts[name[i]],
  attempt[i] > 1 ? 'attempt ' + attempt[i] : ''].filter(Boolean).join(' ');
const HEADS = ['task', 'end', 'where', 'when', 'ran', 'waited', 'class', 'why'];
function words(i) {
  const when = clock(start[i], true) + (length[i] < 0 ? ', still runs'
    : length[i] && ' to ' + clock(end[i], true) || '');
  return i >= N ? [where[set[i]], D.uses[use[i]][0], label(i), D.texts[text[i]], when,
    span(length[i])] : [
    task(i), `${D.glyphs[outcome[i]]} ${D.outcomes[outcome[i]]}`.trim(), where[set[i]], when,
    runs(i) ? 'ran ' + span(end[i] - start[i]) : 'did not run',
    ready[i] > D.span ? '' : 'waited ' + span(start[i] - ready[i]), label(i), D.texts[text[i]]];
}

// ---- Lanes: items by start.  Attempts at the same time have rows of their own (lanes.c) ----
const whole = [...svg.childNodes];
const lanes = [...svg.querySelectorAll('g[data-gpu]')].map((g, k) => (
  {k, gpu: g.dataset.gpu, head: [...g.children].slice(0, 2), items: [], top: G.top + k * G.lane +
    G.above, until: [], group: {rows: 1}}));
const ALONE = {rows: 1}, lanesOf = D.sets.map(gpus => gpus.length ? gpus : [D.gpus.length]);
for (const i of Uint32Array.from(start.keys()).sort((a, b) => start[a] - start[b] || a - b)) {
  for (const lane of lanesOf[set[i]].map(k => lanes[k])) {
    if (!runs(i)) {
      lane.items.push({i, row: 0, group: ALONE});
      continue;
    }
    if (lane.until.every(t => t <= start[i])) lane.until = [], lane.group = {rows: 1};
    const free = lane.until.findIndex(t => t <= start[i]), row = free < 0 ? lane.until.length : free;
    lane.until[row] = end[i];
    lane.group.rows = lane.until.length;
    lane.items.push({i, row, group: lane.group});
  }
}
const isMarked = (lane, i) => isBad(i) && lanesOf[set[i]][0] === lane.k;

// ---- The part of the night that is drawn ----
let from = 0, to = D.span;
const dots = t => (clamp(t, from, to) - from) / (to - from) * G.dots, x = t => G.left + dots(t);

function boxesOfItems(list, box) {
  for (const {i, row, group} of list) {
    const x1 = x(start[i]), x2 = x(end[i]), high = G.bar / group.rows;
    const until = Math.max(i < N && x2 - x1 > 3 ? x2 - .5 : x2, x1 + .6);
    if (i >= N) box(x1, until, use[i] === D.low ? G.bar - 4 : 0, G.bar, D.uses[use[i]][1]);
    else if (runs(i)) box(x1, until, high * row, high * (row + 1) - (group.rows > 1 ? .5 : 0),
      isBad(i) ? D.uses[1][1] : D.classes[kind[i]][1]);
  }
}

// The height of a dot is what part of it was used; tasks without a GPU: how many ran.
function boxesOfDots(list, box, gpu) {
  const uses = D.uses.map(() => new Float64Array(G.dots)), classes = [], until = [], open = [];
  const add = (sums, a, b) => {
    for (let d = Math.floor(a); d < b; d++) sums[d] += Math.min(b, d + 1) - Math.max(a, d);
  };
  for (const {i} of list) {
    const u = gpu ? use[i] : 0, a = dots(start[i]), b = dots(end[i]);
    if (i < N && !runs(i)) continue;
    if (!u) add(classes[D.classes[kind[i]][1]] ||= new Float64Array(G.dots), a, b);
    add(uses[u], gpu ? Math.max(a, until[u] || 0) : a, b);
    until[u] = Math.max(until[u] || 0, b);
  }
  const most = gpu ? 1 : Math.max(...uses[0]) || 1;
  for (let d = 0; d <= G.dots; d++) {
    let below = 0, longest = 0;
    classes.forEach((sums, t) => { if (!(sums[d] <= classes[longest]?.[d])) longest = t; });
    for (let u = 0; u < D.low; u++) { // equal neighbours are one box
      const bottom = Math.round(below * G.bar), o = open[u] || {};
      below = Math.min(below + (uses[u][d] || 0) / most, 1);
      const high = Math.round(below * G.bar), t = u ? D.uses[u][1] : longest;
      if (d < G.dots && o.high === high && o.bottom === bottom && o.t === t) continue;
      if (o.high > o.bottom) box(G.left + o.d, G.left + d, G.bar - o.high, G.bar - o.bottom, o.t);
      open[u] = {d, high, bottom, t};
    }
  }
}

// Each bad end is a tick, and is in the number of a mark (marks.c).
function drawMarks(g, lane, list) {
  const at = [], groups = [], y = lane.top - G.above;
  for (const {i} of list) {
    const e = Math.min(end[i], D.span);
    if (!isMarked(lane, i) || e < from || e >= to && to < D.span) continue;
    const d = Math.min(Math.floor(dots(e)), G.dots - 1);
    at[d] ||= D.outcomes.map(() => 0);
    at[d][outcome[i]]++;
  }
  const group = (a, b, n) => {
    const s = n.map((c, o) => c ? (c > 1 ? count(c) + 'x' : '') + D.glyphs[o] : '').filter(Boolean)
      .join(' '), half = s.length * 4.5 + 2;
    return {a, b, n, s, half, middle: clamp((a + b) / 2, half, G.dots - half)};
  };
  at.forEach((n, d) => {
    let m = group(d, d, n), o;
    while ((o = groups.at(-1)) && o.middle + o.half > m.middle - m.half)
      m = group(groups.pop().a, m.b, m.n.map((c, k) => c + o.n[k]));
    groups.push(m);
  });
  const ticks = at.map((_, d) => `M${G.left + d} ${y + 6}h1.5v5h-1.5z`).join('');
  if (ticks) make(g, 'path', {class: 'tick', d: ticks});
  for (const m of groups)
    make(g, 'text', {class: 'mark', 'text-anchor': 'middle', x: G.left + m.middle, y: y + 5,
      'data-n': m.n.reduce((a, b) => a + b)}, m.s);
}

// Ids of tasks and texts of stretches, where they have room.
function drawNotes(g, lane, list) {
  for (const {i, group} of list) {
    const room = Math.floor((x(end[i]) - x(start[i]) - 10) / 7);
    const said = i >= N ? D.texts[text[i]] || D.uses[use[i]][0] : `${id(i)} ${label(i)}`;
    if (group.rows > 1 || i < N && !runs(i)) continue;
    const s = said.length <= room ? said : i < N ? id(i) : said.slice(0, room - 1) + '…';
    if (room >= (i < N ? s.length : 8))
      make(g, 'text', {class: 'note', x: x(start[i]) + 5, y: lane.top + G.bar / 2 + 4,
        'stroke-width': 4, 'stroke-linejoin': 'round', 'paint-order': 'stroke'}, s);
  }
}

function drawLane(lane) {
  const list = lane.items.filter(({i}) => end[i] >= from && start[i] <= to), paths = [];
  const few = list.length <= Math.min(RECTANGLES / lanes.length, G.dots)
    && list.every(({group}) => group.rows <= ROWS);
  const g = make(svg, 'g', {'data-gpu': lane.gpu});
  g.append(...lane.head.map(node => node.cloneNode(true)));
  (few ? boxesOfItems : boxesOfDots)(list, (x1, x2, y1, y2, t) => {
    const w = (x2 - x1).toFixed(1), d = `M${x1.toFixed(1)} ${(lane.top + y1).toFixed(1)}`;
    (paths[t] ||= []).push(`${d}h${w}v${(y2 - y1).toFixed(1)}h-${w}z`);
  }, lane.gpu);
  paths.forEach((d, t) => make(g, 'path', {d: d.join(''),
    ...document.getElementById('t' + t) ? {fill: `url(#t${t})`} : {class: 't' + t}}));
  drawNotes(g, lane, few ? list : list.filter(({i}) => i >= N));
  drawMarks(g, lane, list);
  if (to === D.span && list.some(({i}) => length[i] < 0))
    make(g, 'path', {class: 'runs',
      d: `M${G.left + G.dots + 1} ${lane.top + G.bar / 2 - 5}l6 5l-6 5z`});
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
  const wide = clamp(b - a, LEAST, D.span);
  from = clamp((a + b - wide) / 2, 0, D.span - wide);
  to = Math.min(from + wide, D.span);
  Object.assign(figure.dataset, {from, to});
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
  tip.style.left = clamp(left + 12, 4, Math.max(4, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (under ? y + 18 : y - tip.offsetHeight - 8) + 'px';
}
const hush = () => { tip.textContent = ''; };
function at(e) {
  const r = svg.getBoundingClientRect(), k = WIDTH / r.width, y = (e.clientY - r.top) * k - G.top;
  const dot = (e.clientX - r.left) * k;
  return {dot, t: clamp(from + (dot - G.left) / G.dots * (to - from), from, to),
    lane: lanes[Math.floor(y / G.lane)], part: (y % G.lane - G.above) / G.bar};
}
// The item at a point, or the nearest attempt within two dots; above a bar the nearest bad end.
function find({lane, dot, t, part}) {
  const wide = (to - from) / G.dots;
  let best = -1, least = (part < 0 ? 6 : 2) * wide;
  for (const {i, row, group} of lane && dot >= G.left ? lane.items : []) {
    const away = Math.max(start[i] - t, t - end[i]);
    if (part < 0 ? !isMarked(lane, i)
      : runs(i) && row !== Math.min(Math.floor(part * group.rows), group.rows - 1)) continue;
    const far = part < 0 ? Math.abs(end[i] - t) : i < N ? away : away < 0 ? wide / 2 : Infinity;
    if (far < least) best = i, least = far;
  }
  return best;
}
let drag = null;
const pointer = {
  pointermove(e) {
    const p = at(e), i = find(p);
    if (drag) drag.box.setAttribute('x', Math.min(p.dot, drag.dot));
    if (drag) drag.box.setAttribute('width', Math.abs(p.dot - drag.dot));
    if (i < 0) hush(); else say(i, e.clientX, e.clientY);
  },
  pointerleave: hush,
  pointerdown(e) {
    if (e.button || e.pointerType === 'touch') return; // a finger scrolls
    svg.setPointerCapture(e.pointerId);
    drag = {...at(e), box: make(svg, 'rect', {class: 'drag', y: G.top,
      height: lanes.length * G.lane})};
  },
  pointerup(e) {
    const p = at(e), begin = pointer.pointercancel();
    if (begin && Math.abs(p.dot - begin.dot) > 6)
      zoom(Math.min(begin.t, p.t), Math.max(begin.t, p.t));
  },
  pointercancel() {
    const begin = drag;
    drag = null;
    begin?.box.remove();
    return begin;
  },
  wheel(e) {
    if (!e.ctrlKey) return; // without it the page scrolls
    e.preventDefault();
    scale(at(e).t, e.deltaY > 0 ? 1.25 : .8);
  },
};
for (const name in pointer) svg.addEventListener(name, pointer[name], {passive: false});

// ---- Keys: a cursor on the items ----
let lane = lanes[0], cursor = -1;
function show(k) {
  if (!lane.items.length) return hush();
  cursor = clamp(k, 0, lane.items.length - 1);
  const {i} = lane.items[cursor], wide = to - from;
  if (end[i] < from || start[i] > to) zoom(start[i] - wide / 2, start[i] + wide / 2);
  const r = svg.getBoundingClientRect(), size = r.width / WIDTH;
  say(i, r.left + (x(start[i]) + x(end[i])) / 2 * size, r.top + (lane.top + G.bar) * size - 12);
}
const time = none => cursor < 0 ? none : clamp(start[lane.items[cursor].i], from, to);
function move(down, right) {
  const t = time(from), stays = cursor >= 0 && !down;
  lane = lanes[clamp(lane.k + down, 0, lanes.length - 1)];
  const k = stays ? cursor + right : lane.items.findIndex(({i}) => end[i] >= t);
  show(k < 0 && !stays ? Infinity : k);
}
const keys = {
  '+': () => scale(time((from + to) / 2), .5), '-': () => scale(time((from + to) / 2), 2),
  '=': () => keys['+'](), Escape: () => { hush(); zoom(0, D.span); },
  ArrowLeft: () => move(0, -1), ArrowRight: () => move(0, 1),
  ArrowUp: () => move(-1, 0), ArrowDown: () => move(1, 0),
};
figure.addEventListener('keydown', e => {
  if (e.ctrlKey || e.altKey || e.metaKey || !keys[e.key] || !lane) return;
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

let texts; // of the attempts: made by the first search
const textOf = i => [task(i), D.outcomes[outcome[i]], where[set[i]], label(i), D.texts[text[i]]]
  .join('\n');
// A number is no part of a longer one, and that of a GPU only after "gpu".
function pattern(word) {
  const s = word.replace(/\W/g, '\\$&'), exact = /^(gpu )?[\d.:]+$/.test(word);
  return new RegExp(exact ? `(?<!\\w|gpu )${s}(?!\\w)` : s, 'i');
}
function goTo(i) {
  const wide = 4 * Math.max(end[i] - start[i], LEAST);
  lane = lanes[lanesOf[set[i]][0]];
  zoom(start[i] - wide, end[i] + wide);
  figure.scrollIntoView({block: 'center'});
  figure.focus({preventScroll: true});
  show(lane.items.findIndex(item => item.i === i));
}
function search() {
  const wanted = (input.value.toLowerCase().match(/gpu \d[\w:]*|[^\s,]+/g) || []).map(pattern);
  let n = 0;
  body.textContent = '';
  texts ||= wanted.length ? Array.from({length: N}, (_, i) => textOf(i)) : undefined;
  for (let i = 0; wanted.length && i < N; i++) {
    if (!wanted.every(p => p.test(texts[i])) || ++n > 100) continue;
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

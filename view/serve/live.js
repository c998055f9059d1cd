'use strict';
// The live page: snapshots as docs/reference/snapshot.md has them, drawn.  Texts are text: they go
// through textContent and setAttribute alone.
(() => {
  const SVG = 'http://www.w3.org/2000/svg', MINUTE = 6e4;
  // Textures of uses and classes, as view/report/textures.h numbers them.
  const USES = {
    ok: [9, 'worked'], lost: [10, 'worked in vain'], loading: [11, 'loading models'],
    kept: [12, 'kept free for a wide task'], out: [13, 'out of use'], unknown: [14, 'not known'],
    limited: [15, 'idle although tasks waited'], idle: [-1, 'idle, nothing waited'],
  };
  const PLAIN = new Set([0, 9, 16]);
  const GLYPHS = {
    error: '✕', timeout: '◆', crashed: '▲', cancelled: '–', 'no worker': '□', skipped: '»',
    lost: '?', returned: '○',
  };
  const state = document.getElementById('state'), link = document.getElementById('link');
  let token = sessionStorage.getItem('token') || '';
  let history = null, minutes = 0, clocks = [], waiting = null, last = 0;
  let now = () => Date.now() * 1e6; // ns, by the clock of the machine of the queue

  if (/^#[0-9a-f]{32}$/.test(location.hash)) {
    token = location.hash.slice(1);
    sessionStorage.setItem('token', token);
    window.history.replaceState(null, '', location.pathname);
  }

  // ---- Words ----

  // As view/words.c has them.
  const ms = (ns) => ns / 1e6;
  const count = (n, one, many) => n.toLocaleString('en') + ' ' + (n === 1 ? one : many);
  const two = (n) => String(n).padStart(2, '0');
  const clock = (time) => {
    const d = new Date(ms(time)), day = 864e11;
    const word = two(d.getHours()) + ':' + two(d.getMinutes());
    return Math.abs(now() - time) < day ? word
      : d.toLocaleDateString('en-GB', {day: 'numeric', month: 'short'}) + ' ' + word;
  };
  const span = (ns) => {
    const s = Math.max(0, ns / 1e9);
    if (s < 100) return Math.floor(s) + ' s';
    if (s < 5400) return Math.floor(s / 60) + ' min';
    if (s < 172800) return Math.floor(s / 3600) + ' h ' + two(Math.floor(s % 3600 / 60));
    return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
  };
  const left = (row) => row.least === undefined ? '' : row.most === undefined
    ? 'at least ' + span(row.least) : span(row.least) + ' to ' + span(row.most);

  // ---- Elements ----

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children.flat().filter((c) => c !== null && c !== ''));
    return node;
  }
  const el = (name, attributes, ...children) =>
    fill(document.createElement(name), attributes, children);
  const shape = (name, attributes, ...children) =>
    fill(document.createElementNS(SVG, name), attributes, children);
  const texture = (i) => PLAIN.has(i) ? {class: 't' + i} : {fill: 'url(#t' + i + ')'};

  // A length of time that grows while something runs.
  function since(time, limit) {
    const node = el('span', {});
    clocks.push(() => {
      node.textContent = span(now() - time) + (limit ? ' of ' + span(limit) : '');
    });
    return node;
  }

  function table(kind, label, heads, rows) {
    const head = (h) => el('th', {scope: 'col', ...(h.n ? {class: 'n'} : {})}, h.text || h);
    const cell = (c, i) => i === 0 ? el('th', {scope: 'row'}, c || '')
      : el('td', {'data-label': heads[i].label || heads[i].text || heads[i],
                  class: heads[i].kind || (heads[i].n ? 'n' : '')}, c);
    return el('div', {class: 'scroll'}, el('table', {class: 'live ' + kind, 'aria-label': label},
      el('thead', {}, el('tr', {}, heads.map(head))),
      el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map(cell))))));
  }

  // ---- The four answers ----

  function sums(s) {
    const all = {total: 0, ok: 0, bad: 0, running: 0, ready: 0, held: 0};
    for (const row of [...(s.batches || []), s.more || {}])
      for (const key in all) all[key] += row[key] || 0;
    return all;
  }

  function running(s) {
    const does = {};
    for (const g of s.gpus || []) does[g.does] = (does[g.does] || 0) + 1;
    const words = Object.entries(does).map(([word, n]) => n + ' ' + word).join(', ');
    return count((s.gpus || []).length, 'GPU: ', 'GPUs: ') + words;
  }

  function waits(s, all) {
    const first = (s.batches || []).find((b) => b.first);
    const words = count(all.ready + all.held, 'task waits', 'tasks wait');
    return first ? words + '. The first of batch ' + first.batch + ' ' + (first.name || '') + ': ' +
      (first.text || first.why || 'no reason was recorded') : words;
  }

  function wrong(s) {
    const newest = (s.findings || [])[0];
    const words = count(s.bad_24h || 0, 'bad end in 24 hours', 'bad ends in 24 hours');
    return newest ? words + '. Newest: ' + newest.what + ' ' + (newest.whose || '') : words;
  }

  function done(s, all) {
    if (all.running + all.ready + all.held === 0) return 'Nothing waits or runs';
    if (s.least === undefined) return 'Not known yet';
    const from = clock(s.time + s.least);
    return s.most === undefined ? 'Not before ' + from
      : 'About ' + from + ' to ' + clock(s.time + s.most);
  }

  function answers(s) {
    const all = sums(s), box = (question, answer) =>
      el('div', {}, el('h2', {}, question), el('p', {}, answer));
    return el('div', {class: 'answers'}, box('What runs', running(s)),
      box('Why the rest waits', waits(s, all)), box('What went wrong', wrong(s)),
      box('When it is done', done(s, all)));
  }

  // ---- GPUs and their history ----

  const use_of = (row, i) => {
    let most = 'idle', length = 0;
    for (const use in row) if (row[use][i] > length) [most, length] = [use, row[use][i]];
    return most;
  };

  function lane(name, row) {
    const parts = [], sum = {};
    for (let i = 0, from = 0; row && i < minutes; i++) {
      const use = use_of(row, i);
      if (i + 1 < minutes && use_of(row, i + 1) === use) continue;
      if (USES[use] && USES[use][0] >= 0)
        parts.push(shape('rect', {x: from, y: 0, width: i + 1 - from, height: 16,
                                  ...texture(USES[use][0])}));
      from = i + 1;
    }
    // A minute with time in vain has a mark, however short that was.
    for (let i = 0; row && row.lost && i < minutes; i++)
      if (row.lost[i] > 0)
        parts.push(shape('rect', {class: 'bad', x: i, y: 12, width: 1, height: 4}));
    for (const use in row || {}) sum[use] = row[use].reduce((a, b) => a + b, 0) / MINUTE;
    const words = Object.entries(sum).filter(([, n]) => n >= 1)
      .map(([use, n]) => Math.round(n) + ' min ' + (USES[use] || [0, use])[1]).join(', ');
    return shape('svg', {class: 'lane', viewBox: '0 0 ' + (minutes || 1) + ' 16', role: 'img',
                         preserveAspectRatio: 'none', 'aria-label': name + ': ' + words},
    shape('title', {}, words), parts,
    shape('rect', {class: 'frame', x: 0, y: 0, width: minutes || 1, height: 16}));
  }

  function key(i, text) {
    return el('span', {}, shape('svg', {class: 'key', width: 22, height: 12,
                                        viewBox: '0 0 22 12', 'aria-hidden': 'true'},
    shape('rect', {width: 22, height: 12, ...texture(i)})), ' ' + text);
  }

  function gpu(g, i) {
    const name = /^gpu:/.test(g.gpu) ? 'GPU ' + g.gpu.slice(4) : g.gpu || '?';
    const task = g.task ? g.task + (g.attempt > 1 ? ', attempt ' + g.attempt : '') +
      (g.tasks > 1 ? ' and ' + (g.tasks - 1) + ' more' : '') + (g.with ? ' with ' + g.with : '') : '';
    const memory = g.memory_used === undefined ? '' :
      (g.memory_used / 2 ** 30).toFixed(0) + ' GiB';
    const what = ['kept', 'out'].includes(g.does) ? g.text || ''
      : [g.class, task, g.text].filter(Boolean).join(' ');
    return [name, g.asleep ? g.does + ', asleep' : g.does, what,
            g.since ? since(g.since, g.limit) : '',
            memory + (g.utilization === undefined ? '' : ' ' + g.utilization + ' %'),
            lane(name, history && history[i])];
  }

  function gpus(s) {
    const from = s.time - minutes * 60e9, axis = el('span', {class: 'axis'},
      el('span', {}, minutes ? clock(from) : ''), el('span', {}, 'now'));
    return el('section', {}, el('h2', {}, 'GPUs'),
      table('gpus', 'GPUs', ['GPU', 'does', 'task', 'for', {text: 'in use', n: true},
                             {text: axis, label: 'last 4 h', kind: 'history'}], (s.gpus || []).map(gpu)),
      el('p', {class: 'legend'}, Object.values(USES).filter(([i]) => i >= 0)
        .map(([i, text]) => key(i, text))));
  }

  // ---- Lists ----

  function more(n, what) {
    return n ? el('p', {class: 'dim'}, count(n, 'further ' + what[0], 'further ' + what[1])) : '';
  }

  function batches(s) {
    const n = (text) => ({text, n: true});
    const row = (b) => [b.batch + ' ' + (b.name || ''), b.ok || 0, b.bad || 0, b.running || 0,
      (b.ready || 0) + (b.held || 0), b.ended ? 'ended ' + clock(b.ended) : left(b),
      b.first ? b.text || b.why || '' : ''];
    return el('section', {}, el('h2', {}, 'Batches'),
      table('batches', 'Batches', ['batch', n('ok'), n('bad'), n('run'), n('wait'), 'left',
                                   {text: 'why the first one waits', kind: 'wide'}],
        (s.batches || []).map(row)),
      more((s.more || {}).batches, ['batch', 'batches']));
  }

  function findings(s) {
    const row = (f) => [f.first && f.first !== f.last ? clock(f.first) + ' to ' + clock(f.last)
      : clock(f.last || f.first || s.time), [GLYPHS[f.outcome] || '', f.what || ''].join(' '),
      f.whose || '', f.text || '', f.command ? el('code', {}, f.command) : ''];
    return el('section', {}, el('h2', {}, 'Went wrong in the last 24 hours'),
      s.findings && s.findings.length ? table('findings', 'What went wrong', [
        'when', 'what', 'tasks', {text: 'text of the first one', kind: 'wide'},
        {text: 'type next', kind: 'wide'}], s.findings.map(row)) : el('p', {}, 'Nothing'),
      more((s.more || {}).findings, ['finding', 'findings']));
  }

  function ends(s) {
    const row = (e) => [clock(e.time), (e.task || '') + ' ' + (e.batch || ''),
      [GLYPHS[e.outcome] || '', e.outcome || ''].join(' '),
      e.ran === undefined ? '' : span(e.ran), e.gpus || ''];
    return s.ends && s.ends.length ? el('section', {}, el('h2', {}, 'Ended last'),
      table('ends', 'Ended last', ['when', 'task', 'outcome', 'ran', 'GPUs'], s.ends.map(row)))
      : '';
  }

  // ---- Drawing ----

  const tick = () => clocks.forEach((c) => c());

  function draw(s) {
    const selection = document.getSelection();
    waiting = selection && !selection.isCollapsed ? s : null; // a selected text stays
    if (waiting) return;
    clocks = [];
    state.replaceChildren(
      el('p', {class: 'dim'}, (s.host || 'this machine') + ', state of ' + clock(s.time)),
      s.notice ? el('p', {class: 'mark'}, s.notice) : '', answers(s), gpus(s), batches(s),
      findings(s), ends(s));
    tick();
  }

  function take(s) {
    if (Array.isArray(s.history)) [history, minutes] = [s.history, s.minutes || 0];
    const got = last = Date.now();
    now = () => s.time + (s.pid ? (Date.now() - got) * 1e6 : 0); // a recording stands still
    document.title = sums(s).running + ' run, ' + (s.bad_24h || 0) + ' bad: gpudispatch';
    draw(s);
  }

  // ---- The stream ----

  const wait = (time) => new Promise((then) => setTimeout(then, time));
  const say = (text, bad) => {
    link.textContent = text;
    link.className = bad ? 'stale' : 'dim';
  };

  async function read() {
    const headers = token ? {Authorization: 'Bearer ' + token} : {};
    const reply = await fetch('/events', {headers, cache: 'no-store'});
    if (reply.status === 401) throw new Error('the token is missing or old: open the URL that ' +
      'gpudispatch serve has printed');
    if (!reply.ok) throw new Error(await reply.text());
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const {done: ended, value} = await reader.read();
      if (ended) throw new Error('the server has ended');
      say('It follows the queue.', false);
      const events = (text + value).split('\n\n');
      text = events.pop();
      for (const event of events)
        if (event.startsWith('data: ')) take(JSON.parse(event.slice(6)));
    }
  }

  (async () => {
    for (let pause = 2e3;; pause = Math.min(pause * 2, 3e4)) {
      const begun = Date.now();
      try {
        await read();
      } catch (error) {
        say('No connection' + (last ? ' since ' + span((Date.now() - last) * 1e6) : '') + ': ' + error.message,
          true);
      }
      if (Date.now() - begun > 3e4) pause = 2e3;
      await wait(pause);
    }
  })();
  setInterval(() => {
    if (document.hidden) return;
    tick();
    if (waiting) draw(waiting);
  }, 1000);
})();

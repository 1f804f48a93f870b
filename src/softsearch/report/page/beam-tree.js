// A beam search as a tree that is played step by step, from a trace (docs/search.md): in report.html and on the page.

const [WIDTH, HEIGHT, GAP] = [136, 34, 30]; // of a candidate, and between columns
const [START, HEAD] = [74, 24]; // room for the start, and for the numbers of the steps
const ROW = HEIGHT + 8;
const LETTERS = 13; // of a piece that are drawn
const PAUSE = 1200; // ms between two steps
const SIGNS = { kept: '', ended: '■ ', 'fell out': '✕ ', forbidden: '⊘ ', 'cut off': '✂ ', stopped: '‖ ' };
const STAY = ['kept', 'cut off', 'stopped'];
const ORDER = 'Kept first, then ended, forbidden and fallen out; each by log p';
const STOPPED = {
  'enough ended': 'As many have ended as the beam has hypotheses.',
  bound: 'Nothing better could follow.',
  'length limit': 'The length limit is reached.',
};

const number = (value) => value.toFixed(2).replace('-', '−');
const NO_TEXT = /^<(\/s|(2|from:)[^\s<>]+)>$/u; // the end, and tags of languages
const words = (pieces) => pieces.filter((piece) => !NO_TEXT.test(piece)).join('').replaceAll('▁', ' ').trim() || '(empty)';
const left = (each) => START + (each.step - 1) * (WIDTH + GAP);
const middle = (each) => HEAD + each.row * ROW + HEIGHT / 2;

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

/** What became of a candidate, in words. */
function fate(candidate) {
  const { fate: name, behind, forbidden_by: by } = candidate;
  if (name === 'fell out') return behind === null ? name : `out by ${number(behind)}`;
  return { forbidden: by?.replaceAll('_', ' '), stopped: 'given up' }[name] ?? name;
}

/** The candidates by their numbers, with their step, their row and the pieces of the whole hypothesis. */
function lay(trace) {
  const every = new Map([[0, { id: 0, parent: null, step: 0, row: 0, pieces: [], fate: 'kept' }]]);
  trace.steps.forEach(({ candidates }, index) => {
    const order = (each) => (STAY.includes(each.fate) ? 0 : 1 + ['ended', 'forbidden', 'fell out'].indexOf(each.fate));
    const rank = (each) => each.log_prob + (each.bonus ?? 0);
    [...candidates]
      .sort((one, other) => order(one) - order(other) || rank(other) - rank(one))
      .forEach((each, row) => {
        const pieces = [...every.get(each.parent).pieces, each.piece];
        every.set(each.id, { ...each, step: index + 1, row, pieces });
      });
  });
  return every;
}

/** The numbers of the hypotheses that a candidate continues, and its own. */
function path(every, id) {
  const found = new Set();
  for (let at = every.get(id); at; at = every.get(at.parent)) found.add(at.id);
  return found;
}

function node(each, best) {
  const [x, y] = [left(each), HEAD + each.row * ROW];
  const letters = [...each.piece];
  const piece = letters.length > LETTERS ? `${letters.slice(0, LETTERS - 1).join('')}…` : each.piece;
  const box = { x, y, width: WIDTH, height: HEIGHT, rx: each.fate === 'kept' ? 8 : 0 };
  const inner = { x: x + 3, y: y + 3, width: WIDTH - 6, height: HEIGHT - 6, class: 'inner' };
  return svg(
    'g',
    { class: `candidate ${each.fate.replace(' ', '-')}${best ? ' best' : ''}` },
    svg('title', {}, `${words(each.pieces)}: ${fate(each)}, log probability ${number(each.log_prob)}`),
    svg('rect', box),
    ...(each.fate === 'ended' ? [svg('rect', inner)] : []),
    svg('text', { x: x + 8, y: y + 14, class: 'piece' }, piece + (each.exact ? ' ★' : '')),
    svg('text', { x: x + 8, y: y + 27, class: 'fate' }, `${number(each.log_prob)} ${SIGNS[each.fate]}${fate(each)}`),
  );
}

function edge(each, parent, best) {
  const from = [parent.step ? left(parent) + WIDTH : START - GAP, middle(parent)];
  const to = [left(each), middle(each)];
  const d = `M${from} C${from[0] + GAP / 2},${from[1]} ${to[0] - GAP / 2},${to[1]} ${to}`;
  return svg('path', { d, class: `${each.fate.replace(' ', '-')}${best ? ' best' : ''}` });
}

/** The table of a step: every hypothesis that was continued, its numbers, and what became of it. */
function table(trace, every, at) {
  const candidates = [...every.values()].filter((each) => each.step === at);
  const withBonus = candidates.some((each) => each.bonus);
  const columns = ['hypothesis', 'fate', 'log p', 'of the piece', 'score', ...(withBonus ? ['bonus'] : [])];
  const rows = candidates.map((each) => {
    const numbers = [each.log_prob, each.piece_log_prob, each.score, ...(withBonus ? [each.bonus] : [])];
    const text = words(each.pieces) + (each.exact ? ' ★' : '');
    return html(
      'tr',
      { class: each.fate.replace(' ', '-') },
      html('th', { scope: 'row', dir: 'auto' }, text),
      html('td', { class: 'fate' }, SIGNS[each.fate] + fate(each)),
      ...numbers.map((value) => html('td', {}, number(value))),
    );
  });
  const head = html('tr', {}, ...columns.map((name) => html('th', { scope: 'col' }, name)));
  const caption = html('caption', {}, `${ORDER}${withBonus ? ' plus bonus' : ''}.`);
  return html('table', {}, caption, html('thead', {}, head), html('tbody', {}, ...rows));
}

/** What happened in a step, in a sentence or two. */
function summary(trace, at) {
  const { expanded, candidates } = trace.steps[at - 1];
  const of = (name) => candidates.filter((each) => each.fate === name);
  const fallen = of('fell out').map(({ behind }) => behind).filter((behind) => behind !== null);
  const parts = [
    ...['kept', 'ended', 'forbidden', 'cut off', 'stopped'].map((name) => {
      const among = of(name);
      return among.length && `${among.length} ${name === 'stopped' ? 'given up' : name}`;
    }),
    fallen.length && `the nearest that fell out by ${number(Math.min(...fallen))}`,
  ];
  const last = at === trace.steps.length ? ` ${STOPPED[trace.stopped] ?? ''}` : '';
  const before = `${expanded.length} ${expanded.length === 1 ? 'hypothesis' : 'hypotheses'} continued`;
  return `Step ${at} of ${trace.steps.length}: ${before}, ${parts.filter(Boolean).join(', ')}.${last}`;
}

/** Where exact search went. */
function exactly({ exact, ranking: [first] }) {
  if (!exact) return [];
  const kept = exact.id === first?.id ? 'The beam found it.' : 'The beam kept it, and ranks another one higher by its score.';
  const where = exact.left_at === null ? kept : `The beam lost it in step ${exact.left_at}.`;
  const found = html('span', { dir: 'auto' }, words(exact.pieces));
  return [html('p', { class: 'exact' }, '★ Most probable of all, by exact search: ', found, `, log p ${number(exact.log_prob)}. ${where}`)];
}

function ranking(trace) {
  const items = trace.ranking.map((each) =>
    html('li', {}, html('span', { dir: 'auto' }, words(each.pieces)), ` score ${number(each.score)}, log p ${number(each.log_prob)}`),
  );
  return html('ol', { 'aria-label': 'ranking' }, ...items);
}

/**
 * The tree of a trace, with buttons, a slider, and the keys ←, →, Home, End and the space bar.
 *
 * @param {object} trace of version 1
 * @returns {HTMLElement}
 */
export function beamTree(trace) {
  const every = lay(trace);
  const last = trace.steps.length;
  const winner = trace.ranking[0]?.id;
  const best = winner === null || winner === undefined ? new Set() : path(every, winner);
  const drawn = [...every.values()].filter((each) => each.step);
  const rows = Math.max(...drawn.map((each) => each.row)) + 1;
  const [width, height] = [START + last * (WIDTH + GAP), HEAD + rows * ROW];
  const steps = trace.steps.map((_, index) => {
    const of = drawn.filter((each) => each.step === index + 1);
    const x = left({ step: index + 1 }) + WIDTH / 2;
    return svg(
      'g',
      { class: 'step' },
      svg('text', { x, y: 14, class: 'number' }, String(index + 1)),
      ...of.map((each) => edge(each, every.get(each.parent), best.has(each.id))),
      ...of.map((each) => node(each, best.has(each.id))),
    );
  });
  const root = svg('g', {}, svg('text', { x: 0, y: HEAD + HEIGHT / 2 + 4, class: 'piece' }, 'start'));
  const picture = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img' }, root, ...steps);
  const scroll = html('div', { class: 'tree', tabindex: '0', role: 'group', 'aria-label': 'beam tree: arrow keys go through the steps' }, picture);
  const button = (label, text) => html('button', { type: 'button', 'aria-label': label, title: label }, text);
  const [previous, play, next] = [button('previous step', '◀'), button('play', '▶ play'), button('next step', '▶')];
  const slider = html('input', { type: 'range', min: '1', max: String(last), 'aria-label': 'step' });
  const told = html('p', { class: 'told', role: 'status' });
  const detail = html('div', { class: 'detail', tabindex: '0', role: 'group', 'aria-label': 'candidates of the step' });
  const ended = html('div', { class: 'outcome' }, ranking(trace), ...exactly(trace));
  const whole = html('div', { class: 'beam-tree' }, html('div', { class: 'player' }, previous, play, next, slider), scroll, told, detail, ended);
  let at = 1;
  let timer = null;

  function show(step) {
    at = Math.min(Math.max(step, 1), last);
    steps.forEach((group, index) => {
      group.classList.toggle('later', index >= at);
      group.classList.toggle('now', index === at - 1);
    });
    picture.classList.toggle('complete', at === last);
    slider.value = String(at);
    told.textContent = summary(trace, at);
    picture.setAttribute('aria-label', told.textContent);
    detail.replaceChildren(table(trace, every, at));
    ended.hidden = at < last;
    previous.disabled = at === 1;
    next.disabled = at === last;
    scroll.scrollLeft = left({ step: at }) + WIDTH + GAP - scroll.clientWidth;
    if (at === last) stop();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = '▶ play';
    play.setAttribute('aria-label', 'play');
  }
  function toggle() {
    if (timer !== null) return stop();
    if (at === last) show(1);
    timer = setInterval(() => (whole.isConnected ? show(at + 1) : stop()), PAUSE);
    play.textContent = '‖ pause';
    play.setAttribute('aria-label', 'pause');
  }
  const go = (step) => {
    stop();
    show(step);
  };
  previous.addEventListener('click', () => go(at - 1));
  next.addEventListener('click', () => go(at + 1));
  play.addEventListener('click', toggle);
  slider.addEventListener('input', () => go(Number(slider.value)));
  whole.addEventListener('keydown', (event) => {
    const keys = { ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Home: () => go(1), End: () => go(last), ' ': toggle };
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey || !keys[event.key]) return;
    if (event.key === ' ' && event.target.tagName === 'BUTTON') return;
    event.preventDefault();
    keys[event.key]();
  });
  show(1);
  return whole;
}

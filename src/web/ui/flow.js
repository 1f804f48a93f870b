import { element, svg } from './element.js';

const ENCODERS = {
  forward: 'a recurrent encoder',
  backward: 'a recurrent encoder, which reads from the end',
  bidirectional: 'a recurrent encoder in both directions',
  convolution: 'convolutions over neighbours',
  'self-attention': 'an encoder with self-attention',
};
const BRIDGES = {
  last: 'its last state starts the decoder',
  summary: 'one vector for the whole sentence, at every step',
  columns: 'a column for each target position',
  attention: 'attention to all positions',
  copy: 'attention to all positions, whose words it can copy',
};
const DECODERS = { recurrent: 'a recurrent decoder', 'self-attention': 'a decoder with self-attention' };
const [TARGET, DECODER, MIDDLE, ENCODER, SOURCE] = [16, 48, 86, 124, 160]; // heights
const RADIUS = 8;
const POSITIONS = 4;
const LOOKING = 2; // the target position whose attention is drawn
const WEIGHTS = [0.8, 1.4, 4, 1.4]; // widths of its lines

/** A picture of a model's data flow, from the source at the bottom to the target at the top, and the same in words. */
export function flow({ encoder, bridge, decoder }) {
  const alone = encoder === 'none';
  const words = alone
    ? `One network, ${DECODERS[decoder].replace('a decoder with', 'with')}, reads the source and goes on to write the target`
    : `${ENCODERS[encoder]}; ${BRIDGES[bridge]}; ${DECODERS[decoder]}`;
  const parts = alone ? sequence(decoder) : encoderDecoder(encoder, bridge, decoder);
  return element(
    'figure',
    { class: 'flow' },
    svg('svg', { viewBox: '0 0 320 172', 'aria-hidden': 'true' }, ...parts),
    element('figcaption', {}, `${words[0].toUpperCase()}${words.slice(1)}.`),
  );
}

function encoderDecoder(encoder, bridge, decoder) {
  const xs = Array.from({ length: POSITIONS }, (_, index) => 92 + 66 * index);
  return [
    label('source', SOURCE),
    label('encoder', ENCODER),
    label('decoder', DECODER),
    label('target', TARGET),
    ...xs.flatMap((x, index) => [
      ...inputs(encoder, xs, index),
      arrow(x, DECODER - RADIUS, x, TARGET + 8),
      word('x', index, x, SOURCE),
      word('y', index, x, TARGET),
    ]),
    ...among(encoder, xs, ENCODER, 1),
    ...bridges(bridge, encoder, xs),
    ...among(decoder, xs, DECODER, -1),
    ...xs.map((x) => node(x, ENCODER)),
    ...xs.map((x, index) => node(x, DECODER, ['attention', 'copy'].includes(bridge) && index === LOOKING)),
  ];
}

/** One network over the source and then the target. */
function sequence(kind) {
  const xs = Array.from({ length: 2 * POSITIONS }, (_, index) => 24 + 39 * index);
  return [
    ...xs.flatMap((x, index) => [
      arrow(x, SOURCE - 12, x, MIDDLE + RADIUS),
      word(index < POSITIONS ? 'x' : 'y', index < POSITIONS ? index : index - POSITIONS, x, SOURCE),
      ...(index < POSITIONS - 1 ? [] : [arrow(x, MIDDLE - RADIUS, x, TARGET + 8), word('y', index - POSITIONS + 1, x, TARGET)]),
    ]),
    ...among(kind, xs, MIDDLE, -1),
    ...xs.map((x) => node(x, MIDDLE)),
  ];
}

function inputs(encoder, xs, index) {
  const near = encoder === 'convolution' ? [index - 1, index, index + 1] : [index];
  return near.filter((from) => from in xs).map((from) => arrow(xs[from], SOURCE - 12, xs[index], ENCODER + RADIUS));
}

/** The connections within a row of nodes. @param side 1 for arcs below, -1 above */
function among(kind, xs, y, side) {
  const next = xs.slice(1).map((x, index) => [xs[index] + RADIUS, x - RADIUS]);
  if (kind === 'forward' || kind === 'recurrent') return next.map(([from, to]) => arrow(from, y, to, y));
  if (kind === 'backward') return next.map(([from, to]) => arrow(to, y, from, y));
  if (kind === 'bidirectional') return next.flatMap(([from, to]) => [arrow(from, y - 4, to, y - 4), arrow(to, y + 4, from, y + 4)]);
  if (kind !== 'self-attention') return [];
  return xs.flatMap((from, first) =>
    xs.slice(first + 1).map((to, more) => {
      const bend = y + side * (RADIUS + 7 * (more + 1));
      return svg('path', { class: 'arc', d: `M${from} ${y}C${from} ${bend} ${to} ${bend} ${to} ${y}` });
    }),
  );
}

function bridges(kind, encoder, xs) {
  const [top, bottom] = [DECODER + RADIUS, ENCODER - RADIUS];
  const ends = { backward: [xs[0]], bidirectional: [xs[0], xs.at(-1)], forward: [xs.at(-1)] }[encoder] ?? xs;
  if (kind === 'last') return ends.map((x) => arrow(x, bottom, xs[0], top, 'bridge'));
  if (kind === 'columns') return xs.map((x) => arrow(x, bottom, x, top, 'bridge'));
  if (kind === 'summary') {
    const center = (xs[0] + xs.at(-1)) / 2;
    return [
      ...ends.map((x) => arrow(x, bottom, center, MIDDLE + 9, 'bridge')),
      ...xs.map((x) => arrow(center, MIDDLE - 9, x, top, 'bridge')),
      svg('rect', { class: 'summary', x: center - 13, y: MIDDLE - 9, width: 26, height: 18, rx: 4 }),
      svg('text', { x: center, y: MIDDLE + 4, 'text-anchor': 'middle' }, 'c'),
    ];
  }
  const looks = xs.flatMap((to, row) =>
    xs.map((from, column) =>
      row === LOOKING
        ? svg('path', { class: 'bridge', 'stroke-width': WEIGHTS[column], d: `M${from} ${bottom}L${to} ${top}` })
        : svg('path', { class: 'other', d: `M${from} ${bottom}L${to} ${top}` }),
    ),
  );
  if (kind === 'attention') return looks;
  const [x, beside] = [xs[LOOKING], xs[LOOKING] + 33];
  const copied = `M${x} ${bottom}C${beside} ${MIDDLE + 10} ${beside} ${DECODER} ${x + 10} ${TARGET + 2}`;
  return [...looks, svg('path', { class: 'copied', d: copied })];
}

function node(x, y, marked = false) {
  return svg('circle', { class: marked ? 'marked' : null, cx: x, cy: y, r: RADIUS });
}

function label(text, y) {
  return svg('text', { class: 'label', x: 4, y: y + 4 }, text);
}

function word(letter, index, x, y) {
  const sub = svg('tspan', { class: 'sub', dy: 3 }, String(index + 1));
  return svg('text', { x, y: y + 4, 'text-anchor': 'middle' }, letter, sub);
}

/** A line with a head; markers would need ids, unique on the page. */
function arrow(x1, y1, x2, y2, kind = null) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [dx, dy] = [(5 * (x2 - x1)) / length, (5 * (y2 - y1)) / length];
  const head = `M${x2 - dx - dy / 2} ${y2 - dy + dx / 2}L${x2} ${y2}L${x2 - dx + dy / 2} ${y2 - dy - dx / 2}`;
  return svg('path', { class: kind, d: `M${x1} ${y1}L${x2} ${y2}${head}` });
}

import { math } from './element.js';

const TOKEN = /[A-Za-z]{2,}|\p{L}\p{M}*|\d+(?:\.\d+)?|\S/gu;
const ACCENTS = { '\u0303': '~', '\u0304': '\u00af', '\u20d6': '\u2190', '\u20d7': '\u2192' }; // combining characters

/**
 * A formula from a line of text: `c_i = ∑_j α_{i j} h_j`. Scripts of several characters are in braces; a word of several
 * Latin letters is one name; `√` applies to what follows; a combining tilde, line or arrow is an accent.
 *
 * @param {string} text
 */
export function equation(text) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const row = (end) => {
    const parts = [];
    while (at < tokens.length && tokens[at] !== end) parts.push(scripted());
    at += 1;
    return parts.length === 1 ? parts[0] : math('mrow', {}, ...parts);
  };
  const atom = () => {
    const token = tokens[at++] ?? '';
    if (token === '{') return row('}');
    if (token === '\u221a') return math('msqrt', {}, atom());
    const accent = ACCENTS[token[1]];
    if (accent) return math('mover', { accent: 'true' }, math('mi', {}, token[0]), math('mo', {}, accent));
    const kind = /^\d/.test(token) ? 'mn' : /^[\p{L}\u221e]/u.test(token) ? 'mi' : 'mo';
    return math(kind, kind === 'mo' && '()|[]'.includes(token) ? { stretchy: 'false' } : {}, token);
  };
  const scripted = () => {
    const base = atom();
    const scripts = {};
    while (tokens[at] === '_' || tokens[at] === '^') scripts[tokens[at++]] = atom();
    const { _: below, '^': above } = scripts;
    if (below && above) return math('msubsup', {}, base, below, above);
    if (below) return math('msub', {}, base, below);
    return above ? math('msup', {}, base, above) : base;
  };
  return math('math', { display: 'block' }, row());
}

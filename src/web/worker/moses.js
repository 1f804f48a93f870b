// Plain text for models of lower-cased, tokenised text, and back: the rules of softsearch/text/moses.py.

const ESCAPED = { '&': '&amp;', '|': '&#124;', '<': '&lt;', '>': '&gt;', "'": '&apos;', '"': '&quot;', '[': '&#91;', ']': '&#93;' };
const PLAIN = Object.fromEntries(Object.entries(ESCAPED).map(([plain, escaped]) => [escaped, plain]));
const ENTITY = new RegExp(Object.values(ESCAPED).join('|'));
const ENTITIES = new RegExp(ENTITY, 'g');
const TAG = /^<(and|feature|2[^\s<>]+)>$/;
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'; // as in Python
const WORD = '\\p{L}\\p{N}_';
const LETTER = '[\\p{L}\\p{Nl}\\p{No}]';
const NORMALISED = [[/[„“”«»]|''/g, '"'], [/–/g, '-'], [/—/g, ' - '], [/[´‘‚’`]/g, "'"], [/…/g, '...']];
const QUOTES = { en: [/"([,.]+)/g, '$1"'], '': [/(?<![,.])([,.]+)"/g, '"$1'] };
const SPLIT = [
  [new RegExp(`([^\\p{L}\\p{N}${SPACE}.',-])`, 'gu'), ' $1 '],
  [/(\.\.+)/g, ' $1 '],
  [/(?<!\p{Nd}),|,(?!\p{Nd})/gu, ' , '],
];
const INNER = `(?<=${LETTER})'(?=${LETTER})`;
const APOSTROPHES = {
  en: [new RegExp(`${INNER}|(?<=\\p{Nd})'(?=s)|(')`, 'gu'), " '"],
  fr: [new RegExp(`${INNER}|(')`, 'gu'), "' "],
  '': [/(')/g, ''],
};
const ABBREVIATIONS = { de: /^([a-zäöü]|\p{Nd}{1,2}|ca|bzw|usw)$/u };
const END = `(?![${WORD}])`;
const JOINED = [
  [new RegExp(`(?<=[${WORD}])' `, 'gu'), "'"],
  [new RegExp(` (?='[${WORD}])`, 'gu'), ''],
  [new RegExp(` ' (?=(?:s|t|m|d|ll|re|ve)${END})`, 'gu'), "'"],
  [/ '(?= |$)/g, "'"],
  // an unclosed mark takes the rest of its line: retrying from each later mark would be quadratic
  [/" ([^\n]*?)( "|(?=\n)|$)/g, (all, quoted, end) => (end ? `"${quoted}"` : all)],
  [new RegExp(` (?=[.,;:!?%)\\]}]+${END})`, 'gu'), ''],
  [/(?<![^ "])([([{$#¿¡]) /g, '$1'],
  [/ \/ /g, '/'],
  [new RegExp(`(?<=") (?=-[${WORD}])`, 'gu'), ''],
];

/** Lower-cases and tokenises a line of a language; tags and Moses' tokens stay unchanged. */
export function tokenize(line, lang) {
  const words = split(rewrite(line, NORMALISED)).flatMap((word) => (isToken(word) ? word : split(inTokens(word.toLowerCase(), lang))));
  return words
    .flatMap((word, index) => (endsSentence(word, words[index + 1] ?? '', lang) ? [word.slice(0, -1), '.'] : word))
    .map((token) => (isToken(token) ? token : token.replace(/[&|<>'"[\]]/g, (special) => ESCAPED[special])))
    .join(' ');
}

/** Joins the tokens of a line; it stays lower-cased. */
export function detokenize(line) {
  return rewrite(line.replace(ENTITIES, (entity) => PLAIN[entity]), JOINED);
}

function rewrite(text, rules) {
  return rules.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text);
}

function split(text) {
  return text.split(new RegExp(`[${SPACE}]+`)).filter(Boolean);
}

function isToken(word) {
  return TAG.test(word) || ENTITY.test(word);
}

function inTokens(word, lang) {
  const [apostrophe, inner] = APOSTROPHES[lang] ?? APOSTROPHES[''];
  const parts = rewrite(word, [QUOTES[lang] ?? QUOTES[''], ...SPLIT]);
  return parts.replace(apostrophe, (_, alone) => (alone ? " ' " : inner));
}

/** Whether the full stop at the end of a word ends a sentence. */
function endsSentence(word, following, lang) {
  const stem = word.slice(0, -1);
  if (!word.endsWith('.') || /^\.*$/.test(stem) || /^\p{Ll}/u.test(following)) return false;
  if (stem.includes('.') && new RegExp(LETTER, 'u').test(stem)) return false;
  return !ABBREVIATIONS[lang]?.test(stem);
}

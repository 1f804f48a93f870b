// Sentences, counted as softsearch translate does (src/softsearch/runtime/sentences.py).

const MARKS = '.!?\u2026\u061f\u06d4\u0964\u0965\u0589\u1362\u104b\u0f0d';
const WIDE = '\u3002\uff01\uff1f';
const WIDE_CLOSING = '\u201d\u300d\u300f\uff09';
const END = new RegExp(
  `(?<![${MARKS}])([${MARKS}]+)["'\u201c\u201d\u2019\u00bb)\\]]*\\s+(?=([^\\s\\p{Nd}&]))` +
    `|(?<![${WIDE}])[${WIDE}]+[${WIDE_CLOSING}]*\\s*(?=([^\\s\\p{Nd}&${WIDE}${WIDE_CLOSING}]))`,
  'gu',
);
const LONGEST = 40;
const OPENING = /^["'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb([)\]]+|["'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb([)\]]+$/gu;
const LOWER = /^\p{Ll}/u;
const NUMBER = /^(\p{Nd}{1,3}|[IVXLC]+)$/u;
const GOES_ON = [
  /^(Abt|Adm|Ave?|Avda|Avv|Capt|Cie|Col|Dept|Dipl|Dott|Dra|Gen|Gov|Hon|Ing|Maj|Messrs|Mlle|Mme|Pres|Prof|Rep|Rev|Sen|Sig|Sra|Srta|Supt|Tel|Uds?|Univ|al|approx|bijv|ca|ehem|env|esp|evtl|geb|gest|incl|inkl|mevr|resp|sog|spec|usw|vgl|\u0430\u043a\u0430\u0434|\u0438\u043c|\u043f\u0440\u043e\u0444|\u0443\u043b)$/u,
  /^\p{L}{1,2}(\.-?\p{L}{1,2})+$/u,
  /^(?![ckm][glm]$)[B-DF-HJ-NP-TV-XZ]?[b-df-hj-np-tv-xz]{1,4}$/u,
  /^[\u0411-\u0414\u0416\u0417\u041a-\u041d\u041f-\u0422\u0424-\u0429]?[\u0431-\u0434\u0436\u0437\u043a-\u043d\u043f-\u0442\u0444-\u0449]{1,4}$/u,
];
const ORDINALS = /^((?:bs|cs|da|de|et|fi|fo|hr|hu|is|lb|lt|lv|me|nb|nds|nn|no|pl|sk|sl|sr|tr)(?![a-z])|$)/u;

/**
 * The sentences in a text, by a rule that prefers missing an end to mistaking an abbreviation for one.
 *
 * @param {string} text one line
 * @param {string | null} lang its language: with ordinals as `2.`, or '', no sentence ends with a small number
 */
export function countSentences(text, lang = null) {
  const line = text.trim();
  const lower = line === line.toLowerCase() && line !== line.toUpperCase();
  const ordinals = lang !== null && ORDINALS.test(lang);
  const ends = [...line.matchAll(END)].filter(
    ({ 1: marks, 2: one, 3: other, index }) =>
      (lower || !LOWER.test(one ?? other)) && !(marks === '.' && goesOn(line, index, lower, ordinals)),
  );
  return 1 + ends.length;
}

function goesOn(line, stop, lower, ordinals) {
  const written = line.slice(Math.max(0, stop - LONGEST), stop).match(/\S*$/u)[0];
  const word = written.replace(OPENING, '');
  if (/^\p{L}$/u.test(word)) return true;
  if (NUMBER.test(word)) return ordinals || written.length === stop;
  const forms = lower ? [word, word.charAt(0).toUpperCase() + word.slice(1)] : [word];
  return forms.some((form) => GOES_ON.some((pattern) => pattern.test(form)));
}

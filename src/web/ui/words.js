// Attention connects pieces, but people read words: this module joins pieces to words.

const END = '</s>';
const LANGUAGE = /^<(2|from:)([^\s<>]+)>$/u; // a tag that the source or the translation begins with
// Scripts without spaces: a word would be a whole sentence, so each piece is shown as a word.
const UNSPACED = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}\p{sc=Lana}\p{sc=Tale}\p{sc=Talu}\p{sc=Tavt}]/u;
const NAMED = 0.05; // the smallest weight in a description
const MOST_NAMED = 4;
const LONG = 15; // letters of a word that may be broken over a line
const SOFT_HYPHEN = '\u00ad';

/**
 * Joins pieces to words.
 *
 * @param {string[]} pieces as SentencePiece writes them: U+2581 begins a word, or ends it
 * @returns {{text: string, parts: string[], spaced: boolean, end: boolean, pieces: number[]}[]} `parts`: the
 *   text of each piece; `spaced`: a space is before it; `end`: it is the end mark, or the tag of a language, which
 *   are not text; `pieces`: indices of its pieces
 */
export function joinPieces(pieces) {
  const words = [];
  pieces.forEach((piece, index) => {
    const tag = LANGUAGE.exec(piece);
    const end = piece === END || tag !== null;
    const spaced = piece.startsWith('\u2581') || (index > 0 && /.\u2581$/su.test(pieces[index - 1]));
    const name = piece === END ? 'end' : tag && `${tag[1] === '2' ? 'into' : 'from'} ${tag[2]}`;
    const text = name || piece.replace(/^\u2581|(?<=.)\u2581$/gsu, '');
    const last = words.at(-1);
    // A lone U+2581 is a space; its word follows in separate pieces.
    const joins = last && !last.end && !end && !spaced && (last.text === '' || !UNSPACED.test(text));
    if (joins) {
      last.text += text;
      last.parts.push(text);
      last.pieces.push(index);
    } else {
      words.push({ text, parts: [text], spaced: spaced || end || Boolean(last?.end), end, pieces: [index] });
    }
  });
  return words;
}

/** The word with soft hyphens between its pieces, if it is long: browsers lack the hyphenation of many languages. */
export function hyphenated({ text, parts }) {
  if (text.length < LONG) return text;
  return parts.reduce((before, part) => {
    const letters = /\p{L}{2}$/u.test(before) && /^\p{sc=Latn}|^\p{sc=Grek}|^\p{sc=Cyrl}/u.test(part);
    return before + (letters ? SOFT_HYPHEN : '') + part;
  });
}

/** A text whose long words are hyphenated as these are. */
export function hyphenatedText(text, words) {
  const long = new Map(words.map((word) => [word.text, hyphenated(word)]));
  return text.replace(/\S+/gu, (word) => long.get(word) ?? word);
}

/** What was selected, without soft hyphens. */
export function withoutHyphens(text) {
  return text.replaceAll(SOFT_HYPHEN, '');
}

/**
 * Attention between words: summed over the pieces of a source word, averaged over the pieces of a target word.
 *
 * @param {number[][]} alignments [target pieces][source pieces]
 * @returns {number[][]} [target words][source words]
 */
export function wordWeights(alignments, tgtWords, srcWords) {
  return tgtWords.map((tgt) =>
    srcWords.map((src) => {
      const sums = tgt.pieces.map((row) => src.pieces.reduce((sum, column) => sum + alignments[row][column], 0));
      return Math.min(1, sums.reduce((total, sum) => total + sum, 0) / sums.length);
    }),
  );
}

/** The words that a word is connected to, heaviest first: `Haus: house 0.91, the 0.06`. */
export function describe(word, others, weights, format) {
  const order = others.map((_, index) => index).sort((a, b) => weights[b] - weights[a]);
  const named = order.filter((index, rank) => rank === 0 || (rank < MOST_NAMED && weights[index] >= NAMED));
  return `${word.text}: ${named.map((index) => `${others[index].text} ${format(weights[index])}`).join(', ')}`;
}

// Translates a text, as softsearch translate does with the same bundle.

import { UserError } from './errors.js';
import { detokenize, tokenize } from './moses.js';
import { countSentences } from './sentences.js';

const EOS = 3;
const FIRST_LIMIT = 4;
const BLANK = /^[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}]*$/u;
const SURROGATE = /\p{Cs}/u; // a lone surrogate
const LINE_END = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/;

/**
 * Yields what the search finds with at most 4, 8, 16, ... target tokens; the last is what it finds without a limit.
 *
 * @param {Model} model
 * @param {string} text one sentence
 * @param {number} beam
 */
export async function* translate(model, text, beam) {
  const { line, ids, most, blank } = read(model, text);
  if (blank) {
    const empty = {
      text: '',
      score: 0,
      log_prob: 0,
      truncated: false,
      fewer_sentences: false,
      src_pieces: [],
      tgt_pieces: [],
      alignments: null,
    };
    yield { final: true, n_best: [empty], unknown: [] };
    return;
  }
  const unknown = model.src.unknown(line);
  const sentences = countSentences(line, model.srcLang);
  for (let limit = FIRST_LIMIT; ; limit *= 2) {
    const found = await model.search(ids, beam, Math.min(limit, most));
    const n_best = found.map((hypothesis) => shown(model, line, ids, hypothesis, sentences));
    const final = limit >= most || !n_best.some(({ truncated }) => truncated);
    yield { final, n_best, unknown };
    if (final) return;
  }
}

/** Traces of the search for a text, one for each sentence; none if the text is blank. */
export async function traces(model, text, beam) {
  const { line, ids, most, blank } = read(model, text);
  if (blank) return [];
  const found = await model.trace(ids, beam, most);
  return [{ source: line, src_pieces: model.src.readPieces(line, ids), ...found }];
}

/** A text as the model reads it, and the maximum tokens of its translation. */
function read(model, text) {
  const given = text.replace(/[\r\n]+/g, ' ');
  if (SURROGATE.test(given)) throw new UserError('The text contains half a character (a lone surrogate); remove it.');
  const line = model.readsTokens ? tokenize(model.src.normalized(given), model.srcLang) : given;
  const ids = model.src.encode(line);
  const { limits } = model.manifest;
  const blank = BLANK.test(line) || ids.length === 1;
  if (!blank && ids.length > limits.max_src_tokens) {
    throw new UserError(
      `The text has ${ids.length} tokens, but the model reads at most ${limits.max_src_tokens} at once; translate fewer sentences at a time.`,
    );
  }
  return { line, ids, most: model.mostTokens[ids.length - 1], blank };
}

function shown(model, line, ids, { tokens, score, logProb, alignments }, sentences) {
  const text = model.tgt.decode(tokens).split(LINE_END).join(' ');
  return {
    text: model.readsTokens ? detokenize(text) : text,
    score,
    log_prob: logProb,
    truncated: tokens.at(-1) !== EOS,
    fewer_sentences: countSentences(text) < sentences,
    src_pieces: model.src.readPieces(line, ids),
    tgt_pieces: model.tgt.pieces(tokens),
    alignments: alignments ?? null,
  };
}

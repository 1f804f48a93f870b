// Text to token ids and back, as SentencePiece does it.

import { Tokenizer } from '@huggingface/tokenizers';
import { useCharsmaps } from './charsmap.js';

const UNKNOWN = '<unk>';
const SPECIALS = ['<pad>', UNKNOWN, '<s>', '</s>'];

export class TextTokenizer {
  /** @param {object} json tokenizer.json */
  constructor(json) {
    this.tokenizer = useCharsmaps(new Tokenizer(json, { clean_up_tokenization_spaces: false }));
    const { type, vocab } = json.model;
    const names = Array.isArray(vocab) ? vocab.map(([piece]) => piece) : Object.keys(vocab);
    const pieces = names.filter((piece) => !piece.startsWith('\n')); // which special ones begin with
    this.hasWords = type === 'WordPiece';
    this.known = new Set(this.hasWords ? pieces : pieces.flatMap((piece) => [...piece]).concat('\u2581'));
    // Tags are written in the vocabulary as single characters, which the decoder turns back.
    this.replacements = json.decoder.decoders
      .filter(({ type, pattern }) => type === 'Replace' && pattern.String)
      .map(({ pattern, content }) => [pattern.String, content])
      .filter(([from]) => from !== '\u2581');
  }

  /** Token ids, EOS at the end. */
  encode(text) {
    return this.tokenizer.encode(text).ids;
  }

  /** A text as the model reads it, without surplus spaces. */
  normalized(text) {
    return this.shown(this.tokenizer.normalizer.normalize(text)).replace(/[\u2581 ]+/g, ' ').trim();
  }

  /** What the vocabulary lacks of a text: characters, or words if the model uses words. */
  unknown(text) {
    const normalized = this.tokenizer.normalizer.normalize(text);
    const units = this.hasWords ? normalized.match(/\u2581[^\u2581]+/g) ?? [] : [...normalized];
    return units.filter((unit) => !this.known.has(unit)).map((unit) => (this.hasWords ? unit.slice(1) : unit));
  }

  decode(ids) {
    // tokenizer.json of older bundles leaves a space after a translation
    return this.tokenizer.decode(ids, { skip_special_tokens: true }).replace(/^ +| +$/g, '');
  }

  pieces(ids) {
    return ids.map((id) => SPECIALS[id] ?? this.shown(this.tokenizer.id_to_token(id)));
  }

  /** The pieces of a text's ids, with the letters of the text for what the vocabulary lacks. */
  readPieces(text, ids) {
    const pieces = this.pieces(ids);
    const lacking = ids.filter((id) => SPECIALS[id] === UNKNOWN).length;
    if (!lacking) return pieces;
    const characters = [...this.tokenizer.normalizer.normalize(text)];
    const unknown = this.hasWords
      ? this.unknown(text).map((word) => `\u2581${word}`)
      : characters.map((each) => (this.known.has(each) ? '\n' : each)).join('').split(/\n+/).filter(Boolean);
    if (unknown.length !== lacking) return pieces;
    return pieces.map((piece) => (piece === UNKNOWN ? unknown.shift() : piece));
  }

  shown(piece) {
    return this.replacements.reduce((text, [from, to]) => text.replaceAll(from, to), piece);
  }
}

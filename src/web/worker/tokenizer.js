// Text to token ids and back, as SentencePiece does it.

import { Tokenizer } from '@huggingface/tokenizers';
import { useCharsmaps } from './charsmap.js';

const SPECIALS = ['<pad>', '<unk>', '<s>', '</s>'];

export class TextTokenizer {
  /** @param {object} json tokenizer.json */
  constructor(json) {
    this.tokenizer = useCharsmaps(new Tokenizer(json, { clean_up_tokenization_spaces: false }));
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

  decode(ids) {
    return this.tokenizer.decode(ids, { skip_special_tokens: true });
  }

  pieces(ids) {
    return ids.map((id) => SPECIALS[id] ?? this.shown(this.tokenizer.id_to_token(id)));
  }

  shown(piece) {
    return this.replacements.reduce((text, [from, to]) => text.replaceAll(from, to), piece);
  }
}

// The rules of normalisation inside a SentencePiece model, as SentencePiece applies them.
//
// @huggingface/tokenizers applies NFKC instead of any such rules. The page and examples/node use this file.

import { PrecompiledNormalizer } from '@huggingface/tokenizers';

const LABEL = 0x800000ff; // of a unit: the byte that leads to it, and a bit that no byte has
const VALUE = 0x7fffffff;

/** Replaces the longest text that has a rule, from left to right; all other text stays. */
export class Charsmap {
  /** @param {string} charsmap in base64: the size of a trie (darts-clone), the trie, and texts that end with NUL */
  constructor(charsmap) {
    const bytes = Uint8Array.from(atob(charsmap), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size >> 2 }, (_, index) => view.getUint32(4 + 4 * index, true));
    this.texts = bytes.subarray(4 + size);
  }

  /** @param {string} text without lone surrogates */
  normalize(text) {
    const input = new TextEncoder().encode(text);
    const output = [];
    for (let at = 0; at < input.length; ) {
      const { length, value } = this.longest(input, at);
      if (length) {
        for (let byte = value; this.texts[byte]; byte++) output.push(this.texts[byte]);
        at += length;
      } else {
        do output.push(input[at++]);
        while ((input[at] & 0xc0) === 0x80); // the rest of a character
      }
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(output));
  }

  /** The length of the longest rule for the bytes from `start`, 0 if there is none, and where its text begins. */
  longest(input, start) {
    let longest = { length: 0, value: 0 };
    let node = offset(this.units[0]);
    for (let at = start; at < input.length; at++) {
      node ^= input[at];
      const unit = this.units[node];
      if ((unit & LABEL) !== input[at]) break;
      node ^= offset(unit);
      if (unit & 0x100) longest = { length: at + 1 - start, value: this.units[node] & VALUE };
    }
    return longest;
  }
}

function offset(unit) {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}

/** Gives a tokenizer the rules of its own model instead of NFKC. */
export function useCharsmaps(tokenizer) {
  const { normalizer } = tokenizer;
  normalizer.normalizers = normalizer.normalizers.map((each) =>
    each instanceof PrecompiledNormalizer ? new Charsmap(each.charsmap) : each,
  );
  return tokenizer;
}

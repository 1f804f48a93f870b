// Sentences, counted as softsearch translate does.

const END =
  /(?:(?:\s|\p{L}{4}|\b[a-z]{3})\.|(?<![.!?\u2026])\.*[!?\u2026])[.!?\u2026]*["'\u201c\u201d\u2019\u00bb)\]]*\s+(?=([^\s\d&]))|[\u3002\uff01\uff1f]+[\u201d\u300d\u300f\uff09]*\s*(?=([^\s\d&]))/gu;
const LOWER = /^\p{Ll}/u;

/** The sentences in a text, by a rule that rather misses an end than takes an abbreviation for one. */
export function countSentences(text) {
  const line = text.trim();
  const lower = line === line.toLowerCase() && line !== line.toUpperCase();
  const ends = [...line.matchAll(END)].filter(([, one, other]) => lower || !LOWER.test(one ?? other));
  return 1 + ends.length;
}

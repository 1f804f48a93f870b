// Numbers and names as people read them.

const MINUS = '\u2212';
const few = new Intl.NumberFormat('en', { style: 'percent', minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
const fine = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2, roundingMode: 'trunc' });
const languages = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' });

/** What a model is called: its title, or its name without the form of its file. */
export function title({ name, about }) {
  return about?.title || name.replace(/-single$/, '');
}

/** A probability as per cent: two digits, more where that would round to 100 %. */
export function percent(probability) {
  if (probability < 0.00001) return '< 0.001%';
  return (probability < 0.995 ? few : fine).format(probability);
}

/** A score: a log probability after the length penalty. */
export function score(value) {
  return value.toFixed(3).replace('-', MINUS);
}

/** An attention weight. */
export function weight(value) {
  return value.toFixed(2);
}

/** A duration, from milliseconds. */
export function duration(ms) {
  return ms < 9_950 ? `${Math.round(ms).toLocaleString('en')} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** An amount of bytes. */
export function megabytes(bytes) {
  return (bytes / 1_000_000).toFixed(1);
}

/** The English name of a language, or the code itself if there is none. */
export function language(code) {
  try {
    return languages.of(code);
  } catch {
    return code;
  }
}

/** A language code for the `lang` attribute, or null. */
export function langAttribute(code) {
  try {
    return Intl.getCanonicalLocales(code)[0] ?? null;
  } catch {
    return null;
  }
}

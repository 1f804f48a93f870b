// Numbers and names as people read them.

const MINUS = '\u2212';
const few = new Intl.NumberFormat('en', { style: 'percent', minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
const fine = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2, roundingMode: 'trunc' });
const languages = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' });

// Names of languages of M2M-100 and NLLB-200 that browsers lack.
const RARE = new Map(
  `ace Acehnese, acm Mesopotamian Arabic, acq Ta’izzi-Adeni Arabic, aeb Tunisian Arabic, ajp South
   Levantine Arabic, apc North Levantine Arabic, ars Najdi Arabic, ary Moroccan Arabic, arz Egyptian
   Arabic, awa Awadhi, azb South Azerbaijani, ba Bashkir, bak Bashkir, ban Balinese, bem Bemba, bjn
   Banjar, bod Tibetan, bug Buginese, cjk Chokwe, crh Crimean Tatar, dik Southwestern Dinka, dyu Dyula,
   dzo Dzongkha, ff Fula, fij Fijian, fon Fon, fur Friulian, fuv Nigerian Fulfulde, hne Chhattisgarhi,
   kab Kabyle, kac Kachin, kam Kamba, kas Kashmiri, kbp Kabiyè, kea Kabuverdianu, kik Kikuyu, kmb
   Kimbundu, knc Central Kanuri, kon Kongo, lij Ligurian, lim Limburgish, lmo Lombard, ltg Latgalian,
   lua Luba-Kasai, luo Luo, mag Magahi, min Minangkabau, mos Mossi, ns Northern Sotho, nus Nuer, pag
   Pangasinan, pap Papiamento, pbt Southern Pashto, quy Ayacucho Quechua, run Rundi, sag Sango, sat
   Santali, scn Sicilian, shn Shan, srd Sardinian, ss Swati, ssw Swati, szl Silesian, taq Tamasheq, tpi
   Tok Pisin, tum Tumbuka, tzm Central Atlas Tamazight, umb Umbundu, vec Venetian, war Waray`
    .split(/,\s+/)
    .map((each) => each.split(/\s+/))
    .map(([code, ...words]) => [code, words.join(' ')]),
);

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

/** The English name of a language such as `de`, `pt_BR` and `deu_Latn`, or the code itself if there is none. */
export function language(code) {
  const tag = langAttribute(code);
  if (!tag) return code;
  const [locale, full] = [new Intl.Locale(tag), languages.of(tag)];
  const short = locale.minimize(); // without the usual script, which would be in parentheses
  const name = full.includes('(') && short.region === locale.region ? languages.of(short.toString()) : full;
  return name.split(' ')[0] === short.language ? (RARE.get(code.split('_')[0]) ?? code) : name;
}

/** Languages with their names, sorted by name; codes tell languages with one name apart. */
export function named(codes) {
  const names = codes.map(language);
  const isShared = (name) => names.indexOf(name) !== names.lastIndexOf(name);
  const labels = names.map((name, index) => (isShared(name) ? `${name} (${codes[index]})` : name));
  return labels.map((label, index) => [label, codes[index]]).sort(([one], [other]) => one.localeCompare(other, 'en'));
}

/** The first of the visitor's languages among `codes`, else a language that many people know, else the first one. */
export function preferred(codes) {
  const of = (code) => new Intl.Locale(langAttribute(code) ?? 'und').maximize();
  const same = (one, other) => one.language === other.language && one.script === other.script;
  const wanted = [...navigator.languages, 'en', 'de', 'fr', 'es', 'zh'].map(of).map((mine) => codes.find((code) => same(of(code), mine)));
  return wanted.find((code) => code) ?? codes[0];
}

/** A language code for the `lang` attribute, or null. */
export function langAttribute(code) {
  try {
    return Intl.getCanonicalLocales(code.replace('_', '-'))[0] ?? null;
  } catch {
    return null;
  }
}

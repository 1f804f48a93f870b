import { about } from './about.js';
import { element } from './element.js';
import { duration, langAttribute, language, megabytes, named, preferred, title, weight } from './format.js';
import { Heatmap } from './heatmap.js';
import { NBest } from './n-best.js';
import { SearchTree } from './search-tree.js';
import { WordLine } from './word-line.js';
import { describe, joinPieces, wordWeights } from './words.js';

const WIDE = '(min-width: 800px)';
const EMPTY = 'The translation appears here as you type.';
const LATER = 'The translation appears here when the card comes into view.';
const HINT = 'Point at a word, or use Tab and the arrow keys, to see its attention.';
const CUT = 'The translation is cut off: it reached the model\u2019s length limit.';
const FEWER = 'A sentence may be missing: the model translates one at a time. Write a single sentence.';
const MOST_UNKNOWN = 10; // shown in the message
let cards = 0;

/** A model: its translation as words, its n best translations and its attention. */
export class Card {
  /** @param model an entry of site.json's `models` */
  constructor(model) {
    const id = `card-${++cards}`;
    this.model = model;
    this.title = title(model);
    this.langs = { srcLang: langAttribute(model.src_lang), tgtLang: langAttribute(model.tgt_lang) };
    this.running = null;
    this.source = new WordLine('source', `Source as ${this.title} reads it`, (index) => this.point('src', index));
    this.target = new WordLine('target', `Translation by ${this.title}`, (index) =>
      this.point('tgt', index === null ? null : this.shown.rows[index]),
    );
    if (this.langs.srcLang) this.source.element.lang = this.langs.srcLang;
    if (this.langs.tgtLang) this.target.element.lang = this.langs.tgtLang;
    this.nBest = new NBest(`${id}-n-best`, (index) => this.showCandidate(this.result.n_best[(this.rank = index)], true));
    this.heatmap = model.has_attention
      ? new Heatmap(`Attention of ${this.title}`, (side, index) => this.point(side, index))
      : null;
    this.heads = this.offerHeads();
    this.tree = new SearchTree(this.title);
    this.status = element('p', { class: 'status' });
    this.weights = element('p', { class: 'weights' });
    this.problem = element('div', { role: 'alert' });
    this.announcement = element('p', { class: 'unseen', role: 'status' });
    this.menus = this.offerLanguages();
    this.element = this.layOut(id);
    this.clear();
  }

  /** Menus of the languages that the model reads and writes; none for a single language pair. */
  offerLanguages() {
    const { sources = [], targets = [], src_lang, tgt_lang } = this.model;
    const menu = (label, codes, chosen, line, tag) => {
      const options = named(codes).map(([name, code]) => element('option', { value: code, selected: code === chosen }, name));
      const select = element('select', {}, ...options);
      select.addEventListener('change', () => this.request && this.translate(...this.request));
      return { element: element('label', {}, `${label} `, select), select, line: line.element, tag };
    };
    const target = targets.includes(tgt_lang) ? tgt_lang : preferred(targets.filter((code) => code !== src_lang));
    return [
      ...(sources.length ? [menu('from', sources, src_lang, this.source, (code) => `<from:${code}>`)] : []),
      ...(targets.length ? [menu('into', targets, target, this.target, (code) => `<2${code}>`)] : []),
    ];
  }

  /** A menu of the attention heads to show, if the model has several. */
  offerHeads() {
    const { heads = [], attention } = this.model;
    const option = (value, name = value) => element('option', { value }, name);
    const select = element('select', {}, option('', attention || 'the model\u2019s own'), ...heads.map((head) => option(head)));
    select.addEventListener('change', () => this.result && this.attend());
    return heads.length ? select : null;
  }

  /** Shows the attention chosen in the menu. */
  async attend() {
    const { n_best } = this.result;
    const head = this.heads.value;
    for (const each of n_best) each.own ??= each.alignments;
    try {
      const found = head ? await this.askHead(head) : n_best.map(({ own }) => own);
      if (this.result?.n_best !== n_best || this.heads.value !== head) return;
      n_best.forEach((each, rank) => (each.alignments = found[rank]));
      this.showCandidate(n_best[this.rank], true);
    } catch (error) {
      this.problem.replaceChildren(error.message);
    }
  }

  /** A text with the tags of the chosen languages, the target's first; text that has tags already is unchanged. */
  tagged(text) {
    if (/^<(2|from:)/.test(text.trim())) return text;
    for (const { line, select } of this.menus) line.lang = langAttribute(select.value) ?? '';
    return [...this.menus.map(({ tag, select }) => tag(select.value)).reverse(), text].join(' ');
  }

  layOut(id) {
    const { name, architecture, src_lang, tgt_lang, text_form, about: told } = this.model;
    const facts = [
      architecture !== name && !told && architecture,
      told?.title && name,
      src_lang && tgt_lang && `${language(src_lang)} to ${language(tgt_lang)}`,
    ].filter(Boolean);
    const lowerCased =
      text_form === 'lc_tok' &&
      element('p', { class: 'note' }, 'Trained on lower-cased text: it ignores capitals, and writes none.');
    const withoutSymbols =
      this.model.without_symbols &&
      element(
        'p',
        { class: 'note' },
        'Trained on message catalogs. This page gives it placeholders and tags as text, which it may change; softsearch serve keeps them.',
      );
    const attention = this.heatmap
      ? element(
          'details',
          { class: 'attention', open: matchMedia(WIDE).matches },
          element('summary', {}, 'Attention'),
          this.heads ? element('label', {}, 'of ', this.heads) : '',
          this.heatmap.element,
        )
      : element(
          'p',
          { class: 'note attention' },
          'This model has no attention: no weights connect its words with those of the source.',
        );
    return element(
      'article',
      { class: told ? 'card told' : 'card', 'aria-labelledby': id },
      element(
        'header',
        {},
        element('h2', { id }, ...(told?.year ? [element('span', { class: 'year' }, String(told.year)), ' '] : []), this.title),
        this.status,
        element('p', { class: 'facts' }, facts.join(' \u00b7 ')),
        this.menus.length ? element('p', { class: 'languages' }, ...this.menus.map((menu) => menu.element)) : '',
        lowerCased || '',
        withoutSymbols || '',
      ),
      element('div', { class: 'words' }, this.source.element, this.target.element, this.weights, this.problem),
      ...(told ? [about(this.model)] : []),
      told ? element('details', { class: 'others' }, element('summary', {}, 'Other translations'), this.nBest.element) : this.nBest.element,
      attention,
      this.tree.element,
      this.announcement,
    );
  }

  /** Translates a text as soon as the card is in view. */
  ask(...request) {
    this.request = request;
    if (this.visible) this.translate(...request);
    else {
      this.stop();
      this.clear(LATER);
    }
  }

  /** Called when the card comes into view or leaves it. */
  view(visible) {
    this.visible = visible;
    if (visible && this.element.classList.contains('later')) this.translate(...this.request);
  }

  /** Translates a text and shows the results; cancels the search for an earlier text. */
  async translate(backend, text, beam, more) {
    this.running?.abort();
    this.element.classList.remove('later');
    const running = (this.running = new AbortController());
    this.problem.replaceChildren();
    this.element.classList.remove('failed');
    if (!text.trim()) return this.clear();
    this.element.classList.remove('empty');
    if (!this.shown) this.weights.textContent = '';
    this.nBest.expect(beam);
    this.busy(true);
    const begun = performance.now();
    try {
      const opened = await backend;
      const asked = { model: this.model.name, text: this.tagged(text), beam, nBest: beam, more, signal: running.signal };
      const results = opened.translate(asked);
      for await (const result of results) {
        if (running.signal.aborted) return;
        this.result = result;
        this.rank = 0;
        this.showCandidate(result.n_best[0], result.final);
        if (result.final) {
          this.finish(result.ms ?? performance.now() - begun);
          this.tree.offer(() => opened.traces(asked));
          this.askHead = (head) => opened.attention(asked, head);
          if (this.heads?.value) this.attend();
        }
      }
    } catch (error) {
      if (!running.signal.aborted) this.fail(error, () => this.translate(backend, text, beam, more));
    }
  }

  /** Cancels the search, because the card is no longer shown. */
  stop() {
    this.running?.abort();
  }

  /** Shows how much of the model is loaded. */
  progress(loaded, total) {
    const bar = element('progress', {
      'aria-label': `Loading ${this.title}`,
      max: total ? String(total) : null,
      value: total ? String(loaded) : null,
    });
    this.status.replaceChildren(
      bar,
      total ? `${megabytes(loaded)} of ${megabytes(total)} MB` : `${megabytes(loaded)} MB`,
    );
  }

  showCandidate(candidate, final) {
    const src = joinPieces(candidate.src_pieces);
    const tgt = joinPieces(candidate.tgt_pieces);
    const weights = candidate.alignments && wordWeights(candidate.alignments, tgt, src);
    const rows = tgt.flatMap((word, row) => (word.end ? [] : [row])); // the translation is shown without its end mark
    this.shown = weights && { src, tgt, weights, rows };
    if (weights)
      this.source.show(
        src,
        src.map((_, column) => this.describe('src', column)),
      );
    else
      this.source.show(
        src.filter((word) => !word.end),
        null,
      );
    this.target.show(
      rows.map((row) => tgt[row]),
      weights && rows.map((row) => this.describe('tgt', row)),
    );
    this.target.element.classList.toggle('unfinished', !final || candidate.truncated);
    this.heatmap?.show(tgt, src, weights ?? [], this.langs);
    this.point('tgt', this.shown?.rows[this.target.focused()] ?? null);
    const problem = candidate.truncated ? CUT : candidate.fewer_sentences ? FEWER : '';
    const problems = [problem, unknownWords(this.result.unknown), missingTerms(candidate.missing_terms ?? [])];
    this.problem.replaceChildren(final ? problems.filter(Boolean).join(' ') : '');
  }

  /** Marks what a word is connected to. @param index of a word of `shown`, or null */
  point(side, index) {
    if (!this.shown) return;
    const { weights, rows } = this.shown;
    const on = index !== null;
    const row = on && side === 'tgt' ? weights[index] : null;
    const column = on && side === 'src' ? weights.map((each) => each[index]) : null;
    this.source.mark(row, column ? index : -1);
    this.target.mark(column && rows.map((each) => column[each]), row ? rows.indexOf(index) : -1);
    this.heatmap.mark(side, index);
    this.weights.textContent = on ? this.describe(side, index) : HINT;
    this.weights.classList.toggle('hint', !on);
  }

  describe(side, index) {
    const { src, tgt, weights } = this.shown;
    if (side === 'tgt') return describe(tgt[index], src, weights[index], weight);
    return describe(
      src[index],
      tgt,
      weights.map((row) => row[index]),
      weight,
    );
  }

  finish(ms) {
    const [best] = this.result.n_best;
    this.busy(false);
    this.status.textContent = duration(ms);
    this.nBest.show(this.result.n_best, this.langs.tgtLang);
    this.announcement.textContent = `${this.title}: ${best.text}`;
  }

  fail(error, again) {
    this.clear();
    this.element.classList.add('failed');
    const button = element('button', { type: 'button' }, 'Try again');
    button.addEventListener('click', again);
    this.problem.replaceChildren(element('p', {}, error.message), button);
  }

  clear(hint = EMPTY) {
    this.busy(false);
    this.shown = this.result = null;
    this.status.textContent = '';
    this.announcement.textContent = '';
    this.weights.textContent = hint;
    this.element.classList.toggle('later', hint === LATER);
    this.weights.classList.add('hint');
    this.element.classList.add('empty');
    for (const line of [this.source, this.target]) line.show([], null);
    this.nBest.clear();
    this.tree.offer(null);
    this.heatmap?.show([], [], [], this.langs);
  }

  busy(busy) {
    this.target.element.setAttribute('aria-busy', String(busy));
    this.element.classList.toggle('busy', busy);
  }
}

/** The message about glossary terms that the translation lacks. */
function missingTerms(terms) {
  return terms.length ? `Not translated as in the glossary: ${terms.join(', ')}` : '';
}

/** The message about characters or words that the model does not know. */
function unknownWords(unknown) {
  const different = [...new Set(unknown)];
  const more = different.length > MOST_UNKNOWN ? ', \u2026' : '';
  return different.length ? `The model does not know: ${different.slice(0, MOST_UNKNOWN).join(', ')}${more}` : '';
}

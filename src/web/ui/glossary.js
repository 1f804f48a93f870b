import { element } from './element.js';

const KEY = 'softsearch.glossary'; // in localStorage
const PAUSE = 400; // milliseconds without typing before terms are sent

/** Terms and their required translations: rows that this browser stores and sends with each request, or the server's. */
export class Glossary {
  /**
   * @param {string[]} served names of the server's glossaries, one of which may be chosen instead of rows
   * @param {() => void} onChange called when the terms change
   */
  constructor(served, onChange) {
    this.rows = element('div', { class: 'terms' });
    this.summary = element('summary');
    const add = element('button', { type: 'button' }, 'Add a term');
    add.addEventListener('click', () => this.add().focus());
    const hint = 'If a sentence contains the term, its translation must contain this one; separate alternatives with |.';
    const kept = read();
    this.served = element('select', {}, element('option', { value: '' }, 'these terms'), ...served.map(named));
    const choice = served.length ? element('label', {}, 'Use ', this.served) : '';
    const details = element('details', { class: 'glossary', open: kept.length > 0 }, this.summary, choice, this.rows, add);
    this.served.addEventListener('change', () => {
      this.rows.hidden = add.hidden = this.served.value !== '';
      this.keep();
      onChange();
    });
    this.summary.after(element('p', { class: 'note' }, hint));
    document.querySelector('#request .controls').after(details);
    for (const pair of kept.length ? kept : [['', '']]) this.add(...pair);
    let timer;
    this.changed = () => {
      clearTimeout(timer);
      const before = this.sent;
      this.keep();
      if (this.sent !== before) timer = setTimeout(onChange, PAUSE);
    };
    this.rows.addEventListener('input', this.changed);
    this.keep();
  }

  /** Adds a row and returns its first field. */
  add(...texts) {
    const fields = ['Term', 'Its translation'].map((label, side) =>
      element('input', { 'aria-label': label, placeholder: label, value: texts[side], dir: 'auto', autocomplete: 'off' }),
    );
    const remove = element('button', { type: 'button', 'aria-label': 'Remove this term' }, '\u00d7');
    const row = element('div', { class: 'term', role: 'group' }, ...fields, remove);
    row.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.target !== remove && !event.isComposing) this.add().focus();
    });
    remove.addEventListener('click', () => {
      const next = (row.nextElementSibling ?? row.previousElementSibling)?.querySelector('button');
      row.remove();
      (next ?? this.rows.nextElementSibling).focus();
      this.changed();
    });
    this.rows.append(row);
    return fields[0];
  }

  /** The rows, as pairs of texts. */
  get pairs() {
    return [...this.rows.children].map((row) => [...row.querySelectorAll('input')].map((field) => field.value.trim()));
  }

  /** The name of the server's glossary, or translations by term, without rows that lack one; undefined if there is none. */
  get terms() {
    if (this.served.value) return this.served.value;
    const found = new Map(); // term in lower case -> the term as written, and its translations
    for (const [term, translation] of this.pairs) {
      const [name, translations] = found.get(term.toLowerCase()) ?? [term, []];
      if (term && translation) found.set(term.toLowerCase(), [name, [...translations, translation]]);
    }
    const terms = [...found.values()].map(([term, translations]) => [term, translations.join('|')]);
    return terms.length ? Object.fromEntries(terms) : undefined;
  }

  keep() {
    const chosen = this.served.value || Object.keys(this.terms ?? {}).length;
    this.summary.textContent = chosen ? `Glossary (${chosen})` : 'Glossary';
    this.sent = JSON.stringify(this.terms);
    try {
      localStorage.setItem(KEY, JSON.stringify(this.pairs.filter((pair) => pair.some(Boolean))));
    } catch {} // a browser may refuse to store anything
  }
}

const named = (name) => element('option', { value: name }, name);

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY)).map(([term, translation]) => [String(term), String(translation)]);
  } catch {
    return [];
  }
}

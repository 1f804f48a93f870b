import { element } from './element.js';

const MOST_CELLS = 10_000; // a larger table is slow to draw, and nobody can read it

/** The attention as a table: a row for each target word, a column for each source word. */
export class Heatmap {
  /**
   * @param {string} label its accessible name
   * @param {(side: 'tgt', index: number | null) => void} onPoint told which row the pointer is on
   */
  constructor(label, onPoint) {
    this.table = element('table', { class: 'heatmap' });
    // It scrolls if it is too wide; the tab stop lets the arrow keys scroll it.
    this.element = element('div', { class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, this.table);
    this.table.addEventListener('pointerover', (event) => {
      const row = event.target.closest('tbody tr');
      onPoint('tgt', row ? row.sectionRowIndex : null);
    });
    this.table.addEventListener('pointerleave', () => onPoint('tgt', null));
  }

  /** @param {number[][]} weights [target words][source words] */
  show(tgtWords, srcWords, weights, { srcLang, tgtLang }) {
    this.table.replaceChildren();
    if (!tgtWords.length) return;
    const large = tgtWords.length * srcWords.length > MOST_CELLS;
    this.table.append(
      element(
        'caption',
        {},
        large ? 'Too large to draw. Point at a word to see its weights.' : 'In per cent; each row adds up to 100.',
      ),
    );
    if (large) return;
    const label = (word, lang) =>
      element(
        'span',
        { dir: 'auto', lang: word.end ? null : lang, class: word.end ? 'end' : null, title: word.text },
        word.text,
      );
    this.table.append(
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('td'),
          ...srcWords.map((word) => element('th', { scope: 'col' }, label(word, srcLang))),
        ),
      ),
      element(
        'tbody',
        {},
        ...tgtWords.map((word, row) =>
          element('tr', {}, element('th', { scope: 'row' }, label(word, tgtLang)), ...weights[row].map(cell)),
        ),
      ),
    );
  }

  /** Marks a row, a column, or nothing. */
  mark(side, active) {
    const rows = this.table.tBodies[0]?.rows ?? [];
    for (const row of rows) row.classList.toggle('active', side === 'tgt' && row.sectionRowIndex === active);
    const heads = this.table.tHead?.rows[0].querySelectorAll('th') ?? [];
    heads.forEach((head, column) => head.classList.toggle('active', side === 'src' && column === active));
  }
}

/** On one scale for every sentence and model, so that tables can be compared. */
function cell(weight) {
  const made = element('td', {}, weight < 0.005 ? '' : String(Math.round(100 * weight)));
  made.style.setProperty('--weight', weight.toFixed(4));
  return made;
}

import { element } from './element.js';
import { percent, score } from './format.js';
import { hyphenatedText, joinPieces } from './words.js';

/** The n best translations with their probabilities. Choosing one shows its words and its attention. */
export class NBest {
  /**
   * @param {string} name of the group of radio buttons, unique on the page
   * @param {(index: number) => void} onChoose
   */
  constructor(name, onChoose) {
    this.name = name;
    this.legend = element('legend');
    this.list = element('div', { class: 'candidates' });
    this.element = element('fieldset', { class: 'n-best' }, this.legend, this.list);
    this.list.addEventListener('change', (event) => onChoose(Number(event.target.value)));
  }

  /** Reserves space for the expected number of translations, so that nothing moves when they arrive. */
  expect(count) {
    this.element.disabled = true;
    this.title(count);
    this.list.style.setProperty('--rows', count);
  }

  show(nBest, lang) {
    this.element.disabled = false;
    this.title(nBest.length);
    this.list.replaceChildren(
      element(
        'div',
        { class: 'columns', 'aria-hidden': 'true' },
        element('span'),
        element('span'),
        element('span', {}, 'probability'),
        element('span', {}, 'score'),
      ),
      ...nBest.map((candidate, index) => this.row(candidate, index, lang)),
    );
  }

  clear() {
    this.element.disabled = true;
    this.list.replaceChildren();
  }

  row(candidate, index, lang) {
    const probability = Math.exp(candidate.log_prob);
    const text = hyphenatedText(candidate.text, joinPieces(candidate.tgt_pieces));
    return element(
      'label',
      { class: 'candidate' },
      element('input', { type: 'radio', name: this.name, value: String(index), checked: index === 0 }),
      element('span', { class: 'text', dir: 'auto', lang }, text || '(empty)'),
      element(
        'span',
        { class: 'probability' },
        element('span', { class: 'unseen' }, ' probability '),
        percent(probability),
      ),
      element('span', { class: 'score' }, element('span', { class: 'unseen' }, ' score '), score(candidate.score)),
    );
  }

  title(count) {
    this.legend.textContent = count === 1 ? 'Best translation' : `${count} best translations, by score`;
  }
}

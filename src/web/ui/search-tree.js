import { beamTree } from '../../softsearch/report/page/beam-tree.js';
import { element } from './element.js';

/** The search as a tree, which is fetched when it is opened. */
export class SearchTree {
  /** @param {string} title of the model */
  constructor(title) {
    this.place = element('div', { 'aria-live': 'polite' });
    this.element = element(
      'details',
      { class: 'search', 'aria-label': `Search of ${title}` },
      element('summary', {}, 'How it was found'),
      this.place,
    );
    this.ask = null;
    this.element.addEventListener('toggle', () => this.fill());
  }

  /** @param {(() => Promise<object[]>) | null} ask returns the traces of the translation that is shown; null: none is */
  offer(ask) {
    this.ask = ask;
    this.element.hidden = ask === null;
    this.place.replaceChildren();
    this.fill();
  }

  async fill() {
    const ask = this.ask;
    if (!ask || !this.element.open || this.place.childElementCount) return;
    this.place.replaceChildren(element('p', { class: 'note' }, 'Searching again \u2026'));
    const found = await ask().then(
      (traces) => traces.map(beamTree),
      (error) => [element('p', { role: 'alert' }, error.message)],
    );
    if (ask === this.ask) this.place.replaceChildren(...found);
  }
}

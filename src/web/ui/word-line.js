import { element } from './element.js';
import { hyphenated } from './words.js';

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/** A line of words with one tab stop. The arrow keys, Home and End move between the words. */
export class WordLine {
  /**
   * @param {string} kind its class
   * @param {string} label its accessible name
   * @param {(index: number | null) => void} onPoint told which word the pointer or the focus is on
   */
  constructor(kind, label, onPoint) {
    this.element = element('div', { class: `line ${kind}`, dir: 'auto' });
    this.label = label;
    this.options = [];
    const indexOf = (event) => {
      const index = this.options.indexOf(event.target);
      return index < 0 ? this.focused() : index;
    };
    this.element.addEventListener('pointerover', (event) => onPoint(indexOf(event)));
    this.element.addEventListener('pointerleave', () => onPoint(this.focused()));
    this.element.addEventListener('focusin', (event) => {
      this.rove(this.options.indexOf(event.target));
      onPoint(indexOf(event));
    });
    this.element.addEventListener('focusout', () => onPoint(null));
    this.element.addEventListener('keydown', (event) => this.move(event));
  }

  /**
   * Shows words; those that are there already are changed in place, so that the focus stays where it is.
   *
   * @param {ReturnType<typeof import('./words.js').joinPieces>} words
   * @param {string[] | null} descriptions of the words; without them the line is plain text
   */
  show(words, descriptions) {
    if (!descriptions) {
      this.options = [];
      this.list(false);
      this.element.replaceChildren(
        words.map((word, index) => (word.spaced && index ? ' ' : '') + hyphenated(word)).join(''),
      );
      return;
    }
    const roving = Math.max(
      0,
      this.options.findIndex((option) => option.tabIndex === 0),
    );
    const lost = this.focused() !== null && this.focused() >= words.length;
    this.options = words.map((word, index) => {
      const option =
        this.options[index] ?? element('span', { role: 'option', class: 'word', 'aria-selected': 'false' });
      option.textContent = hyphenated(word);
      option.classList.toggle('end', word.end);
      option.setAttribute('aria-description', descriptions[index]);
      return option;
    });
    this.list(words.length > 0);
    this.place(words);
    this.rove(Math.min(roving, words.length - 1));
    if (lost) this.options.at(-1)?.focus();
  }

  /** Makes the line a list with a name for screen readers, or plain text, which has none. */
  list(isList) {
    const attributes = { role: 'listbox', 'aria-label': this.label, 'aria-orientation': 'horizontal' };
    for (const [name, value] of Object.entries(attributes)) {
      if (isList) this.element.setAttribute(name, value);
      else this.element.removeAttribute(name);
    }
  }

  /** Puts the options into the line, with spaces between them, without moving those already in place. */
  place(words) {
    const nodes = this.options.flatMap((option, index) => (words[index].spaced && index ? [' ', option] : [option]));
    const kept = new Set(this.options);
    for (const child of [...this.element.childNodes]) if (!kept.has(child)) child.remove();
    nodes.forEach((node, index) => {
      const there = this.element.childNodes[index] ?? null;
      if (node !== there) this.element.insertBefore(typeof node === 'string' ? new Text(node) : node, there);
    });
  }

  /** Colours the words by their weights, and marks the word that is pointed at. */
  mark(weights, active) {
    this.options.forEach((option, index) => {
      option.style.setProperty('--weight', weights ? weights[index].toFixed(4) : '0');
      option.setAttribute('aria-selected', String(index === active));
    });
  }

  /** The index of the word that has the focus, or null. */
  focused() {
    const index = this.options.indexOf(document.activeElement);
    return index < 0 ? null : index;
  }

  rove(index) {
    this.options.forEach((option, other) => (option.tabIndex = other === index ? 0 : -1));
  }

  move(event) {
    const last = this.options.length - 1;
    const at = this.focused();
    if (at === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const forward = getComputedStyle(this.element).direction === 'rtl' ? -1 : 1;
    let to = { Home: 0, End: last }[event.key];
    if (event.key in STEPS) to = Math.min(last, Math.max(0, at + forward * STEPS[event.key]));
    if (to === undefined) return;
    event.preventDefault();
    this.options[to].focus();
  }
}

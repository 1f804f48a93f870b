import { element } from './element.js';

/** Options of the server's search, as site.json describes them; empty fields are left to the model's recommendation. */
export class Options {
  /**
   * @param {Object<string, object>} described by name: `help`, and `choices`, `switch` or `min`, `max` and `step`
   * @param {() => void} onChange called when a value changes
   */
  constructor(described, onChange) {
    this.fields = Object.entries(described).map(([name, option]) => [name, field(option)]);
    this.form = element(
      'details',
      { class: 'options' },
      element('summary', {}, 'Search options'),
      ...this.fields.map(([name, input]) =>
        element('label', {}, input, ` ${name.replaceAll('_', ' ')} `, element('span', { class: 'note' }, described[name].help)),
      ),
    );
    this.form.addEventListener('change', onChange);
    document.querySelector('#request .controls').after(this.form);
  }

  /** The given values by name. */
  get values() {
    const given = this.fields.map(([name, input]) => [name, valueOf(input)]);
    return Object.fromEntries(given.filter(([, value]) => value !== null));
  }
}

function field({ choices, switch: isSwitch, min, max, step }) {
  if (isSwitch) return element('input', { type: 'checkbox' });
  if (!choices) return element('input', { type: 'number', min, max, step });
  return element('select', {}, ...['', ...choices].map((value) => element('option', { value }, value)));
}

function valueOf(input) {
  if (input.type === 'checkbox') return input.checked || null;
  if (input.value === '' || !input.checkValidity()) return null;
  return input.type === 'number' ? Number(input.value) : input.value;
}

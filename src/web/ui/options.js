import { element } from './element.js';

/** Options of a server, as site.json describes them; empty fields are left to its defaults and the model's. */
export class Options {
  /**
   * @param {Object<string, object>} described by name: `help`, and `choices`, `switch`, `text` or `min`, `max` and `step`
   * @param {() => void} onChange called when a value changes
   */
  constructor(described, onChange) {
    this.fields = Object.entries(described).map(([name, option]) => [name, field(option)]);
    this.form = element(
      'details',
      { class: 'options' },
      element('summary', {}, 'Options'),
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

function field({ choices, switch: isSwitch, text, min, max, step }) {
  if (text) return element('input', { type: 'text', dir: 'auto', autocomplete: 'off' });
  if (isSwitch) return element('input', { type: 'checkbox' });
  if (!choices) return element('input', { type: 'number', min, max, step });
  return element('select', {}, ...['', ...choices].map((value) => element('option', { value }, value)));
}

function valueOf(input) {
  if (input.type === 'checkbox') return input.checked || null;
  if (input.value === '' || !input.checkValidity()) return null;
  return input.type === 'number' ? Number(input.value) : input.value;
}

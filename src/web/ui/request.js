import { element } from './element.js';
import { title } from './format.js';

const PAUSE = 150; // milliseconds without typing before a search begins

/** The visitor's input: the text, an example, the beam size and the models. */
export class Request {
  /**
   * @param site site.json
   * @param {() => void} onChange called when anything except the models changes
   * @param {() => void} onModels called when other models are chosen
   */
  constructor(site, onChange, onModels) {
    this.source = document.getElementById('source');
    this.range = document.getElementById('beam');
    const first = site.models.some((model) => model.about) ? site.models : site.models.slice(0, 2);
    this.chosen = new Set(first.map((model) => model.name));
    let timer;
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(onChange, PAUSE);
    };
    this.source.addEventListener('input', soon);
    this.range.addEventListener('input', () => {
      this.showBeam();
      soon();
    });
    document.getElementById('request').addEventListener('submit', (event) => event.preventDefault());
    this.range.value = String(site.models[0]?.beam ?? 5);
    this.showBeam();
    this.offerExamples(site.examples, onChange);
    if (site.models.length > 1) this.offerModels(site.models, onModels);
  }

  get text() {
    return this.source.value;
  }

  get beam() {
    return Number(this.range.value);
  }

  showBeam() {
    document.getElementById('beam-value').textContent = this.range.value;
  }

  offerExamples(examples, onChange) {
    const group = document.getElementById('examples');
    group.hidden = !examples.length;
    const notes = new Map(examples.map(({ text, note }) => [text, note]));
    const tell = () => (document.getElementById('example-note').textContent = notes.get(this.text) ?? '');
    this.source.addEventListener('input', tell);
    for (const { text } of examples) {
      const button = element('button', { type: 'button', dir: 'auto' }, text);
      button.addEventListener('click', () => {
        this.source.value = text;
        tell();
        onChange();
      });
      group.append(button);
    }
    if (!this.text) this.source.value = examples[0]?.text ?? '';
    tell();
  }

  offerModels(models, onModels) {
    const group = document.getElementById('models');
    group.hidden = false;
    for (const model of models) {
      const { name, about } = model;
      const box = element('input', { type: 'checkbox', name: 'model', value: name, checked: this.chosen.has(name) });
      box.addEventListener('change', () => {
        if (box.checked) this.chosen.add(name);
        else this.chosen.delete(name);
        onModels();
      });
      group.append(element('label', {}, box, [about?.year, title(model)].filter(Boolean).join(' ')));
    }
  }
}

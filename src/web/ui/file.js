import { element } from './element.js';

/** A file that the server translates: its languages, its progress, and where the translation is. */
export class FileForm {
  /**
   * @param {string[]} kinds endings of the names of files that the server takes
   * @param {string[]} ofOneLanguage those whose files have one language: the one in the other language may be sent, too
   * @param {Promise<{languages: Function, translateFile: Function}>} backend the server
   */
  constructor(kinds, ofOneLanguage, backend) {
    this.ofOneLanguage = ofOneLanguage;
    this.backend = backend;
    this.input = element('input', { type: 'file', accept: kinds.join(',') });
    this.existing = element('input', { type: 'file', accept: ofOneLanguage.join(',') });
    this.other = element('p', { hidden: true }, label('The file in the other language, if there is one ', this.existing));
    this.from = element('select');
    this.to = element('select');
    this.button = element('button', { type: 'button' }, 'Translate the file');
    this.bar = element('progress', { 'aria-label': 'Translated lines', hidden: true });
    this.status = element('p', { class: 'status', role: 'status' });
    this.problem = element('p', { role: 'alert' });
    const languages = element('p', { class: 'pair' }, label('From ', this.from), label('to ', this.to));
    const form = element('details', { class: 'file' }, element('summary', {}, 'Translate a file'));
    const hint = `One of ${kinds.join(', ')}. Messages that are translated already stay as they are.`;
    form.append(element('p', { class: 'note' }, hint), label('File ', this.input), this.other, languages, this.button, this.bar, this.status, this.problem);
    form.addEventListener('toggle', () => this.offerLanguages(), { once: true });
    this.from.addEventListener('change', () => this.offerTargets());
    this.input.addEventListener('change', () => this.chosen());
    this.button.addEventListener('click', () => (this.running ? this.running.abort() : this.translate()));
    document.getElementById('request').after(form);
  }

  /** Fills in the languages that have a model. */
  async offerLanguages() {
    try {
      const known = await (await this.backend).languages();
      this.names = new Map(known.map(({ code, name }) => [code, name]));
      this.targets = new Map(known.filter(({ targets }) => targets.length).map(({ code, targets }) => [code, targets]));
      this.from.replaceChildren(...[...this.targets.keys()].map((code) => this.option(code)));
      this.offerTargets();
    } catch (error) {
      this.tell('', error.message);
    }
  }

  offerTargets() {
    this.to.replaceChildren(...(this.targets.get(this.from.value) ?? []).map((code) => this.option(code)));
  }

  option(code) {
    return element('option', { value: code }, this.names.get(code) ?? code);
  }

  /** Asks for the file in the other language, if files of this kind have one. */
  chosen() {
    this.tell('', '');
    const name = this.input.files[0]?.name.toLowerCase() ?? '';
    this.other.hidden = !this.ofOneLanguage.some((suffix) => name.endsWith(suffix));
    if (this.other.hidden) this.existing.value = '';
  }

  /** Sends the file, and shows how far it is. */
  async translate() {
    const [file] = this.input.files;
    if (!file) {
      this.tell('', 'Choose a file first.');
      this.input.focus();
      return;
    }
    this.running = new AbortController();
    this.button.textContent = 'Stop';
    this.tell(`${file.name} is sent.`, '');
    this.show(0, 0);
    try {
      const [existing] = this.existing.files;
      const request = { file, existing, source: this.from.value, target: this.to.value, signal: this.running.signal };
      for await (const { event, answer } of (await this.backend).translateFile(request)) {
        if (event === 'progress') this.show(answer.done, answer.of);
        else this.finish(answer);
      }
      if (this.running.signal.aborted) this.tell('Stopped.', '');
    } catch (error) {
      this.tell('', `${file.name} is not translated: ${error.message}`);
    } finally {
      this.running = null;
      this.bar.hidden = true;
      this.button.textContent = 'Translate the file';
    }
  }

  show(done, of) {
    this.bar.hidden = false;
    if (of) Object.assign(this.bar, { max: of, value: done });
    else this.bar.removeAttribute('value');
    if (of) this.bar.setAttribute('aria-valuetext', `${done} of ${of}`);
  }

  /** Links to the translation, and to what is to be reviewed. The address is relative: a proxy may hide the server's. */
  finish({ translatedFileUrl, report, review, reviewName }) {
    const key = translatedFileUrl.slice(translatedFileUrl.lastIndexOf('/') + 1);
    const name = key.slice(key.indexOf('.') + 1);
    const counts = Object.entries(report).map(([what, count]) => `${what} ${count}`);
    this.tell('', '');
    const link = element('a', { href: `download_file/${key}`, download: name }, name);
    this.status.append('Ready: ', link, counts.length ? ` (${counts.join('; ')})` : '');
    if (review) {
      const list = `data:text/tab-separated-values;charset=utf-8,${encodeURIComponent(review)}`;
      this.status.append('; to be reviewed: ', element('a', { href: list, download: reviewName }, 'the list'));
    }
  }

  tell(status, problem) {
    this.status.textContent = status;
    this.problem.textContent = problem;
  }
}

const label = (text, field) => element('label', {}, text, field);

import { Card } from './card.js';
import { element } from './element.js';
import { FileForm } from './file.js';
import { langAttribute } from './format.js';
import { Glossary } from './glossary.js';
import { Options } from './options.js';
import { Request } from './request.js';
import { withoutHyphens } from './words.js';

// Imported on demand, so that a server's page loads nothing of the local backend.
const BACKENDS = {
  local: () => import('../backends/local.js'),
  server: () => import('../backends/server.js'),
};
const PRIVACY = {
  local: 'Your text stays on this machine: the models run in this page.',
  server: `Your text goes to ${location.host}, which runs the models.`,
};
const INSECURE = 'Browsers compute no hashes over plain HTTP, so only the sizes of the models are checked.';
const OFFLINE = {
  local: 'Offline: models that are already loaded still translate.',
  server: 'Offline: translations need the server.',
};

/** Reads the site's description, and shows the page. */
async function start() {
  const site = await description();
  const cards = new Map(); // model name -> Card
  // A site may have many models: each is loaded when its card comes into view.
  const view = new IntersectionObserver(
    (entries) => entries.forEach(({ target, isIntersecting }) => shownBy.get(target).view(isIntersecting)),
    { rootMargin: '25% 0px' },
  );
  const shownBy = new Map(); // element -> Card
  const card = (model) => {
    if (!cards.has(model.name)) {
      const made = new Card(model);
      cards.set(model.name, made);
      shownBy.set(made.element, made);
      view.observe(made.element);
    }
    return cards.get(model.name);
  };
  const progress = ({ model, loaded, total }) => cards.get(model)?.progress(loaded, total);
  const backend = BACKENDS[site.backend]().then(({ open }) => open(site, progress));
  backend.catch(() => {}); // each card reports it
  const chosen = () => site.models.filter((model) => request.chosen.has(model.name)).map(card);
  const more = () => ({ glossary: glossary?.terms, ...options?.values }); // fields of requests to a server
  const translate = () => chosen().forEach((each) => each.ask(backend, request.text, request.beam, more()));
  const choose = () => {
    const now = chosen();
    for (const each of cards.values()) if (!now.includes(each)) each.stop();
    show(now);
    translate();
  };
  const request = new Request(site, translate, choose);
  const isServer = site.backend === 'server'; // the search in the page supports neither
  const options = isServer ? new Options(site.options, translate) : null;
  const glossary = isServer ? new Glossary(site.glossaries, translate) : null;
  if (isServer && site.file_kinds.length) new FileForm(site.file_kinds, site.of_one_language, backend);
  introduce(site, request);
  choose();
}

async function description() {
  const response = await fetch('site.json', { cache: 'no-cache' }).catch(() => null);
  if (!response?.ok) throw new Error('The description of this site (site.json) cannot be read. Reload the page.');
  const site = await response.json();
  if (!site.models.length) throw new Error('This site has no models. Build it again with at least one.');
  return site;
}

function introduce(site, request) {
  const [{ src_lang: lang }] = site.models;
  if (site.title) document.title = document.querySelector('h1').textContent = site.title;
  document.getElementById('told').textContent = site.text;
  if (langAttribute(lang)) request.source.lang = langAttribute(lang);
  const unchecked = site.backend === 'local' && !globalThis.crypto?.subtle;
  document.getElementById('privacy').textContent = PRIVACY[site.backend] + (unchecked ? ` ${INSECURE}` : '');
  document.getElementById('version').textContent = `softsearch ${site.version}`;
  const badge = document.getElementById('offline');
  const connection = () => (badge.textContent = navigator.onLine ? '' : OFFLINE[site.backend]);
  for (const event of ['online', 'offline']) addEventListener(event, connection);
  connection();
  // All at once when everything is known, so that nothing moves.
  document.getElementById('request').hidden = false;
  request.source.focus({ preventScroll: true });
}

/** Copies a selection as the model wrote it. */
function copy(event) {
  if (event.target.closest?.('textarea, input')) return;
  event.clipboardData.setData('text/plain', withoutHyphens(String(getSelection())));
  event.preventDefault();
}

function show(cards) {
  const none = element('p', { class: 'note' }, 'No model is chosen.');
  const place = document.getElementById('cards');
  place.classList.toggle('single', cards.length === 1);
  place.replaceChildren(...(cards.length ? cards.map((card) => card.element) : [none]));
}

document.addEventListener('copy', copy);
start().catch((error) => {
  document.getElementById('problem').replaceChildren(element('p', { class: 'problem', role: 'alert' }, error.message));
});

// The search on the server that sent the page: one request for each translation, answered by server-sent events.

import { EventSourceParserStream } from 'eventsource-parser/stream';

const UNREACHABLE = 'The server cannot be reached. Try again later.';

/**
 * Opens the backend.
 *
 * @param {object} site site.json
 * @returns {Promise<{translate: Function, traces: Function, attention: Function}>} as of local.js, and more
 */
export async function open(site) {
  const attentive = new Set(site.models.filter((model) => model.has_attention).map((model) => model.name));
  const translate = (request) => search({ ...request, alignments: attentive.has(request.model) });
  return { translate, traces, attention, languages, translateFile };
}

const traces = async (request) => (await ask(request, { trace: true })).traces ?? [];

/** The alignments of each of the n best translations, of one of the model's heads. */
const attention = async (request, head) => (await ask(request, { head })).n_best.map(({ alignments }) => alignments);

async function ask({ model, text, beam, nBest, more }, asked) {
  const response = await fetch('translate', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ text, model, beam, n_best: nBest, ...more, ...asked }),
  }).catch(() => null);
  if (!response) throw new Error(UNREACHABLE);
  if (!response.ok) throw new Error(await reason(response));
  return (await response.json()).translations[0];
}

async function languages() {
  const response = await fetch('languages').catch(() => null);
  if (!response?.ok) throw new Error(UNREACHABLE);
  return response.json();
}

async function* search({ model, text, beam, nBest, more, alignments, signal }) {
  const body = JSON.stringify({ text, model, beam, n_best: nBest, ...more, alignments });
  for await (const { answer } of stream('translate/stream', body, { 'Content-Type': 'application/json' }, signal)) yield answer;
}

/** The events `progress` and `done` of the translation of a file. */
async function* translateFile({ file, existing, source, target, signal }) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ source, target, file, existing })) {
    if (value !== undefined) form.append(name, value);
  }
  yield* stream('translate_file', form, {}, signal);
}

/** The events of an answer up to `done`. */
async function* stream(path, body, headers, signal) {
  try {
    const response = await fetch(path, { method: 'POST', headers: { ...headers, Accept: 'text/event-stream' }, body, signal });
    if (!response.ok) throw new Error(await reason(response));
    for await (const { event, data } of events(response)) {
      const answer = JSON.parse(data);
      if (event === 'error') throw new Error(answer.error);
      yield { event, answer };
      if (event === 'done') return;
    }
    throw new Error('The server ended its response too early. Try again.');
  } catch (error) {
    if (signal?.aborted) return;
    // fetch and its streams report a lost connection as a TypeError, whose message differs between browsers.
    throw error instanceof TypeError ? new Error(UNREACHABLE) : error;
  }
}

/** The events of a response. Not every browser can iterate over a stream. */
async function* events(response) {
  const reader = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The reason why a server refused a request, in its own words if it sent any. */
async function reason(response) {
  const answer = await response.json().catch(() => ({}));
  const why = [answer.error, answer.detail].find((text) => typeof text === 'string');
  const wait = Number(response.headers.get('Retry-After'));
  const when = wait ? ` Try again in ${wait} s.` : '';
  return `${why ?? `The server answered ${response.status}.`}${when}`;
}

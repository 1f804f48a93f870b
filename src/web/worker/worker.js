// Runs the search of one model. Messages: {id: 0, load: name, mostTokens}, {id, text, beam, trace}, {id, cancel}; answers bear the id.

import { Model } from './model.js';
import { traces, translate } from './search.js';
import { inWords } from './errors.js';

const running = new Set(); // ids of requests
let model;

self.onmessage = async ({ data: { id, load, mostTokens, text, beam, trace, cancel } }) => {
  if (cancel) {
    running.delete(id);
    return;
  }
  running.add(id);
  try {
    if (load) {
      model = await Model.open(load, mostTokens, (progress) => self.postMessage({ id, progress }));
      self.postMessage({ id });
    } else if (trace) {
      self.postMessage({ id, result: { final: true, traces: await traces(model, text, beam) } });
    } else {
      for await (const result of translate(model, text, beam)) {
        if (!running.has(id)) break;
        self.postMessage({ id, result });
        await turn(); // a newer request or a cancellation
        if (!running.has(id)) break;
      }
    }
  } catch (error) {
    const { message, lost } = inWords(error, model?.name ?? load);
    self.postMessage({ id, error: message, lost: lost || Boolean(load) });
  } finally {
    running.delete(id);
  }
};

/** Lets waiting messages be handled. */
function turn() {
  return new Promise((resolve) => setTimeout(resolve));
}

// The search in this browser: a worker for each model; the most recently used stay open. Two models translate in
// parallel; more than two in sequence, so that each one's time is measured alone.

// The smallest module with an instruction on 128 bits: (func (result v128) i32.const 0 i8x16.splat i8x16.popcnt)
const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

const MOST_OPEN = 3; // workers; a model is in memory as long as its worker is

/**
 * Opens the backend. Models are loaded when they are first used.
 *
 * @param {object} site site.json
 * @param {(progress: {model: string, loaded: number, total: number}) => void} onProgress bytes of a model so far
 * @returns {Promise<{load: Function, translate: Function, traces: Function}>}
 * @throws {Error} with a message for users
 */
export async function open(site, onProgress) {
  if (typeof WebAssembly !== 'object' || !WebAssembly.validate(SIMD)) {
    throw new Error('This browser has no WebAssembly SIMD, which the models need; use a newer browser.');
  }
  let kept;
  const clients = new Map(); // model name -> Client
  const client = (name) => {
    const model = site.models.find((each) => each.name === name);
    if (!model) throw new Error(`There is no model ${name} on this site.`);
    const found = clients.get(name);
    clients.delete(name);
    clients.set(name, found && !found.lost ? found : new Client(model, onProgress)); // the most recently used comes last
    for (const [other, client] of clients) {
      if (clients.size > MOST_OPEN && !client.busy) {
        client.lose(`${other} was closed.`);
        clients.delete(other);
      }
    }
    return clients.get(name);
  };
  const turns = Array.from({ length: site.models.length > 2 ? 1 : 2 }, () => Promise.resolve());
  return {
    /** Loads a model before it is used; resolves when it can translate. */
    async load(name) {
      await client(name).ready;
      kept ??= keepOffline();
    },
    /** Traces of the search, one for each sentence, see docs/search.md. */
    async traces({ model, text, beam }) {
      await this.load(model);
      for await (const { traces } of client(model).translate(text, beam, null, true)) return traces;
    },
    /** Yields results, the last with `final: true`; ends without one when `signal` is aborted. */
    async *translate({ model, text, beam, nBest, signal }) {
      const turn = turns.shift();
      let leave;
      turns.push(new Promise((resolve) => (leave = resolve)));
      try {
        await turn;
        if (signal?.aborted) return;
        await this.load(model);
        const begun = performance.now();
        for await (const result of client(model).translate(text, beam, signal)) {
          yield { ...result, n_best: result.n_best.slice(0, nBest), ms: performance.now() - begun };
        }
      } finally {
        leave();
      }
    },
  };
}

/** A worker with one model. */
class Client {
  constructor({ name, most_tokens }, onProgress) {
    this.loading = true;
    this.lost = false; // after a failure: another worker is started in its place
    this.requests = new Map(); // id -> receiver of its messages
    this.worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name });
    this.ready = new Promise((resolve, reject) => {
      this.requests.set(0, (message) => {
        if (message.progress) onProgress({ model: name, ...message.progress });
        else if (message.error) reject(new Error(message.error));
        else resolve();
      });
    });
    this.ready.finally(() => (this.loading = false)).catch(() => {}); // reported to those who wait for it
    this.worker.onmessage = ({ data }) => {
      if (data.lost) this.lose(data.error);
      else this.requests.get(data.id)?.(data);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.lose(`The search stopped: ${event.message ?? 'its script cannot be loaded; reload the page'}`);
    };
    this.worker.postMessage({ id: 0, load: name, mostTokens: most_tokens });
    this.nextId = 1;
  }

  get busy() {
    return this.requests.size > 1 || this.loading;
  }

  lose(error) {
    this.lost = true;
    this.worker.terminate();
    for (const take of this.requests.values()) take({ error });
  }

  async *translate(text, beam, signal, trace = false) {
    const id = this.nextId++;
    const messages = [];
    let wake = () => {};
    const put = (message) => {
      messages.push(message);
      wake();
    };
    const abort = () => {
      this.worker.postMessage({ id, cancel: true });
      put({ cancelled: true });
    };
    if (signal?.aborted) return;
    this.requests.set(id, put);
    signal?.addEventListener('abort', abort);
    this.worker.postMessage({ id, text, beam, trace });
    try {
      while (true) {
        while (!messages.length) await new Promise((resolve) => (wake = resolve));
        const { error, result } = messages.shift();
        if (signal?.aborted) return;
        if (error) throw new Error(error);
        yield result;
        if (result.final) return;
      }
    } finally {
      signal?.removeEventListener('abort', abort);
      this.requests.delete(id);
      this.worker.postMessage({ id, cancel: true });
    }
  }
}

// After a model is loaded, so that the first visit does not wait for two downloads at once.
async function keepOffline() {
  try {
    await navigator.serviceWorker?.register('service-worker.js', { updateViaCache: 'none' });
  } catch (error) {
    console.warn(`The page will not work offline: ${error.message}`);
  }
}

// A model: its tokenizers, and its graph, which contains the search.

import * as ort from 'onnxruntime-web/wasm';
import { readFile, readManifest } from './files.js';
import { TextTokenizer } from './tokenizer.js';
import { trace, withHistory } from './trace.js';

// In a page that is cross-origin isolated, ONNX Runtime takes a thread for every second core, at most 4.
ort.env.wasm.wasmPaths = { mjs: new URL('ort.js', self.location).href, wasm: new URL('ort.wasm', self.location).href };
ort.env.logLevel = 'error';

const PROVIDERS = { executionProviders: ['wasm'] };

export class Model {
  /**
   * @param {string} name folder below models/
   * @param {number[]} mostTokens of a translation of 0, 1, 2, ... source tokens
   * @param {(progress: {loaded: number, total: number}) => void} onProgress bytes
   */
  static async open(name, mostTokens, onProgress) {
    const manifest = await readManifest(name);
    const joint = 'tokenizer.json' in manifest.files;
    const names = ['model.onnx', ...(joint ? ['tokenizer.json'] : ['src.tokenizer.json', 'tgt.tokenizer.json'])];
    const loaded = Object.fromEntries(names.map((file) => [file, 0]));
    const total = names.reduce((sum, file) => sum + manifest.files[file].bytes, 0);
    const contents = await Promise.all(
      names.map((file) =>
        readFile(`models/${name}/${file}`, manifest.files[file], (bytes) => {
          loaded[file] = bytes;
          onProgress({ loaded: Object.values(loaded).reduce((sum, part) => sum + part), total });
        }),
      ),
    );
    const [graph, src, tgt = src] = contents;
    const tokenizer = (content) => new TextTokenizer(JSON.parse(new TextDecoder().decode(content)));
    const session = await ort.InferenceSession.create(graph, PROVIDERS);
    const model = new Model();
    const again = () => readFile(`models/${name}/model.onnx`, manifest.files['model.onnx'], () => {});
    model.openTracing = async () => ort.InferenceSession.create(withHistory(await again()), PROVIDERS);
    const { variant, text_form, src_lang } = manifest.training.config?.data ?? {};
    const text = { srcLang: String(src_lang ?? ''), readsTokens: [variant, text_form].includes('lc_tok') };
    return Object.assign(model, { name, mostTokens, manifest, session, src: tokenizer(src), tgt: tokenizer(tgt), ...text });
  }

  /**
   * Searches translations of one sentence.
   *
   * @param {number[]} ids with EOS
   * @param {number} beam hypotheses, all of which are returned
   * @param {number} limit most tokens of a translation
   * @returns {Promise<{tokens: number[], score: number, logProb: number, alignments: number[][] | null}[]>}
   */
  async search(ids, beam, limit) {
    const outputs = await this.session.run(this.inputs(ids, beam, limit));
    const longest = outputs.tokens.dims[2];
    return Array.from(outputs.lengths.data, (length, rank) => {
      const first = rank * longest;
      const rows = Array.from({ length: Number(length) }, (_, row) => (first + row) * ids.length);
      return {
        tokens: Array.from(outputs.tokens.data.subarray(first, first + Number(length)), Number),
        score: outputs.scores.data[rank],
        logProb: outputs.log_probs.data[rank],
        alignments:
          outputs.alignments && rows.map((at) => Array.from(outputs.alignments.data.subarray(at, at + ids.length))),
      };
    }).filter(({ tokens }) => tokens.length);
  }

  /** The trace of the same search, step by step. */
  async trace(ids, beam, limit) {
    this.tracing ??= this.openTracing();
    const session = await this.tracing.catch((error) => {
      this.tracing = null;
      throw error;
    });
    const search = (size) => session.run(this.inputs(ids, size, limit));
    const { length_norm: lengthNorm = 'power' } = this.manifest.search;
    const settings = { beam, limit, lengthPenalty: this.lengthPenalty, lengthNorm };
    const piece = (token) => this.tgt.pieces([token])[0];
    return trace(search, settings, piece, await this.search(ids, beam, limit));
  }

  get lengthPenalty() {
    return this.manifest.search.length_penalty ?? 1;
  }

  inputs(ids, beam, limit) {
    return {
      src_tokens: int64(ids, [1, ids.length]),
      beam: int64([beam], []),
      n_best: int64([beam], []),
      max_length: int64([limit], [1]),
      length_penalty: new ort.Tensor('float32', [this.lengthPenalty], []),
    };
  }
}

function int64(values, shape) {
  return new ort.Tensor('int64', BigInt64Array.from(values, BigInt), shape);
}

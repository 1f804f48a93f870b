// A record of a beam search, step by step, in the format of softsearch translate --trace (docs/search.md).
//
// The single graph returns only translations, but inside it each step adds to a history, which becomes an output if the
// graph is opened again with a few bytes appended. The history has the survivors and the ended hypotheses. Those that
// fell out are taken from a much wider beam after the same hypotheses: the nearest ones, as far as it reaches.

const EOS = 3;
const MOST = 10; // candidates of a step that fell out
const WIDER = 50; // hypotheses
const [INT64, DOUBLE] = [7, 11]; // types of ONNX
const HISTORY = { all_parents: INT64, all_tokens: INT64, survivors: DOUBLE, end_log_probs: DOUBLE, end_rows: INT64 };

/** The bytes of a model whose history is an output: appended Protocol Buffers fields are merged into the message. */
export function withHistory(graph) {
  const varint = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]);
  const field = (number, bytes) => [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
  const outputs = Object.entries(HISTORY).flatMap(([name, type]) => {
    const text = [...new TextEncoder().encode(`loop/${name}`)];
    return field(12, [...field(1, text), ...field(2, field(1, [8, type]))]); // GraphProto.output, with name and type
  });
  const added = field(7, outputs); // ModelProto.graph
  const whole = new Uint8Array(graph.length + added.length);
  whole.set(graph);
  whole.set(added, graph.length);
  return whole;
}

/** The history of a search for one sentence: each step's survivors, by row, and ended hypotheses. */
function read(outputs) {
  const [steps, , size] = outputs['loop/all_parents'].dims;
  const values = Object.fromEntries(Object.keys(HISTORY).map((name) => [name, outputs[`loop/${name}`].data]));
  const rows = (step, tokens, parents, logProbs) =>
    Array.from({ length: size }, (_, place) => {
      const at = step * size + place;
      const token = tokens ? Number(tokens[at]) : EOS;
      return { row: place, token, parent: Number(parents[at]), logProb: logProbs[at] };
    }).filter(({ logProb }) => logProb > -Infinity);
  return Array.from({ length: steps }, (_, step) => ({
    stayed: rows(step, values.all_tokens, values.all_parents, values.survivors),
    ended: rows(step, null, values.end_rows, values.end_log_probs),
  }));
}

/** The continuations in a history, by the tokens of the hypothesis that they continue. */
function continuations(history) {
  const found = new Map();
  let before = new Map([[0, '']]); // rows -> tokens
  for (const { stayed, ended } of history) {
    const now = new Map();
    for (const { row, token, parent, logProb } of [...stayed, ...ended]) {
      const tokens = before.get(parent);
      if (!found.has(tokens)) found.set(tokens, []);
      found.get(tokens).push({ token, logProb });
      if (token !== EOS) now.set(row, `${tokens} ${token}`);
    }
    before = now;
  }
  return found;
}

/**
 * Searches once more, and returns the trace.
 *
 * @param {(beam: number) => Promise<object>} search the outputs of a beam, history included
 * @param {object} settings `beam`, `limit`, `lengthPenalty` and `lengthNorm` of the search
 * @param {(token: number) => string} piece names a token
 * @param {object[]} ranking the translations: `tokens`, `score`, `logProb`
 */
export async function trace(search, { beam, limit, lengthPenalty, lengthNorm }, piece, ranking) {
  const history = read(await search(beam));
  const wider = continuations(read(await search(WIDER)));
  const norm = (length) => (lengthNorm === 'gnmt' ? (5 + length) / 6 : length) ** lengthPenalty;
  const returned = new Set(ranking.map(({ tokens }) => ['', ...tokens].join(' ')));
  const ids = new Map(); // tokens -> number
  let rows = [{ id: 0, tokens: '', logProb: 0 }];
  let size = 0;
  const steps = history.map(({ stayed, ended }, index) => {
    const goesOn = index + 1 < history.length;
    const candidate = (parent, token, logProb, fate, behind = null) => {
      const made = { id: ++size, tokens: `${parent.tokens} ${token}`, logProb };
      ids.set(made.tokens, made.id);
      made.told = {
        id: made.id,
        parent: parent.id,
        piece: piece(token),
        piece_log_prob: logProb - parent.logProb,
        log_prob: logProb,
        score: logProb / norm(index + 1),
        bonus: 0,
        fate,
        behind,
        forbidden_by: null,
        exact: false,
      };
      return made;
    };
    const kept = stayed.map(({ parent, token, logProb }) => {
      const cutOff = returned.has(`${rows[parent].tokens} ${token}`);
      return candidate(rows[parent], token, logProb, goesOn ? 'kept' : cutOff ? 'cut off' : 'stopped');
    });
    const ends = ended.map(({ parent, logProb }) => candidate(rows[parent], EOS, logProb, 'ended'));
    const taken = new Set([...kept, ...ends].map(({ tokens }) => tokens));
    const others = rows
      .flatMap((row) => (wider.get(row.tokens) ?? []).map((each) => ({ row, ...each })))
      .filter(({ row, token }) => !taken.has(`${row.tokens} ${token}`))
      .sort((one, other) => other.logProb - one.logProb);
    const best = [...kept, ...ends, ...others].map(({ logProb }) => logProb).sort((one, other) => other - one);
    const last = Math.min(...kept.map(({ logProb }) => logProb));
    const fallen = others.slice(0, Math.min(beam, MOST)).map(({ row, token, logProb }) => {
      const behind = (token === EOS ? best[Math.min(beam, best.length) - 1] : last) - logProb;
      return candidate(row, token, logProb, 'fell out', Number.isFinite(behind) ? Math.max(behind, 0) : null);
    });
    const expanded = rows.map(({ id }) => id);
    rows = kept;
    return { expanded, candidates: [...kept, ...ends, ...fallen].map(({ told }) => told) };
  });
  const count = history.reduce((sum, { ended }) => sum + ended.length, 0);
  return {
    version: 1,
    search: { beam, n_best: beam, length_penalty: lengthPenalty, length_norm: lengthNorm },
    max_length: limit,
    terms: [],
    steps,
    stopped: steps.length >= limit ? 'length limit' : count >= beam ? 'enough ended' : 'bound',
    ranking: ranking.map(({ tokens, score, logProb }) => ({
      id: ids.get(['', ...tokens].join(' ')) ?? null,
      pieces: tokens.map(piece),
      log_prob: logProb,
      score,
      truncated: tokens.at(-1) !== EOS,
    })),
    exact: null,
  };
}

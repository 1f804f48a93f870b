// Translates lines with a folder of export.py format=single.
//
//   npm ci --ignore-scripts       (the script of onnxruntime-node would download CUDA)
//   node translate.mjs exports/NAME-single < in.txt > out.txt
//
// In a browser, import 'onnxruntime-web' instead: the same lines, with fetch for the files.

import { readFile } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { useCharsmaps } from './charsmap.mjs';

const folder = process.argv[2];
const read = async (name) => JSON.parse(await readFile(`${folder}/${name}`, 'utf8'));
const manifest = await read('manifest.json');
const tokenizer = async (side) => {
  const json = await read('tokenizer.json' in manifest.files ? 'tokenizer.json' : `${side}.tokenizer.json`);
  return useCharsmaps(new Tokenizer(json, { clean_up_tokenization_spaces: false }));
};
const [src, tgt] = [await tokenizer('src'), await tokenizer('tgt')];
const session = await InferenceSession.create(`${folder}/model.onnx`);

const int64 = (values, shape) => new Tensor('int64', BigInt64Array.from(values, BigInt), shape);
const options = {
  beam: int64([5], []),
  n_best: int64([1], []),
  max_length: int64([0], [1]), // 0: the limit that the export recommends
  length_penalty: new Tensor('float32', [1], []),
};
/** The lines of a stream as softsearch translate reads them: only a newline ends a line. */
async function* lines(stream) {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

let number = 0;
for await (const line of lines(process.stdin)) {
  const text = (number++ ? line : line.replace(/^\ufeff/, '')).replace(/\r$/, '').replaceAll('\r', ' ');
  const { ids } = src.encode(text); // EOS is there
  if (ids.length === 1 || /^[\p{Cc}\p{Cf}\p{Z}]*$/u.test(text)) {
    console.log('');
    continue;
  }
  const { tokens } = await session.run({ src_tokens: int64(ids, [1, ids.length]), ...options });
  console.log(tgt.decode(Array.from(tokens.data, Number), { skip_special_tokens: true }));
}

// Writes the page to src/softsearch/runtime/web/assets, which `softsearch web` copies: npm run build.

import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '../softsearch/runtime/web/assets');
const runtime = join(here, 'node_modules/onnxruntime-web');

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const options = {
  absWorkingDir: here,
  outdir: target,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'eof',
  conditions: ['onnxruntime-web-use-extern-wasm'], // ONNX Runtime loads its wasm as a file of the site
  logLevel: 'warning',
};
await build({ ...options, entryPoints: { main: 'ui/main.js', worker: 'worker/worker.js', style: 'style.css' } });
await build({ ...options, entryPoints: ['service-worker.js'], format: 'iife' });
await cp(join(here, 'index.html'), join(target, 'index.html'));
for (const name of ['ort-wasm-simd-threaded.mjs', 'ort-wasm-simd-threaded.wasm']) {
  await cp(join(runtime, 'dist', name), join(target, name));
}
const licenses = [];
for (const name of ['onnxruntime-web', '@huggingface/tokenizers']) {
  const { version, license } = JSON.parse(await readFile(join(here, 'node_modules', name, 'package.json'), 'utf8'));
  licenses.push(`${name} ${version}: ${license}`);
}
await writeFile(join(target, 'LICENSES.txt'), `The page holds these packages of the npm registry:\n${licenses.join('\n')}\n`);

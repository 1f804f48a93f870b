// Writes the page to src/softsearch/extras/serve/web/assets, which `softsearch web` copies. The description of the
// server's requests, which only the server sends, goes to docs/ in it. Run with: npm run build.

import { cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '../softsearch/extras/serve/web/assets');
const fresh = `${target}.new`;
const packages = join(here, 'node_modules');

await rm(fresh, { recursive: true, force: true });
const options = {
  absWorkingDir: here,
  outdir: fresh,
  bundle: true,
  minify: true,
  target: 'es2022',
  legalComments: 'eof',
  conditions: ['onnxruntime-web-use-extern-wasm'], // ONNX Runtime loads its wasm as a file of the site
  logLevel: 'warning',
};
// The page loads the backend that its site names; tests load local.js by this name.
const page = { main: 'ui/main.js', local: 'backends/local.js', server: 'backends/server.js', style: 'style.css' };
await build({ ...options, entryPoints: page, format: 'esm', splitting: true });
await build({ ...options, entryPoints: ['worker/worker.js'], entryNames: '[name]', format: 'esm' });
await build({ ...options, entryPoints: ['service-worker.js'], format: 'iife' });
await cp(join(here, 'index.html'), join(fresh, 'index.html'));
const ort = join(packages, 'onnxruntime-web/dist/ort-wasm-simd-threaded');
await cp(`${ort}.wasm`, join(fresh, 'ort.wasm'));
await cp(`${ort}.mjs`, join(fresh, 'ort.js')); // not every host knows the type of .mjs
await cp(join(here, 'docs'), join(fresh, 'docs'), { recursive: true });
for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt']) {
  await cp(join(packages, 'swagger-ui-dist', file), join(fresh, 'docs', file));
}
await writeFile(join(fresh, 'LICENSES.txt'), await licenses());
await rm(target, { recursive: true, force: true });
await rename(fresh, target);

/** The notices that the licenses of the page's packages require. */
async function licenses() {
  const { dependencies } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'));
  const texts = Object.entries(dependencies).map(async ([name, version]) => {
    const own = (await readdir(join(packages, name))).find((file) => /^licen[cs]e/i.test(file));
    const file = own ? join(packages, name, own) : join(here, 'licenses', `${name}.txt`); // onnxruntime-web has none
    return `${name} ${version}\n\n${(await readFile(file, 'utf8')).trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`);
}

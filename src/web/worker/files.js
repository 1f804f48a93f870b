// Files of a model: fetched once, verified by the SHA-256 of the manifest, and stored for offline use.

import { UserError } from './errors.js';

const root = new URL('./', self.location);

/** The manifest of a model. */
export async function readManifest(name) {
  return JSON.parse(new TextDecoder().decode(await download(`models/${name}/manifest.json`, 'no-cache')));
}

/**
 * The bytes of a model's file.
 *
 * @param {string} path below the site
 * @param {{bytes: number, sha256: string}} entry of the manifest
 * @param {(loaded: number) => void} onProgress
 * @throws {UserError} it cannot be fetched, or is not the file that the manifest names
 */
export async function readFile(path, entry, onProgress) {
  const cache = await openCache();
  const key = new URL(`${path}?sha256=${entry.sha256}`, root);
  const kept = await cache?.match(key);
  if (kept) {
    const content = new Uint8Array(await kept.arrayBuffer());
    if (await fits(content, entry)) {
      onProgress(entry.bytes);
      return content;
    }
  }
  for (const mode of ['no-cache', 'reload']) {
    const content = await download(path, mode, entry.bytes, onProgress);
    if (!(await fits(content, entry))) continue; // possibly from the browser's cache
    await cache?.delete(new URL(path, root), { ignoreSearch: true }); // from an earlier version
    await cache?.put(key, new Response(content)).catch(() => {}); // no room: it will be fetched each time
    return content;
  }
  throw new UserError(
    `${path} is not the file that its manifest names; reload the page, and if that does not help, the site must be written again.`,
  );
}

// Browsers offer the cache and hashes only on HTTPS and localhost; elsewhere only sizes are checked.
async function openCache() {
  return self.caches?.open(`softsearch models ${root.pathname}`).catch(() => undefined);
}

async function fits(content, { bytes, sha256 }) {
  if (content.length !== bytes) return false;
  if (!self.crypto.subtle) return true;
  const digest = new Uint8Array(await self.crypto.subtle.digest('SHA-256', content));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') === sha256;
}

async function download(path, mode, bytes, onProgress = () => {}) {
  let response;
  try {
    response = await fetch(new URL(path, root), { cache: mode });
  } catch {
    throw new UserError(`${path} cannot be fetched; check the network, a model is kept once it was loaded.`);
  }
  if (!response.ok) {
    throw new UserError(
      `${path} cannot be fetched: the server answers ${response.status}. Try again; if that does not help, the site must be written again.`,
    );
  }
  if (bytes === undefined) return new Uint8Array(await response.arrayBuffer());
  const content = new Uint8Array(bytes);
  let loaded = 0;
  try {
    for (const reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (loaded + value.length > bytes) return new Uint8Array(0); // longer than it should be
      content.set(value, loaded);
      loaded += value.length;
      onProgress(loaded);
    }
  } catch {
    throw new UserError(`${path} was cut off after ${loaded} bytes; check the network and try again.`);
  }
  return content.subarray(0, loaded);
}

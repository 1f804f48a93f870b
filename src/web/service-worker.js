// Stores the files of the site for offline use, and lets the page use threads: browsers allow them only to pages whose
// responses have these headers, which static hosts do not send. `softsearch web` writes SITE before this
// script. Models are kept by the workers that verify them (worker/files.js).

const { version, files } = self.SITE;
const scope = new URL('./', self.location);
const PREFIX = `softsearch site ${scope.pathname} `;
const NAME = PREFIX + version;
const HEADERS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  // The page's own policy is in index.html; a worker has the policy of its own response.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'",
};

self.addEventListener('install', (event) => event.waitUntil(keepAll()));
self.addEventListener('activate', (event) => event.waitUntil(dropOthers().then(() => self.clients.claim())));
self.addEventListener('fetch', (event) => {
  const { method, mode, url } = event.request;
  const path = new URL(url).origin === scope.origin && new URL(url).pathname.slice(scope.pathname.length);
  const file = path === '' ? 'index.html' : path;
  if (method === 'GET' && files.includes(file)) event.respondWith(mode === 'navigate' ? page() : kept(file));
});

async function keepAll() {
  const cache = await self.caches.open(NAME);
  await Promise.all(
    files.map(async (file) => {
      const response = await fetch(new URL(file, scope), { cache: 'no-cache' });
      if (!response.ok) throw new Error(`${file}: ${response.status}`);
      const headers = new Headers(response.headers);
      const added = file === 'index.html' ? Object.entries(HEADERS).slice(0, 2) : Object.entries(HEADERS);
      for (const [name, value] of added) headers.set(name, value);
      await cache.put(new URL(file, scope), new Response(response.body, { headers }));
    }),
  );
}

async function dropOthers() {
  for (const name of await self.caches.keys()) {
    if (name.startsWith(PREFIX) && name !== NAME) await self.caches.delete(name);
  }
  const models = await self.caches.open(`softsearch models ${scope.pathname}`);
  for (const { url } of await models.keys()) {
    if (!files.includes(new URL('manifest.json', url).pathname.slice(scope.pathname.length))) await models.delete(url);
  }
}

async function kept(file) {
  const cache = await self.caches.open(NAME);
  return (await cache.match(new URL(file, scope))) ?? fetch(new URL(file, scope));
}

// A newer version waits until no page uses this one: the last page to reload loads the newer one.
async function page() {
  if (self.registration.waiting && (await self.clients.matchAll({ type: 'window' })).length < 2) {
    self.registration.waiting.postMessage('activate');
    return new Response('', { headers: { Refresh: '0' } });
  }
  return kept('index.html');
}

self.addEventListener('message', ({ data }) => data === 'activate' && self.skipWaiting());

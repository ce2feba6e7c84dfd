// The site as its tests see it: built into a temporary folder, and served on loopback.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';

export const SITE = join(import.meta.dirname, '..');

export const whyNoSite = existsSync(join(SITE, 'node_modules/vitepress'))
  ? undefined
  : 'the site needs npm run docs:install';

/** Builds the site, and answers its folder. */
export function buildSite(): string {
  const folder = temporaryFolder();
  execFileSync(join(SITE, 'node_modules/.bin/vitepress'), ['build', join(SITE, '..')], {
    env: { ...process.env, SITE_OUT: folder, NODE_ENV: 'production' },
    stdio: 'pipe',
  });
  return folder;
}

/** The file that a server of static files answers for an address: `/use/errors` is `use/errors.html`. */
export function fileOf(folder: string, address: string): string | undefined {
  const path = decodeURIComponent(address.replace(/[?#].*$/, ''));
  const names = path.endsWith('/') ? [`${path}index.html`] : [path, `${path}.html`];
  return names.map((name) => join(folder, name)).find((file) => extname(file) !== '' && existsSync(file));
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

/** Serves the folder; answers the address and what ends it. */
export async function serve(folder: string): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    const file = fileOf(folder, request.url ?? '/');
    response.writeHead(file === undefined ? 404 : 200, { 'content-type': TYPES[extname(file ?? '')] ?? 'text/plain' });
    response.end(file === undefined ? undefined : readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

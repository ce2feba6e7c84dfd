// Does a watch go on by itself, from where it was, and say when it may have missed something?
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { createFetchTransport } from './fetch.ts';
import { watch } from './watch.ts';

let server: Server;
let address: string;
let seen: string[] = [];
/** What each watch connection does, one after the other; the last one stays open. */
let streams: Array<(response: ServerResponse) => void>;
let listed: string[];
/** So many watches are answered with 429 first. */
let refusals = 0;

beforeEach(async () => {
  seen = [];
  listed = [];
  server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://x');
    const from = url.searchParams.get('resourceVersion');
    seen.push(url.searchParams.has('watch') ? `watch from ${from}` : `list ${url.searchParams.get('limit')}`);
    if (url.searchParams.has('watch')) {
      if (refusals > 0) {
        refusals -= 1;
        response.writeHead(429, { 'retry-after': '1' }).end();
        return;
      }
      response.writeHead(200);
      (streams.shift() ?? (() => response.flushHeaders()))(response);
      return;
    }
    const items = listed.map((name) => ({ metadata: { name } }));
    response.writeHead(200).end(JSON.stringify({ metadata: { resourceVersion: '40' }, items }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const line = (type: string, name: string, resourceVersion: string) =>
  `${JSON.stringify({ type, object: { kind: 'ConfigMap', metadata: { name, resourceVersion } } })}\n`;
const gone = `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', metadata: {} } })}\n`;

/** Runs a watch until it has told `until` things, then stops it. */
async function told(until: number, resourceVersion?: string, bridges = false): Promise<string[]> {
  const events: string[] = [];
  const stop = new AbortController();
  const add = (what: string) => {
    events.push(what);
    if (events.length >= until) stop.abort();
  };
  const request = createFetchTransport({ address, token: 't', fetch });
  await watch(request, {
    resource: RESOURCES.configMaps,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    signal: stop.signal,
    onStart: () => add('start'),
    onEvent: ({ type, object }) => add(`${type} ${object.metadata.name}`),
    onError: ({ message }) => add(message),
    ...(bridges ? { onGap: () => add('gap') } : {}),
  });
  return events;
}

test('a watch begins now, and tells what changes, however the bytes are cut', async () => {
  const text = line('ADDED', 'ä', '41') + line('BOOKMARK', '', '50') + line('DELETED', 'b', '51');
  streams = [
    (response) => {
      const bytes = Buffer.from(text);
      const cut = bytes.indexOf(0xc3) + 1;
      response.write(bytes.subarray(0, cut));
      setTimeout(() => response.write(bytes.subarray(cut)), 20);
    },
  ];
  expect(await told(3)).toEqual(['start', 'ADDED ä', 'DELETED b']);
  expect(seen).toEqual(['list 1', 'watch from 40']);
});

test('a connection that ends is opened again where it was, bookmarks included', async () => {
  streams = [
    (response) => response.end(line('ADDED', 'a', '41') + line('BOOKMARK', '', '60')),
    (response) => response.write(line('MODIFIED', 'a', '61')),
  ];
  expect(await told(2, '7')).toEqual(['ADDED a', 'MODIFIED a']);
  expect(seen).toEqual(['watch from 7', 'watch from 60']);
});

test('where the API server has forgotten the place, what is there is told, then what changes from now', async () => {
  listed = ['kept'];
  streams = [(response) => response.end(gone), (response) => response.write(line('ADDED', 'b', '41'))];
  expect(await told(3, '7')).toEqual(['MODIFIED kept', 'start', 'ADDED b']);
  expect(seen).toEqual(['watch from 7', 'list 1', 'list 500', 'watch from 40']);
});

test('a gap is told to whoever wants to bridge it himself', async () => {
  listed = ['kept'];
  streams = [(response) => response.end(gone), (response) => response.write(line('ADDED', 'b', '41'))];
  expect(await told(3, '7', true)).toEqual(['gap', 'start', 'ADDED b']);
  expect(seen).toEqual(['watch from 7', 'list 1', 'watch from 40']);
});

test('an API server that is too busy is left alone as long as it says', async () => {
  const answered: number[] = [];
  refusals = 1;
  streams = [(response) => response.write(line('ADDED', 'a', '41'))];
  const began = Date.now();
  expect((await told(2, '7')).at(-1)).toBe('ADDED a');
  answered.push(Date.now() - began);
  expect(seen).toEqual(['watch from 7', 'watch from 7']);
  // A second is what it said; without it the pause is at most a fifth of that.
  expect(answered[0]).toBeGreaterThanOrEqual(990);
});

test('a server that ends each watch at once is not asked in a loop', async () => {
  streams = Array.from({ length: 50 }, () => (response: ServerResponse) => response.end());
  setTimeout(() => server.closeAllConnections(), 10);
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 700);
  const request = createFetchTransport({ address, token: 't', fetch });
  await watch(request, {
    resource: RESOURCES.configMaps,
    resourceVersion: '7',
    signal: stop.signal,
    onEvent: () => undefined,
  });
  expect(seen.length).toBeLessThan(8);
});

test('an API server that is away is tried again', async () => {
  streams = [(response) => response.destroy(), (response) => response.write(line('ADDED', 'a', '41'))];
  const events = await told(2, '7');
  expect(events.at(-1)).toBe('ADDED a');
});

test('a watch that is stopped ends, and nothing is told any more', async () => {
  const stop = new AbortController();
  stop.abort();
  const request = createFetchTransport({ address, token: 't', fetch });
  await watch(request, { resource: RESOURCES.configMaps, signal: stop.signal, onEvent: () => expect.unreachable() });
  expect(seen).toEqual([]);
});

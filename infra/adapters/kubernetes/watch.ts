// What changes from now on? A watch that goes on until it is told to stop, and says when it may have missed something.
import { ClusterError, type KubeObject, type Resource } from '#core/ports/cluster.ts';
import { createCall, toError } from './call.ts';
import { createCluster } from './cluster.ts';
import { collectionPath } from './path.ts';
import type { KubeTransport } from './transport.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

export interface WatchOptions {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Where to go on. Absent: from now. */
  readonly resourceVersion?: string;
  readonly onEvent: (change: Change) => void;
  /** The watch stands; called again after each gap, once that was bridged. */
  readonly onStart?: () => void;
  /** The API server has forgotten where the watch was: changes were missed. Absent: everything that is there is told as MODIFIED, and what was deleted meanwhile is not told. */
  readonly onGap?: () => void;
  readonly onError?: (error: Error) => void;
  /** From 0 to 1, so that many clients do not come back at once. Default: `Math.random`. */
  readonly random?: () => number;
  readonly signal: AbortSignal;
}

const SERVER_ENDS_AFTER = 300;
const LONGEST_PAUSE = 5_000;
/** A connection that ends sooner was not a watch: it counts as a failure, so that nothing spins. */
const SHORTEST = 1_000;

/**
 * Resolves when `signal` aborts. Never gives up before: it connects again from where it was, or, where the API server has
 * forgotten that, bridges the gap and goes on from now. Before that it waits as long as a Retry-After says, else 0.1 s to 5 s.
 */
export async function watch(request: KubeTransport, options: WatchOptions): Promise<void> {
  const { signal, onStart, onError, random = Math.random } = options;
  let from = options.resourceVersion;
  let gap = from !== undefined;
  for (let failures = 0; !signal.aborted; ) {
    let asked: number | undefined;
    const began = Date.now();
    try {
      const fresh = from === undefined;
      from ??= await latest(request, options);
      if (fresh && gap) await bridge(request, options);
      const start = () => fresh && onStart?.();
      for await (const version of changes(request, options, from, start)) {
        from = version;
        failures = 0;
      }
      if (Date.now() - began >= SHORTEST) {
        failures = 0;
        continue;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ClusterError && error.status === 410) {
        from = undefined;
        gap = true;
      } else onError?.(error instanceof Error ? error : new Error(String(error)));
      asked = error instanceof Busy ? error.retryAfter : undefined;
    }
    failures += 1;
    const wait = Math.min(100 * 2 ** failures, LONGEST_PAUSE) * (0.5 + random() / 2);
    await pause(Math.max(wait, (asked ?? 0) * 1000), signal);
  }
}

class Busy extends ClusterError {
  /** Seconds. */
  readonly retryAfter: number | undefined;
  constructor({ message, status }: ClusterError, retryAfter: string | undefined) {
    super(message, status);
    const seconds = Number(retryAfter);
    this.retryAfter = retryAfter !== undefined && seconds >= 0 ? Math.min(seconds, SERVER_ENDS_AFTER) : undefined;
  }
}

const selectors = ({ labelSelector, fieldSelector }: WatchOptions) => ({
  ...(labelSelector === undefined ? {} : { labelSelector }),
  ...(fieldSelector === undefined ? {} : { fieldSelector }),
});

async function latest(request: KubeTransport, options: WatchOptions): Promise<string> {
  const { resource, namespace } = options;
  const query = new URLSearchParams({ limit: '1', ...selectors(options) });
  const answer = await createCall(request)({ method: 'GET', path: `${collectionPath(resource, namespace)}?${query}` });
  if (answer.status !== 200) throw toError(`watching ${resource.plural}`, answer);
  const { metadata } = JSON.parse(answer.text) as { metadata: { resourceVersion: string } };
  return metadata.resourceVersion;
}

async function bridge(request: KubeTransport, options: WatchOptions) {
  const { resource, namespace, onEvent, onGap } = options;
  if (onGap !== undefined) return onGap();
  const selection = { ...(namespace === undefined ? {} : { namespace }), ...selectors(options) };
  for (const object of await createCluster({ request }).list(resource, selection))
    onEvent({ type: 'MODIFIED', object });
}

/** Tells every change of one connection, and yields how far it came. */
async function* changes(
  request: KubeTransport,
  options: WatchOptions,
  resourceVersion: string,
  onOpen: () => void,
): AsyncIterable<string> {
  const { resource, namespace, onEvent, signal } = options;
  const query = new URLSearchParams({
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(SERVER_ENDS_AFTER),
    resourceVersion,
    ...selectors(options),
  });
  // A connection that died without a word ends here, a little after the server would have ended it.
  const silent = AbortSignal.timeout((SERVER_ENDS_AFTER + 30) * 1000);
  const response = await request({
    method: 'GET',
    path: `${collectionPath(resource, namespace)}?${query}`,
    signal: AbortSignal.any([signal, silent]),
  });
  if (response.status !== 200) {
    const error = toError(`watching ${resource.plural}`, { status: response.status, text: await response.text() });
    throw new Busy(error, response.retryAfter);
  }
  onOpen();
  for await (const line of lines(response.stream())) {
    const { type, object } = JSON.parse(line) as { type: string; object: KubeObject & { code?: number } };
    if (type === 'ERROR')
      throw toError(`watching ${resource.plural}`, { status: object.code ?? 500, text: JSON.stringify(object) });
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') onEvent({ type, object });
    if (object.metadata.resourceVersion !== undefined) yield object.metadata.resourceVersion;
  }
}

async function* lines(stream: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) if (part.trim() !== '') yield part;
  }
}

function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, millis);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}

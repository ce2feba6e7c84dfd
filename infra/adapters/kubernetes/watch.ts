// What changes from now on? A watch that goes on until it is told to stop, and says when it may have missed something.
import { ClusterError, type KubeObject, type Resource } from '../../../functions/core/ports/cluster.ts';
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
  /** Where to go on. Absent: from now. */
  readonly resourceVersion?: string;
  readonly onEvent: (change: Change) => void;
  /** The watch stands; called again after each gap, once everything that is there was told as MODIFIED. What was deleted meanwhile is not told. */
  readonly onStart?: () => void;
  readonly onError?: (error: Error) => void;
  readonly signal: AbortSignal;
}

const SERVER_ENDS_AFTER = 300;
const LONGEST_PAUSE = 5_000;

/** Resolves when `signal` aborts. Never gives up before: it connects again (0.1 s to 5 s later) from where it was, or, where the API server has forgotten that, tells what is there and goes on from now. */
export async function watch(request: KubeTransport, options: WatchOptions): Promise<void> {
  const { signal, onStart, onError } = options;
  let from = options.resourceVersion;
  let gap = from !== undefined;
  for (let failures = 0; !signal.aborted; ) {
    try {
      const fresh = from === undefined;
      from ??= await latest(request, options);
      if (fresh && gap) await retell(request, options);
      const start = () => {
        failures = 0;
        if (fresh) onStart?.();
      };
      for await (const version of changes(request, options, from, start)) from = version;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ClusterError && error.status === 410) {
        from = undefined;
        gap = true;
      } else onError?.(error instanceof Error ? error : new Error(String(error)));
      failures += 1;
      await pause(Math.min(100 * 2 ** failures, LONGEST_PAUSE), signal);
    }
  }
}

async function latest(request: KubeTransport, { resource, namespace }: WatchOptions): Promise<string> {
  const answer = await createCall(request)({ method: 'GET', path: `${collectionPath(resource, namespace)}?limit=1` });
  if (answer.status !== 200) throw toError(`watching ${resource.plural}`, answer);
  const { metadata } = JSON.parse(answer.text) as { metadata: { resourceVersion: string } };
  return metadata.resourceVersion;
}

async function retell(request: KubeTransport, { resource, namespace, labelSelector, onEvent }: WatchOptions) {
  const selection = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
  for (const object of await createCluster({ request }).list(resource, selection))
    onEvent({ type: 'MODIFIED', object });
}

/** Tells every change of one connection, and yields how far it came. */
async function* changes(
  request: KubeTransport,
  { resource, namespace, labelSelector, onEvent, signal }: WatchOptions,
  resourceVersion: string,
  onOpen: () => void,
): AsyncIterable<string> {
  const query = new URLSearchParams({
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(SERVER_ENDS_AFTER),
    resourceVersion,
    ...(labelSelector === undefined ? {} : { labelSelector }),
  });
  // A connection that died without a word ends here, a little after the server would have ended it.
  const silent = AbortSignal.timeout((SERVER_ENDS_AFTER + 30) * 1000);
  const response = await request({
    method: 'GET',
    path: `${collectionPath(resource, namespace)}?${query}`,
    signal: AbortSignal.any([signal, silent]),
  });
  if (response.status !== 200) {
    throw toError(`watching ${resource.plural}`, { status: response.status, text: await response.text() });
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

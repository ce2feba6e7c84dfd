// The Cluster port over HTTP, the same for Node and for Workers: only the transport differs.

import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { hasMoreMembers, textOf } from '#core/json/json.ts';
import {
  type Cluster,
  ClusterError,
  type KubeObject,
  type Resource,
  type Selection,
  typeOf,
  type WriteRefusal,
  type WriteResult,
  withTooManyKeys,
} from '#core/ports/cluster.ts';
import { FIELD_MANAGER } from '#crds/names/group.ts';
import { isMap, type Json } from '#crds/validation/json-shapes.ts';

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path from the root of the API server, with the query. */
  readonly path: string;
  /** Absent: JSON. */
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface KubeResponse {
  readonly status: number;
  /** The header `Retry-After`, not parsed. */
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/**
 * Sends one request with the identity of the transport. Rejects if no whole response arrives, with ResponseTooLarge if
 * it is longer than `MAX_RESPONSE`.
 */
export type KubeTransport = (request: KubeRequest) => Promise<KubeResponse>;

/**
 * The maximum bytes of a response. The API server stores objects of up to 1.5 MB; a longer page is read in smaller
 * ones.
 */
export const MAX_RESPONSE = 4 * 1024 * 1024;

export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
  override readonly message = `the response is larger than ${MAX_RESPONSE} bytes: shorten the object, or delete it`;
}

export const USER_AGENT = 'gateway-operator';

export interface ClusterDependencies {
  readonly request: KubeTransport;
  /** Milliseconds for one HTTP exchange, with the waits for a busy API server. */
  readonly giveUpAfter?: number;
  /** Objects and pages that are read at the same time: each takes several times its bytes. */
  readonly maxReads?: number;
}

type Draft = Omit<KubeRequest, 'signal'>;
type ApiReply = Pick<KubeResponse, 'status' | 'text'>;
type OnPage = Parameters<Cluster['listPages']>[2];
/** `name`: of an object that exists. */
type Write = Omit<Draft, 'body'> & {
  readonly namespace: string | undefined;
  readonly name?: string;
  readonly body: object;
};

/** The numbers of objects of a page: of the first page, whose size is not known yet, and the maximum. */
const [FIRST_PAGE, PAGE] = [50, 500];
/** The number of smaller pages in which a page that is too large, or took too long, is read again. */
const SMALLER = 8;
/** The factor by which pages grow after a page that took too long. */
const GROWTH = 1.25;
const GIVE_UP_AFTER = 10_000;
/** Concurrent reads: enough for a resync, and they fit into the memory of the reconciler. */
const READS = 16;
/** Concurrent writes. */
const WRITES = 32;
/** The share of the concurrent calls that one namespace may have, at least two, because one of them may be slow. */
const [SHARE, MIN_OWN] = [1 / 4, 2];
/** The owner of calls that concern several namespaces, or none. */
const CLUSTER = '';
/** The field manager of every write: the owner of the written fields. */
const AS_US = `fieldManager=${FIELD_MANAGER}`;
const JSON_TYPE = 'application/json';
/** A server without such lists replies with whole objects. */
const METADATA_LIST = `${JSON_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,${JSON_TYPE}`;
const METADATA = METADATA_LIST.replace('List;', ';');

/**
 * A 404 means that the object does not exist only if it has a `Status` of the API server. Else the path is not served,
 * which throws.
 */
export function createCluster({
  request,
  giveUpAfter = GIVE_UP_AFTER,
  maxReads = READS,
}: ClusterDependencies): Cluster {
  const call = (draft: Draft) => callInTime(request, draft, giveUpAfter);
  const maxOwn = Math.max(MIN_OWN, maxReads * SHARE);
  const { run: limitReads } = createFairLimiter(maxReads, Number.POSITIVE_INFINITY, { maxOwn });
  /** Writes are limited by namespace, because an object with very many labels keeps the API server busy for long. */
  const { run: limitWrites } = createFairLimiter(WRITES, Number.POSITIVE_INFINITY, { maxOwn: WRITES * SHARE });
  /**
   * Parses each response before the next read of the owner, so that its text is not kept. Reads are limited by
   * namespace, because whoever may write Secrets of 1 MB decides how long the reads of that namespace take.
   */
  const read = <T>(owner: string, draft: Omit<Draft, 'method'>, parse: (reply: ApiReply) => T): Promise<T> =>
    limitReads(owner, async () => parse(await call({ method: 'GET', ...draft })));

  async function write<T>(
    what: string,
    { namespace = CLUSTER, name, body, ...how }: Write,
    read: (reply: ApiReply) => T,
  ): Promise<WriteResult<T>> {
    if (name !== undefined && !isNameable(name))
      return { ok: false, refusal: 'invalid', message: `metadata.name: Invalid value: ${JSON.stringify(name)}` };
    const reply = await limitWrites(namespace, () =>
      call({ contentType: JSON_TYPE, ...how, body: JSON.stringify(body) }),
    );
    if (reply.status >= 200 && reply.status < 300) return { ok: true, object: read(reply) };
    const status = readStatus(reply.text);
    const refusal = toWriteRefusal(reply.status, status);
    if (refusal === undefined) throw toError(what, reply);
    return { ok: false, refusal, message: status?.message ?? `${what}: ${reply.status}` };
  }

  async function readPages(resource: Resource, selection: Selection, onPage: OnPage): Promise<void> {
    const { namespace, limit: wanted, metadataOnly, readFor, ...selectors } = selection;
    if (namespace !== undefined && !isNameable(namespace)) return;
    const how = metadataOnly ? { accept: METADATA_LIST } : {};
    let max = wanted ?? PAGE;
    for (let [token, limit] = ['', wanted ?? FIRST_PAGE]; ; ) {
      const query = new URLSearchParams({ limit: String(limit), ...selectors, ...(token && { continue: token }) });
      const path = `${collectionPath(resource, namespace)}?${query}`;
      const page = read(readFor ?? namespace ?? CLUSTER, { ...how, path }, (reply) => {
        if (reply.status !== 200) throw toError(`listing ${resource.plural}`, reply);
        if (wanted === 1 && isTooWide(resource, reply))
          return { items: [withTooManyKeys(resource, namespace, '')], next: '', length: reply.text.length };
        return { ...readPage(reply.text), length: reply.text.length };
      });
      const found = await page.catch((error: Error) => {
        if (limit === 1 || !(isTimeout(error) || error.cause instanceof ResponseTooLarge)) throw error;
        limit = Math.ceil(limit / SMALLER);
        if (isTimeout(error)) max = limit;
        return undefined;
      });
      if (found === undefined) continue;
      const { items, next, length } = found;
      // Items of core lists have no type; items of custom resources have one.
      const seen = items.map((item) => (metadataOnly ? { metadata: item.metadata } : item));
      const objects = seen.map((item) => ({ ...typeOf(resource), ...item }) as unknown as KubeObject);
      onPage(objects, next !== '');
      if (next === '' || selection.limit !== undefined) return;
      token = next;
      max = Math.min(wanted ?? PAGE, Math.ceil(max * GROWTH));
      // Half full, if the next objects are as large as these.
      limit = Math.min(max, Math.max(1, Math.floor((items.length * MAX_RESPONSE) / (2 * length))));
    }
  }

  return {
    get: async (resource, namespace, name, { metadataOnly, readFor } = {}) => {
      if (!isNameable(name) || !isNameable(namespace ?? name)) return undefined;
      const how = metadataOnly ? { accept: METADATA } : {};
      // A Namespace is an object of its own namespace.
      return read(readFor ?? namespace ?? name, { ...how, path: objectPath(resource, namespace, name) }, (reply) => {
        if (reply.status === 200 && isTooWide(resource, reply)) return withTooManyKeys(resource, namespace, name);
        if (reply.status === 200 && metadataOnly) return { ...typeOf(resource), metadata: toObject(reply).metadata };
        if (reply.status === 200) return toObject(reply);
        if (reply.status === 404 && readStatus(reply.text)?.reason === 'NotFound') return undefined;
        throw toError(`reading ${resource.plural} ${namespace ?? ''}/${name}`, reply);
      });
    },
    list: (resource, selection = {}) =>
      orOnceMore(async () => {
        const all: KubeObject[] = [];
        await readPages(resource, selection, (objects) => all.push(...objects));
        return all;
      }),
    listPages: (resource, selection, onPage) => orOnceMore(() => readPages(resource, selection, onPage)),
    create: (resource, object) => {
      const { namespace, name } = object.metadata;
      const path = `${collectionPath(resource, namespace)}?${AS_US}`;
      return write(`creating ${resource.plural} ${name}`, { method: 'POST', namespace, path, body: object }, toObject);
    },
    patch: (resource, namespace, name, body, subresource) => {
      const below = subresource === undefined ? '' : `/${subresource}`;
      const path = `${objectPath(resource, namespace, name)}${below}?${AS_US}`;
      const how = { method: 'PATCH', contentType: 'application/merge-patch+json' } as const;
      return write(`patching ${resource.plural} ${name}`, { ...how, namespace, name, path, body }, toObject);
    },
    apply: (resource, object, { isDry } = { isDry: false }) => {
      const { namespace, name } = object.metadata;
      const path = `${objectPath(resource, namespace, name)}?${AS_US}&force=true${isDry ? '&dryRun=All' : ''}`;
      // JSON is YAML.
      const how = { method: 'PATCH', contentType: 'application/apply-patch+yaml' } as const;
      return write(`applying ${resource.plural} ${name}`, { ...how, namespace, name, path, body: object }, toObject);
    },
    delete: (resource, namespace, name, uid) => {
      const body = { preconditions: { uid }, propagationPolicy: 'Background' };
      const path = objectPath(resource, namespace, name);
      return write(
        `deleting ${resource.plural} ${name}`,
        { method: 'DELETE', namespace, name, path, body },
        () => undefined,
      );
    },
    serves: async (resource) => {
      const reply = await call({ method: 'GET', path: versionPath(resource) });
      if (reply.status === 404) return false;
      if (reply.status !== 200) throw toError(`asking whether ${resource.plural} are served`, reply);
      return readOffer(reply.text).includes(resource.plural);
    },
    may: async ({ username, uid, groups, extra }, verb, { group, version, plural }, namespace, name) => {
      const resourceAttributes = { namespace, verb, group, version, resource: plural, name };
      const review = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user: username, uid, groups, extra, resourceAttributes },
      };
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const reply = await call({ method: 'POST', path, contentType: JSON_TYPE, body: JSON.stringify(review) });
      if (reply.status !== 201 && reply.status !== 200) throw toError('asking what a user may do', reply);
      return readAllowed(reply.text);
    },
  };
}

/**
 * One call with its repetitions. After a 429, or a 5xx with `Retry-After`, it waits for that time and is repeated: the
 * API server has done nothing yet. A GET is repeated once if the connection breaks, because a kept-alive connection may
 * have been closed at that moment. Throws `ClusterError` if there is no reply in time.
 */
async function callInTime(request: KubeTransport, draft: Draft, giveUpAfter: number): Promise<ApiReply> {
  const end = Date.now() + giveUpAfter;
  const signal = AbortSignal.timeout(giveUpAfter);
  const what = `${draft.method} ${draft.path.split('?')[0]}`;
  for (let attempt = 1; ; attempt += 1) {
    const sent = await request({ ...draft, signal }).catch((cause: unknown) => ({ cause }));
    if ('cause' in sent) {
      const isTooLarge = sent.cause instanceof ResponseTooLarge;
      if (draft.method === 'GET' && attempt === 1 && !signal.aborted && !isTooLarge) continue;
      const why = signal.aborted ? `no answer within ${giveUpAfter / 1000} s` : innermostReasonOf(sent.cause);
      throw new ClusterError(`${what}: ${why}`, undefined, { cause: signal.aborted ? signal.reason : sent.cause });
    }
    const wait = waitBeforeRetry(sent);
    if (wait === undefined) return sent;
    if (Date.now() + wait >= end) {
      throw new ClusterError(`${what}: the API server is too busy (${sent.status})`, sent.status);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

const isTimeout = ({ cause }: Error): boolean => cause instanceof Error && cause.name === 'TimeoutError';

/** Milliseconds until the next attempt; undefined: the reply is final. */
function waitBeforeRetry({ status, retryAfter }: KubeResponse): number | undefined {
  if (status !== 429 && !(status >= 500 && retryAfter !== undefined)) return undefined;
  const seconds = Number(retryAfter ?? '1');
  return Number.isFinite(seconds) && seconds >= 0 ? Math.max(seconds, 0.05) * 1000 : 1000;
}

/** Repeats a list once if its token has expired: the API server compacts its history after some minutes. */
const orOnceMore = <T>(ask: () => Promise<T>): Promise<T> =>
  ask().catch((error: unknown) => {
    if (error instanceof ClusterError && error.status === 410) return ask();
    throw error;
  });

/** The innermost reason: the outer errors of a client show only that something failed. */
function innermostReasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? innermostReasonOf(error.cause) : reasonOf(error) || error.name;
}

/**
 * Whether an object or a namespace could have this name at all. `''` would turn a GET into a LIST, `..` into another
 * address.
 */
const isNameable = (name: string): boolean => name !== '' && name !== '.' && name !== '..' && !/[/%]/.test(name);

const versionPath = ({ group, version }: Resource): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`;

function collectionPath(resource: Resource, namespace: string | undefined): string {
  const within = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${versionPath(resource)}${within}/${resource.plural}`;
}

const objectPath = (resource: Resource, namespace: string | undefined, name: string): string =>
  `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;

const isTooWide = ({ maxMembers }: Resource, { text }: ApiReply): boolean =>
  maxMembers !== undefined && hasMoreMembers(text, maxMembers);

/** The object. The API server guarantees its shape. */
const toObject = ({ text }: ApiReply): KubeObject => JSON.parse(text) as KubeObject;

/** Go writes an empty list as null. The token of the last page is `''`. */
function readPage(text: string): { readonly items: ReadonlyArray<Json>; readonly next: string } {
  const { items, metadata } = readMap(text);
  const next = isMap(metadata) ? (metadata.continue ?? '') : '';
  const listed = items === null ? [] : items;
  if (!Array.isArray(listed) || !listed.every(isMap) || typeof next !== 'string') throw new Error('not a list');
  return { items: listed, next };
}

/** The plural names of the resources of a version of a group. */
function readOffer(text: string): ReadonlyArray<unknown> {
  const { resources } = readMap(text);
  if (!Array.isArray(resources) || !resources.every(isMap)) throw new Error('not a list of resources');
  return resources.map(({ name }) => name);
}

/** Whether the access review allows the access. */
function readAllowed(text: string): boolean {
  const { status } = readMap(text);
  if (!isMap(status) || typeof status.allowed !== 'boolean') throw new Error('not a review of access');
  return status.allowed;
}

function readMap(text: string): Json {
  const json: unknown = JSON.parse(text);
  if (!isMap(json)) throw new Error('not an object');
  return json;
}

/** The loose part of a `Status` that is read. */
type Status = NonNullable<ReturnType<typeof readStatus>>;

/** Undefined for a text that is no Status: the page of a proxy, or a path that is not served. */
function readStatus(text: string) {
  try {
    const { kind, message, reason, details } = readMap(text);
    const causes = isMap(details) && Array.isArray(details.causes) ? details.causes.filter(isMap) : [];
    return kind === 'Status' ? { message: textOf(message), reason: textOf(reason), causes } : undefined;
  } catch {
    return undefined;
  }
}

/** A reply that no caller handles, as an error with the API server's message. */
function toError(what: string, { status, text }: ApiReply): ClusterError {
  const message = readStatus(text)?.message ?? text.trim().slice(0, 200);
  return new ClusterError(`${what}: ${status} ${message}`, status);
}

/**
 * | HTTP | Status | refusal |
 * |---|---|---|
 * | 404 | `NotFound` | gone |
 * | 409 | `AlreadyExists` | exists |
 * | 409 | anything else | conflict |
 * | 403 | a cause `NamespaceTerminating` | terminating |
 * | 401, 403 | anything else | forbidden |
 * | 422 | a cause at `metadata.uid` | conflict: our precondition, another object has the name by now |
 * | 400, 413, 422 | anything else | invalid |
 */
function toWriteRefusal(httpStatus: number, { reason, causes = [] }: Partial<Status> = {}): WriteRefusal | undefined {
  switch (httpStatus) {
    case 404:
      return reason === 'NotFound' ? 'gone' : undefined;
    case 409:
      return reason === 'AlreadyExists' ? 'exists' : 'conflict';
    case 401:
    case 403:
      return causes.some((cause) => cause.reason === 'NamespaceTerminating') ? 'terminating' : 'forbidden';
    case 422:
      return causes.some(({ field }) => field === 'metadata.uid') ? 'conflict' : 'invalid';
    case 400:
    case 413:
      return 'invalid';
    default:
      return undefined;
  }
}

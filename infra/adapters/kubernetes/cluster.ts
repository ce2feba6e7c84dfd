// How is the Cluster port spoken over HTTP? The same for Node and for Workers: only the transport differs.
import {
  type Cluster,
  ClusterError,
  type KubeObject,
  type Resource,
  type Selection,
  type Written,
} from '#core/ports/cluster.ts';
import { readAllowed, readOffer, readPage } from './answers.ts';
import { type Answer, createCall, toError } from './call.ts';
import { AS_US, collectionPath, isNameable, listQuery, objectPath, versionPath } from './path.ts';
import { readStatus, toRefusal } from './status.ts';
import type { KubeTransport } from './transport.ts';

export interface ClusterDeps {
  readonly request: KubeTransport;
  /** Milliseconds for one HTTP exchange, waits for a busy API server included. Default: 10 s. */
  readonly giveUpAfter?: number;
}

const PAGE = 500;

type Visitor = (objects: ReadonlyArray<KubeObject>) => void;

/** The Cluster port over HTTP. A 404 counts as "not there" only when the API server itself says so: a path that is not served (yet) throws. */
export function createCluster({ request, giveUpAfter }: ClusterDeps): Cluster {
  const call = createCall(request, giveUpAfter);

  async function write(path: string, method: 'POST' | 'PATCH' | 'DELETE', body: unknown, contentType = JSON_TYPE) {
    return call({ method, path, contentType, body: JSON.stringify(body) });
  }

  async function page(resource: Resource, selection: Selection, limit: number, token: string) {
    const path = `${collectionPath(resource, selection.namespace)}?${listQuery(selection, limit, token)}`;
    const answer = await call({ method: 'GET', path });
    if (answer.status !== 200) throw toError(`listing ${resource.plural}`, answer);
    const { items, next } = readPage(answer.text);
    // Items of core lists come without their type; those of custom resources bring it along.
    const typed = items.map((item) => ({ ...typeOf(resource), ...item }) as unknown as KubeObject);
    return { objects: typed, next };
  }

  async function visit(resource: Resource, selection: Selection, told: Visitor): Promise<void> {
    const { limit = PAGE } = selection;
    for (let token = ''; ; ) {
      const { objects, next } = await page(resource, selection, limit, token);
      told(objects);
      if (next === '' || selection.limit !== undefined) return;
      token = next;
    }
  }

  async function list(resource: Resource, selection: Selection): Promise<ReadonlyArray<KubeObject>> {
    const all: KubeObject[] = [];
    await visit(resource, selection, (objects) => all.push(...objects));
    return all;
  }

  /** A token outlives compaction for minutes only; a list that took longer starts once more. */
  const orOnceMore = <T>(ask: () => Promise<T>): Promise<T> =>
    ask().catch((error: unknown) => {
      if (error instanceof ClusterError && error.status === 410) return ask();
      throw error;
    });

  return {
    get: async (resource, namespace, name) => {
      if (!isNameable(name)) return undefined;
      const answer = await call({ method: 'GET', path: objectPath(resource, namespace, name) });
      if (answer.status === 200) return toObject(answer);
      if (answer.status === 404 && readStatus(answer.text)?.reason === 'NotFound') return undefined;
      throw toError(`reading ${resource.plural} ${namespace ?? ''}/${name}`, answer);
    },

    list: (resource, selection = {}) => orOnceMore(() => list(resource, selection)),
    visit: (resource, selection, told) => orOnceMore(() => visit(resource, selection, told)),

    create: async (resource, object) =>
      toWritten(
        `creating ${resource.plural} ${object.metadata.name}`,
        await write(`${collectionPath(resource, object.metadata.namespace)}?${AS_US}`, 'POST', object),
        toObject,
      ),

    patch: async (resource, namespace, name, patch, subresource) => {
      if (!isNameable(name)) return unnameable(name);
      const path = `${objectPath(resource, namespace, name)}${subresource === undefined ? '' : `/${subresource}`}?${AS_US}`;
      return toWritten(`patching ${resource.plural} ${name}`, await write(path, 'PATCH', patch, MERGE_PATCH), toObject);
    },

    apply: async (resource, object) => {
      const { namespace, name } = object.metadata;
      if (!isNameable(name)) return unnameable(name);
      const path = `${objectPath(resource, namespace, name)}?${AS_US}&force=true`;
      // JSON is YAML.
      return toWritten(
        `applying ${resource.plural} ${name}`,
        await write(path, 'PATCH', object, APPLY_PATCH),
        toObject,
      );
    },

    delete: async (resource, namespace, name, uid) => {
      if (!isNameable(name)) return unnameable(name);
      const options = { preconditions: { uid }, propagationPolicy: 'Background' };
      return toWritten(
        `deleting ${resource.plural} ${name}`,
        await write(objectPath(resource, namespace, name), 'DELETE', options),
        () => undefined,
      );
    },

    serves: async (resource) => {
      const answer = await call({ method: 'GET', path: versionPath(resource) });
      if (answer.status === 404) return false;
      if (answer.status !== 200) throw toError(`asking whether ${resource.plural} are served`, answer);
      return readOffer(answer.text).includes(resource.plural);
    },

    may: async (user, verb, { group, version, plural }, namespace, name) => {
      const { username, uid, groups, extra } = user;
      const resourceAttributes = { namespace, verb, group, version, resource: plural, name };
      const answer = await write('/apis/authorization.k8s.io/v1/subjectaccessreviews', 'POST', {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user: username, uid, groups, extra, resourceAttributes },
      });
      if (answer.status !== 201 && answer.status !== 200) throw toError('asking what a user may do', answer);
      return readAllowed(answer.text);
    },
  };
}

const JSON_TYPE = 'application/json';
const MERGE_PATCH = 'application/merge-patch+json';
const APPLY_PATCH = 'application/apply-patch+yaml';

const typeOf = ({ group, version, kind }: Resource) => ({
  apiVersion: group === '' ? version : `${group}/${version}`,
  kind,
});

/** The API server's own object: its shape is the API server's promise. */
const toObject = ({ text }: Answer): KubeObject => JSON.parse(text) as KubeObject;

const unnameable = (name: string) =>
  ({ ok: false, refusal: 'invalid', message: `metadata.name: Invalid value: ${JSON.stringify(name)}` }) as const;

function toWritten<T>(what: string, answer: Answer, read: (answer: Answer) => T): Written<T> {
  if (answer.status >= 200 && answer.status < 300) return { ok: true, object: read(answer) };
  const status = readStatus(answer.text);
  const refusal = toRefusal(answer.status, status);
  if (refusal === undefined) throw toError(what, answer);
  return { ok: false, refusal, message: status?.message ?? `${what}: ${answer.status}` };
}

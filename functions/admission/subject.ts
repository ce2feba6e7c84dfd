// What is judged: an object of one of our kinds, out of a review whose inside may be anything.
import { toText } from '#core/finding.ts';
import type { Requester } from '#core/ports/cluster.ts';
import { type KindResource, resources } from '#crds/resources.ts';
import { toMistake } from '#crds/schema-words.ts';
import { isMap, type Json } from '#crds/shapes.ts';
import type { ReviewRequest } from './review.ts';

/** As much of an object as is sure: members of the right type or absent. `json` is all of it, as it came. */
export interface Draft {
  readonly json: Json;
  readonly spec: unknown;
  readonly metadata: {
    /** Absent with `generateName` until the API server has made one. */
    readonly name?: string | undefined;
    readonly namespace: string;
    readonly uid?: string | undefined;
    /** As they came; ask `annotationOf`. */
    readonly annotations: Json;
  };
}

export interface Subject {
  readonly kind: KindResource;
  readonly object: Draft;
  /** What is stored, on update. */
  readonly old?: Draft | undefined;
  readonly user: Requester;
  readonly dryRun: boolean;
}

/** `pass`: nothing to judge. `malformed`: a denial in these words. */
export type ReadSubject =
  | { readonly outcome: 'judge'; readonly subject: Subject }
  /** `deleted`: an object of ours is about to go. */
  | { readonly outcome: 'pass'; readonly deleted?: Hint }
  | { readonly outcome: 'malformed'; readonly problem: string };

/** "Look here in a moment": what reconcile is told after an object was let in, or is about to go. */
export interface Hint {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** Deeper than any object of ours with its managed fields; what is deeper could overrun a stack. */
const DEEPEST = 64;

/** `own` are the users whose writes are ours: reconcile never has to ask admission. */
export function readSubject(request: ReviewRequest, own: ReadonlySet<string>): ReadSubject {
  const { group, version, kind: name } = request.kind;
  const kind = resources.find((one) => one.group === group && one.version === version && one.kind === name);
  const isWrite = request.operation === 'CREATE' || request.operation === 'UPDATE';
  if (kind === undefined || (request.subResource ?? '') !== '') return { outcome: 'pass' };
  if (own.has(request.userInfo?.username ?? '')) return { outcome: 'pass' };
  if (!isWrite) return { outcome: 'pass', ...toDeleted(request, kind) };

  if (!isMap(request.object)) return { outcome: 'malformed', problem: `object: is no ${kind.kind}; send it as a map` };
  if (isTooDeep(request.object) || isTooDeep(request.oldObject)) {
    return { outcome: 'malformed', problem: `object: is nested deeper than ${DEEPEST} levels; no object of ours is` };
  }
  const object = toDraft(request.object, request);
  if (isMap(request.object.metadata) && typeof request.object.metadata.deletionTimestamp === 'string') {
    return { outcome: 'pass' };
  }
  const wrong = wrongShape(request.object, kind);
  if (wrong !== undefined) return { outcome: 'malformed', problem: wrong };
  const old =
    request.operation === 'UPDATE' && isMap(request.oldObject) ? toDraft(request.oldObject, request) : undefined;
  const user = toRequester(request.userInfo);
  return { outcome: 'judge', subject: { kind, object, old, user, dryRun: request.dryRun === true } };
}

/** Never judged: whatever people delete goes. A collection has no name; its objects are reviewed one by one. */
function toDeleted(request: ReviewRequest, { apiVersion, kind }: KindResource): { readonly deleted?: Hint } {
  const { operation, dryRun, namespace, name } = request;
  if (operation !== 'DELETE' || dryRun === true || !namespace || !name) return {};
  return { deleted: { apiVersion, kind, namespace, name } };
}

/** The same subject with the object changed, as /mutate does before it judges. */
export function withObject(subject: Subject, json: Json): Subject {
  const { name, namespace } = subject.object.metadata;
  return { ...subject, object: toDraft(json, { name, namespace }) };
}

function toDraft(json: Json, request: { name?: string | null | undefined; namespace?: string | null }): Draft {
  const metadata = isMap(json.metadata) ? json.metadata : {};
  return {
    json,
    spec: json.spec,
    metadata: {
      name: text(metadata.name) ?? text(request.name),
      namespace: text(metadata.namespace) ?? request.namespace ?? '',
      uid: text(metadata.uid),
      annotations: isMap(metadata.annotations) ? metadata.annotations : {},
    },
  };
}

/** Whether an edit leaves the spec as it is. */
export const isSameSpec = (one: Draft, other: Draft): boolean =>
  JSON.stringify(one.spec) === JSON.stringify(other.spec);

/** What is no text reads as absent. */
export function annotationOf({ metadata: { annotations } }: Draft, name: string): string | undefined {
  const value = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

function wrongShape(object: Json, kind: KindResource): string | undefined {
  if (object.kind !== kind.kind)
    return `kind: ${JSON.stringify(object.kind)}: the review is about a ${kind.kind}; write that`;
  if (object.apiVersion !== kind.apiVersion) {
    return `apiVersion: ${JSON.stringify(object.apiVersion)}: the review is about ${kind.apiVersion}; write that`;
  }
  if (!isMap(object.metadata)) return 'metadata: is required; send it as a map';
  const { annotations } = object.metadata;
  if (annotations !== undefined && annotations !== null && !isMap(annotations))
    return 'metadata.annotations: is no map; write them below it, indented, as `name: value`';
  // Of a spec that is none nothing else can be said.
  return isMap(object.spec) ? undefined : toText([noMap(object.spec ?? undefined)]);
}

/** What the schema says of a spec that is none. */
const noMap = (spec: unknown) => toMistake({ code: 'invalid_type', expected: 'object', path: [], message: '' }, spec);

function toRequester(userInfo: ReviewRequest['userInfo']): Requester {
  const { username, uid, groups, extra } = userInfo ?? {};
  return {
    username: username ?? '',
    ...(uid && { uid }),
    ...(groups && { groups }),
    ...(extra && { extra }),
  };
}

/** Of what is read here; `managedFields` and `status` are the largest part of many objects, and nothing reads them. */
function isTooDeep(object: unknown): boolean {
  if (!isMap(object)) return false;
  for (const name in object) {
    if (name === 'status') continue;
    const member = object[name];
    const tooDeep =
      name === 'metadata' && isMap(member) ? isMetadataTooDeep(member) : isDeeperThan(member, DEEPEST - 1);
    if (tooDeep) return true;
  }
  return false;
}

function isMetadataTooDeep(metadata: Json): boolean {
  for (const name in metadata) if (name !== 'managedFields' && isDeeperThan(metadata[name], DEEPEST - 2)) return true;
  return false;
}

/** This is what protects everything that recurses, so it goes no deeper itself. */
function isDeeperThan(value: unknown, deepest: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (deepest === 0) return true;
  if (Array.isArray(value)) return value.some((entry) => isDeeperThan(entry, deepest - 1));
  // Out of JSON, so nothing is inherited; and without a list of its members this is several times as fast.
  for (const name in value) if (isDeeperThan((value as Json)[name], deepest - 1)) return true;
  return false;
}

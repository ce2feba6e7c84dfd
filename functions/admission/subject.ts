// The subject of a review: a custom resource of the operator, read from a request that may contain anything.
import { listOf } from '#core/json/json.ts';
import type { Requester } from '#core/ports/cluster.ts';
import { ANNOTATION_NAMES, type AnnotationName } from '#crds/names/annotations.ts';
import { type KindResource, resources } from '#crds/names/resources.ts';
import { isMap, type Json } from '#crds/validation/json-shapes.ts';
import type { ReviewRequest } from './review.ts';

export interface Metadata {
  /** Absent with `generateName`, until the API server has generated the name. */
  readonly name?: string | undefined;
  readonly namespace: string;
  readonly uid?: string | undefined;
  /** Only the annotations that the operator reads: an object may have thousands of others. */
  readonly annotations: Json;
}

/**
 * An object that is not validated yet: members of its metadata have the right type or are absent, its spec may be
 * anything.
 */
export interface Draft {
  readonly json: Json;
  readonly metadata: Metadata;
  readonly spec: unknown;
  /** The spends in its status; only of the stored object. */
  readonly spends?: ReadonlyArray<StoredSpend>;
}

/** The spend of a window in the status of an object: its own, or that of a namespace on an instance. */
export interface StoredSpend {
  readonly namespace: string | undefined;
  /** The key policy of the namespace. */
  readonly policy: string | undefined;
  readonly currentSpend: string;
  readonly budgetResetDate: string | undefined;
}

export interface Subject {
  readonly kind: KindResource;
  readonly object: Draft;
  /** The stored object, on update. */
  readonly old: Draft | undefined;
  readonly user: Requester;
  readonly dryRun: boolean;
}

/** A trigger for the reconciler: the object that was accepted, or is about to be deleted. */
export interface Trigger {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * A review without a subject is allowed, or refused immediately. `trigger`: one of our objects is about to be deleted.
 */
export interface SubjectResult {
  readonly subject?: Subject;
  readonly refusal?: string;
  readonly trigger?: Trigger | undefined;
}

/** Writes of `exemptUsers` have no subject, so the reconciler does not depend on the admission webhook. */
export function readSubject(request: ReviewRequest, exemptUsers: ReadonlySet<string>): SubjectResult {
  const { group, version, kind: name } = request.kind;
  const kind = resources.find((one) => one.group === group && one.version === version && one.kind === name);
  if (kind === undefined || (request.subResource ?? '') !== '' || exemptUsers.has(request.userInfo?.username ?? ''))
    return {};
  const { object, oldObject, operation } = request;
  const dryRun = request.dryRun === true;
  // A deletion is always allowed.
  if (operation === 'DELETE') return { trigger: toTrigger(kind, request, dryRun) };
  if (operation === 'CONNECT') return {};
  // Server-side apply creates objects with the deletionTimestamp of the file.
  const stored = operation === 'UPDATE' && isMap(object) && isMap(object.metadata) ? object.metadata : {};
  if (typeof stored.deletionTimestamp === 'string') return {};
  const refusal = shapeViolation(object, kind);
  if (refusal !== undefined || !isMap(object)) return { refusal: refusal ?? '' };
  const subject: Subject = {
    kind,
    object: toDraft(object, request),
    old: operation === 'UPDATE' && isMap(oldObject) ? toStoredDraft(oldObject, request) : undefined,
    user: toRequester(request.userInfo),
    dryRun,
  };
  return { subject };
}

/** The same subject with the object changed, as /mutate does before it validates. */
export const withObject = (subject: Subject, json: Json): Subject => ({
  ...subject,
  object: toDraft(json, subject.object.metadata),
});

/**
 * The same subject with only what /validate reads. The review keeps the subject while it waits for the cluster, and the
 * parsed object would take up to eight times its bytes.
 */
export const withoutJson = ({ object, old, ...subject }: Subject): Subject => ({
  ...subject,
  object: { ...object, json: {} },
  old: old && { ...old, json: {} },
});

/** The trigger about an accepted object. None on a dry run. */
export const triggerOf = ({ kind, object, dryRun }: Subject): Trigger | undefined =>
  toTrigger(kind, object.metadata, dryRun);

/** None for the deletion of a collection, which has no name: its objects are reviewed one by one. */
function toTrigger(
  { apiVersion, kind }: KindResource,
  { namespace, name }: RequestedName,
  dryRun: boolean,
): Trigger | undefined {
  return dryRun || !namespace || !name ? undefined : { apiVersion, kind, namespace, name };
}

type RequestedName = Pick<ReviewRequest, 'namespace' | 'name'>;

function shapeViolation(object: unknown, { kind, apiVersion }: KindResource): string | undefined {
  if (!isMap(object)) return `object: Invalid value: must be a ${kind}; send it as a map`;
  for (const [field, must] of Object.entries({ kind, apiVersion }))
    if (object[field] !== must) return `${field}: Invalid value: ${JSON.stringify(object[field])}: must be "${must}"`;
  if (!isMap(object.metadata)) return 'metadata: Required value: add it as a map';
  if (isMap(object.metadata.annotations ?? {})) return undefined;
  return 'metadata.annotations: Invalid value: must be a map; write each annotation below it, indented, as `name: value`';
}

function toDraft(json: Json, requested: RequestedName): Draft {
  const metadata = isMap(json.metadata) ? json.metadata : {};
  return {
    json,
    metadata: {
      name: nonEmptyText(metadata.name) ?? nonEmptyText(requested.name),
      namespace: nonEmptyText(metadata.namespace) ?? requested.namespace ?? '',
      uid: nonEmptyText(metadata.uid),
      annotations: isMap(metadata.annotations) ? readAnnotations(metadata.annotations) : {},
    },
    spec: json.spec,
  };
}

const toStoredDraft = (json: Json, requested: RequestedName): Draft => ({
  ...toDraft(json, requested),
  spends: isMap(json.status) ? [json.status, ...listOf(json.status.namespaces)].flatMap(toSpend) : [],
});

/** A status that was written by hand may have anything. */
function toSpend(part: unknown): StoredSpend[] {
  if (!isMap(part) || typeof part.currentSpend !== 'string') return [];
  const { currentSpend } = part;
  const [namespace, policy, budgetResetDate] = [part.name, part.policy, part.budgetResetDate].map(nonEmptyText);
  return [{ namespace, policy, currentSpend, budgetResetDate }];
}

const readAnnotations = (annotations: Json): Json =>
  Object.fromEntries(
    ANNOTATION_NAMES.flatMap((name) => (Object.hasOwn(annotations, name) ? [[name, annotations[name]]] : [])),
  );

/** The value of an annotation. A value that is not a string counts as absent. */
export function annotationOf({ annotations }: Metadata, name: AnnotationName): string | undefined {
  const value = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

const nonEmptyText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

function toRequester(userInfo: ReviewRequest['userInfo']): Requester {
  const { username, uid, groups, extra } = userInfo ?? {};
  return { username: username ?? '', ...(uid && { uid }), ...(groups && { groups }), ...(extra && { extra }) };
}

// Defaults that /mutate fills in: only those that no schema can set, because they depend on other fields or on the user
// (DESIGN 5).
import { defaultOverlap } from '#core/keys/rotation.ts';
import { REQUESTED_BY_ANNOTATION } from '#crds/names/group.ts';
import { isMap, type Json } from '#crds/validation/json-shapes.ts';
import type { PatchOperation } from './review.ts';
import { annotationOf, type Subject } from './subject.ts';

type Default = (object: Json, subject: Subject) => Json;

const DEFAULTS: Readonly<Record<string, ReadonlyArray<Default>>> = {
  GatewayInstance: [],
  // The user that requested the VirtualKey; the overlap of a rotation.
  VirtualKey: [requestedBy, rotationOverlap],
  // The User's alias; the user that requested the User's VirtualKey.
  User: [userAlias, requestedBy],
  Team: [],
};

/** The object with its defaults. Calling it again changes nothing. */
export function withDefaults(subject: Subject): Json {
  const defaults = DEFAULTS[subject.kind.kind] ?? [];
  return defaults.reduce((object, next) => next(object, subject), subject.object.json);
}

/**
 * The requester, which cannot be forged: on create always the user of the review, whatever the manifest has; on update
 * the stored one. A User has the annotation while `autoCreateKey` is on: it names the user that switched it on, and the
 * User's VirtualKey copies it.
 */
function requestedBy(object: Json, { kind, old, user }: Subject): Json {
  const wantsKey = (spec: unknown) => kind.kind === 'VirtualKey' || (isMap(spec) && spec.autoCreateKey === true);
  if (!wantsKey(object.spec)) return withRequestedBy(object, undefined);
  const isNew = old === undefined || !wantsKey(old.spec);
  return withRequestedBy(object, isNew ? user.username : annotationOf(old.metadata, REQUESTED_BY_ANNOTATION));
}

function withRequestedBy(object: Json, username: string | undefined): Json {
  const metadata = isMap(object.metadata) ? object.metadata : {};
  const annotations = isMap(metadata.annotations) ? metadata.annotations : {};
  if (annotations[REQUESTED_BY_ANNOTATION] === username) return object;
  const { [REQUESTED_BY_ANNOTATION]: _forged, ...others } = annotations;
  const wanted = username === undefined ? others : { ...others, [REQUESTED_BY_ANNOTATION]: username };
  return { ...object, metadata: { ...metadata, annotations: wanted } };
}

/** The alias: the part of the e-mail address before the `@`. */
function userAlias(object: Json): Json {
  const { spec } = object;
  if (!isMap(spec) || typeof spec.userEmail !== 'string' || (spec.userAlias ?? '') !== '') return object;
  const alias = spec.userEmail.split('@')[0] ?? '';
  return alias === '' ? object : { ...object, spec: { ...spec, userAlias: alias } };
}

/**
 * The overlap of a rotation: a tenth of `every`, at most a day. A defaulted overlap follows an edit of `every`; an
 * overlap that the author has written stays.
 */
function rotationOverlap(object: Json, { old }: Subject): Json {
  const { spec } = object;
  const [now, before] = [rotationOf(spec), rotationOf(old?.spec)];
  if (!isMap(spec) || now === undefined) return object;
  const wasDefaulted = before?.overlap !== undefined && before.overlap === defaultOverlap(before.every);
  const isWritten = (now.overlap ?? undefined) !== undefined && !(wasDefaulted && now.overlap === before.overlap);
  const overlap = isWritten ? undefined : defaultOverlap(now.every);
  if (overlap === undefined || overlap === now.overlap) return object;
  return { ...object, spec: { ...spec, rotation: { ...now, overlap } } };
}

const rotationOf = (spec: unknown): Json | undefined =>
  isMap(spec) && isMap(spec.rotation) ? spec.rotation : undefined;

/** The JSON patch that turns `before` into `after`. Lists are replaced as a whole. */
export function toPatch(before: Json, after: Json, path = ''): PatchOperation[] {
  if (before === after) return [];
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return members.flatMap((member): PatchOperation[] => {
    const here = `${path}/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const [old, value] = [before[member], after[member]];
    if (old === value) return [];
    if (value === undefined) return [{ op: 'remove', path: here }];
    if (isMap(old) && isMap(value)) return toPatch(old, value, here);
    return [{ op: Object.hasOwn(before, member) ? 'replace' : 'add', path: here, value }];
  });
}

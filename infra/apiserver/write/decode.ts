// Decoding: a body as an object of its kind, typed, pruned and defaulted.

import { badRequest, invalid, type Outcome } from '../api-error.ts';
import type { KubeObject } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { apiVersionOf, type Resource } from '../resource.ts';
import { objectMeta } from '../schema/core-schemas.ts';
import { type Cause, invalid as invalidField, joinCauses } from '../schema/field-errors.ts';
import { isEmpty, isObject, type JsonObject } from '../schema/json.ts';
import { prune } from '../schema/prune.ts';
import type { Schema } from '../schema/schema.ts';
import { violations } from '../schema/violations.ts';

/**
 * The typed object: of the right kind and types, unknown fields dropped (and rejected or warned about), defaults filled
 * in.
 */
export function decodeObject(
  resource: Resource,
  body: JsonObject,
  { fieldValidation, warn }: Pick<ApiRequest, 'fieldValidation' | 'warn'>,
): Outcome<KubeObject> {
  const error = wrongKind(resource, body);
  if (error !== undefined) return error;
  const named = { ...body, apiVersion: apiVersionOf(resource), kind: resource.kind };
  const { object, unknown } = prune(resource.schema, resource.custom ? named : dropNulls(named));
  const handled = `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}`;
  const mistyped = typeError(resource, object);
  if (mistyped !== undefined) return badRequest(`${handled}: ${mistyped}`);
  const words = unknown.map((path) => `unknown field "${path}"`);
  if (words.length > 0 && fieldValidation === 'Strict') {
    return badRequest(`${handled}: strict decoding error: ${words.join(', ')}`);
  }
  if (fieldValidation === 'Warn') for (const word of words) warn(word);
  return complete(resource, object);
}

/** Metadata without what Go leaves out because it is empty, and the defaults of the kind. */
function complete(resource: Resource, object: JsonObject): KubeObject {
  const members = Object.entries(dropNulls(isObject(object.metadata) ? object.metadata : {}));
  const metadata = Object.fromEntries(members.filter(([, value]) => !isEmpty(value)));
  const whole = { ...object, metadata } as KubeObject; // typeError saw to that
  return resource.strategy.applyDefaults?.(whole) ?? whole;
}

function wrongKind(resource: Resource, { apiVersion, kind, metadata }: JsonObject) {
  const expected = apiVersionOf(resource);
  if (resource.custom && !(kind && apiVersion)) {
    const missing = kind ? 'apiVersion' : 'Kind';
    return badRequest(
      `the object provided is unrecognized (must be of type ${resource.kind}): Object '${missing}' is missing`,
    );
  }
  if ((apiVersion ?? '') !== '' && apiVersion !== expected) {
    return badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  if ((kind ?? '') === '' || kind === resource.kind) return undefined;
  if (resource.custom) {
    const name = isObject(metadata) ? String(metadata.name ?? '') : '';
    return invalid({ ...resource, kind: String(kind) }, name, [invalidField('kind', kind, `must be ${resource.kind}`)]);
  }
  return badRequest(
    `${kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: the kind must be ${resource.kind}`,
  );
}

/** A typed decoder rejects these before anything else is validated; of a custom resource only its metadata is typed. */
function typeError({ custom, schema }: Resource, object: JsonObject): string | undefined {
  const { metadata = {} } = object;
  const found = custom
    ? violations(dropNulls(metadata), objectMeta, { path: 'metadata', correlation: undefined })
    : coreViolations(object, schema);
  const wrong = found.find(({ reason }) => reason === 'FieldValueTypeInvalid');
  return wrong && joinCauses([wrong]);
}

/** Violations of a built-in kind's schema. An empty text of format `byte` is allowed: no bytes. */
export function coreViolations(object: JsonObject, schema: Schema): Cause[] {
  return violations(object, schema, { path: '', correlation: undefined }).filter(
    ({ message }) => !message.endsWith('must be of type byte: ""'),
  );
}

/** Null means absent to a typed decoder. */
function dropNulls<T>(value: T): T {
  if (Array.isArray(value)) return value.map(dropNulls) as T;
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(kept.map(([key, member]) => [key, dropNulls(member)])) as T;
}

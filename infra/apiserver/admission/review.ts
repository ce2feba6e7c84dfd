// AdmissionReviews: the request to a webhook, and its response, read as strictly as the real server reads it.
import { gvk, gvr } from '../resource.ts';
import { quote } from '../schema/go-format.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import type { AdmissionAttributes, WebhookKind } from './webhooks.ts';

export type Review = JsonObject & { readonly request: JsonObject & { readonly uid: string } };

/** `admission.k8s.io/v1` AdmissionReview. */
export function toReview({ request, operation, object, old, options }: AdmissionAttributes, uid: string): Review {
  const { resource, subresource, namespace, name, user, dryRun } = request;
  const sub = subresource === undefined ? {} : { subResource: subresource, requestSubResource: subresource };
  const called = name ?? object?.metadata.name;
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid,
      kind: gvk(resource),
      resource: gvr(resource),
      requestKind: gvk(resource),
      requestResource: gvr(resource),
      ...sub,
      ...(called !== undefined && { name: called }),
      ...(nameOfNamespace(request) !== undefined && { namespace: namespace ?? called }),
      operation,
      userInfo: user,
      object: object ?? null,
      oldObject: old ?? null,
      dryRun,
      options: optionsOf(request, operation, options),
    },
  };
}

/** The real server gives a Namespace its own name as namespace. */
function nameOfNamespace({ resource, namespace }: AdmissionAttributes['request']): string | undefined {
  return resource.group === '' && resource.plural === 'namespaces' ? 'namespaces' : namespace;
}

/** A patch is an update to webhooks: its options are UpdateOptions. */
function optionsOf(
  { query, dryRun }: AdmissionAttributes['request'],
  operation: string,
  options: object | undefined,
): JsonObject {
  const kind = `${operation.charAt(0)}${operation.slice(1).toLowerCase()}Options`;
  const named = (name: string) => (query.get(name) ? { [name]: query.get(name) } : {});
  return {
    kind,
    apiVersion: 'meta.k8s.io/v1',
    ...(dryRun && { dryRun: ['All'] }),
    ...named('fieldManager'),
    ...named('fieldValidation'),
    ...options,
  };
}

export type WebhookResult = {
  readonly allowed: boolean;
  readonly status: JsonObject | undefined;
  readonly warnings: readonly string[];
  /** The decoded JSON patch, of a mutating webhook. */
  readonly patch: unknown;
};

/** Reads a response as strictly as the real server; a string is its error. */
export function readResponse(body: unknown, uid: string, kind: WebhookKind): WebhookResult | string {
  if (!isObject(body)) return 'the response is not a JSON object';
  const { response } = body;
  if (!isObject(response)) return 'webhook response was absent';
  if (response.uid !== uid) return `expected response.uid=${quote(uid)}, got ${quote(String(response.uid ?? ''))}`;
  if (body.apiVersion !== 'admission.k8s.io/v1' || body.kind !== 'AdmissionReview') {
    const [group, version] = String(body.apiVersion ?? '').split('/');
    const got = `${group}/${version ?? ''}, Kind=${body.kind ?? ''}`;
    return `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${got}`;
  }
  const patch = patchOf(response);
  if (typeof patch === 'string') return patch;
  if (patch !== undefined && kind === 'validating') return 'validating webhook may not return response.patch';
  return {
    allowed: response.allowed === true,
    status: isObject(response.status) ? response.status : undefined,
    warnings: Array.isArray(response.warnings) ? response.warnings.map(String) : [],
    patch: patch?.operations,
  };
}

function patchOf({ patch, patchType }: JsonObject): { readonly operations: unknown } | string | undefined {
  if (!patch && !patchType) return undefined;
  if (!patchType) return 'webhook returned response.patch but not response.patchType';
  if (!patch) return 'webhook returned response.patchType but not response.patch';
  if (patchType !== 'JSONPatch') return `webhook returned invalid response.patchType of ${quote(String(patchType))}`;
  try {
    return { operations: JSON.parse(Buffer.from(String(patch), 'base64').toString('utf8')) };
  } catch (error) {
    return `the patch is not JSON: ${(error as Error).message}`;
  }
}

// Admission: whether the webhooks allow a write, and their changes of its object.

import {
  type ApiError,
  apiError,
  badRequest,
  internalError,
  isApiError,
  type Outcome,
  type Status,
} from '../api-error.ts';
import { jsonPatch, PatchError } from '../codec/patches.ts';
import type { KubeObject } from '../object.ts';
import { toCel } from '../schema/cel-value.ts';
import { quote } from '../schema/go-format.ts';
import { type JsonObject, sameJson } from '../schema/json.ts';
import type { Store } from '../store/store.ts';
import type { Call } from './call-webhook.ts';
import { readResponse, toReview, type WebhookResult } from './review.ts';
import { type AdmissionAttributes, createWebhooks, matches, type Webhook, type WebhookKind } from './webhooks.ts';

/** Makes a patched document an object again: decoded, defaulted, with the server's own fields put back. */
export type DecodePatched = (patched: JsonObject) => Outcome<KubeObject>;

export type Admission = ReturnType<typeof createAdmission>;

type Deps = { readonly store: Pick<Store, 'get' | 'list'>; readonly call: Call; newUid(): string; now(): number };

/** All webhooks together have the time of the request, whatever their failure policies say. */
const timeout = 'Timeout: request did not complete within requested timeout - context deadline exceeded';
const tooLate = apiError(504, 'Timeout', timeout);

export function createAdmission({ store, call, newUid, now }: Deps) {
  const webhooksOf = createWebhooks(store);

  /** The webhook's result, an error, or nothing: its conditions exclude this write, or it failed and may be ignored. */
  async function ask(
    webhook: Webhook,
    attributes: AdmissionAttributes,
    kind: WebhookKind,
  ): Promise<WebhookResult | ApiError | undefined> {
    const review = toReview(attributes, newUid());
    const wanted = conditionsMatch(webhook, review.request);
    if (wanted !== true) return wanted === false ? undefined : failing(webhook, wanted.failed);
    const { dryRun, signal, warn, deadline } = attributes.request;
    if (dryRun && webhook.sideEffects !== 'None' && webhook.sideEffects !== 'NoneOnDryRun') {
      return badRequest(`admission webhook ${quote(webhook.name)} does not support dry run`);
    }
    const left = deadline - now();
    const called = await call(webhook, review, {
      signal,
      milliseconds: Math.max(0, Math.min(webhook.timeoutSeconds * 1000, left)),
    });
    if (signal.aborted || now() >= deadline) return tooLate;
    if ('failed' in called) return failing(webhook, `failed to call webhook: ${called.failed}`);
    const result = readResponse(called.body, review.request.uid, kind);
    if (typeof result === 'string') return failing(webhook, `received invalid webhook response: ${result}`);
    for (const warning of result.warnings) warn(warning);
    return result.allowed ? result : denial(webhook, result.status);
  }

  async function mutateOnce(
    webhook: Webhook,
    attributes: AdmissionAttributes,
    object: KubeObject,
    decodePatched: DecodePatched,
  ): Promise<Outcome<KubeObject>> {
    const result = await ask(webhook, { ...attributes, object: attributes.object && object }, 'mutating');
    if (isApiError(result)) return result;
    if (result?.patch === undefined || attributes.object === undefined) return object;
    try {
      return decodePatched(jsonPatch(object, result.patch));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      return failing(webhook, `the patch does not fit the object: ${error.message}`) ?? object;
    }
  }

  return {
    /** One mutating webhook after the other; those with `IfNeeded` once more when a later one changed the object. */
    async mutate(attributes: AdmissionAttributes, object: KubeObject, decodePatched: DecodePatched) {
      const webhooks = webhooksOf('mutating').filter((webhook) => matches(webhook, attributes, store));
      const seen = new Map<Webhook, KubeObject>();
      let present = object;
      const again = webhooks.filter(({ reinvocationPolicy }) => reinvocationPolicy === 'IfNeeded');
      for (const webhook of [...webhooks, ...again]) {
        if (seen.has(webhook) && sameJson(seen.get(webhook), present)) continue;
        const next = await mutateOnce(webhook, attributes, present, decodePatched);
        if (isApiError(next)) return next;
        seen.set(webhook, next);
        present = next;
      }
      return present;
    },
    /** All validating webhooks concurrently; the error of the first in order. */
    async validate(attributes: AdmissionAttributes) {
      const webhooks = webhooksOf('validating').filter((webhook) => matches(webhook, attributes, store));
      const results = await Promise.all(webhooks.map((webhook) => ask(webhook, attributes, 'validating')));
      return results.find(isApiError);
    },
  };
}

/** Every condition must hold. One that is false counts more than one that failed. */
function conditionsMatch(webhook: Webhook, request: JsonObject): boolean | { readonly failed: string } {
  const values = { request: toCel(request), object: toCel(request.object), oldObject: toCel(request.oldObject) };
  let failed: string | undefined;
  for (const { name, test } of webhook.conditions) {
    try {
      if (test(values) === false) return false;
    } catch (error) {
      failed ??= `error evaluating match condition ${quote(name)}: ${(error as Error).message}`;
    }
  }
  return failed === undefined || { failed };
}

/** The failure policy decides what a failed call means. */
function failing({ name, failurePolicy }: Webhook, why: string): ApiError | undefined {
  return failurePolicy === 'Ignore' ? undefined : internalError(`failed calling webhook ${quote(name)}: ${why}`);
}

function denial({ name }: Webhook, status: JsonObject | undefined): ApiError {
  const deniedBy = `admission webhook ${quote(name)} denied the request`;
  const { message, reason, code, details } = (status ?? {}) as Partial<Status>;
  const explained = message || reason ? `${deniedBy}: ${message || reason}` : `${deniedBy} without explanation`;
  return apiError(typeof code === 'number' && code >= 400 ? code : 400, reason, explained, details);
}

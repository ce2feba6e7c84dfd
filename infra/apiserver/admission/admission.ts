// Do the webhooks let an attempt pass, and what do they make of the object?

import {
  type ApiError,
  apiError,
  badRequest,
  internalError,
  isApiError,
  type Outcome,
  type Status,
} from '../api-error.ts';
import { jsonPatch, PatchError } from '../codec/json-patch.ts';
import type { KubeObject } from '../object.ts';
import { quote } from '../schema/go-words.ts';
import { type JsonObject, sameJson } from '../schema/json.ts';
import type { Store } from '../store/store.ts';
import type { AdmissionAttributes } from './attributes.ts';
import type { Call } from './call-webhook.ts';
import { type Answer, readResponse, toReview } from './review.ts';
import { concerns, createWebhooks, type Webhook, type WebhookKind } from './webhooks.ts';

/** Makes a patched document an object again: decoded, defaulted, with what may not change put back. */
export type DecodePatched = (patched: JsonObject) => Outcome<KubeObject>;

export type Admission = {
  /** One mutating webhook after the other; those with `IfNeeded` once more when a later one changed the object. */
  mutate(attempt: AdmissionAttributes, object: KubeObject, decodePatched: DecodePatched): Promise<Outcome<KubeObject>>;
  /** All validating webhooks at once; the refusal of the first in order. */
  validate(attempt: AdmissionAttributes): Promise<ApiError | undefined>;
};

type Deps = { readonly store: Pick<Store, 'get' | 'list'>; readonly call: Call; newUid(): string; now(): number };

/** All webhooks together have the time of the request, whatever their failure policies say. */
const tooLate = apiError(
  504,
  'Timeout',
  'Timeout: request did not complete within requested timeout - context deadline exceeded',
);

export function createAdmission({ store, call, newUid, now }: Deps): Admission {
  const hooksOf = createWebhooks(store);

  /** The answer, a refusal, or nothing: the hook does not want it, or failed and may be ignored. */
  async function ask(
    hook: Webhook,
    attempt: AdmissionAttributes,
    kind: WebhookKind,
  ): Promise<Answer | ApiError | undefined> {
    const review = toReview(attempt, newUid());
    const wanted = conditionsHold(hook, review.request);
    if (wanted !== true) return wanted === false ? undefined : failing(hook, wanted.failed);
    const { dryRun, signal, warn, deadline } = attempt.request;
    if (dryRun && hook.sideEffects !== 'None' && hook.sideEffects !== 'NoneOnDryRun') {
      return badRequest(`admission webhook ${quote(hook.name)} does not support dry run`);
    }
    const left = deadline - now();
    const called = await call(hook, review, {
      signal,
      milliseconds: Math.max(0, Math.min(hook.timeoutSeconds * 1000, left)),
    });
    if (signal.aborted || now() >= deadline) return tooLate;
    if ('failed' in called) return failing(hook, `failed to call webhook: ${called.failed}`);
    const answer = readResponse(called.body, review.request.uid, kind);
    if (typeof answer === 'string') return failing(hook, `received invalid webhook response: ${answer}`);
    for (const warning of answer.warnings) warn(warning);
    return answer.allowed ? answer : denial(hook, answer.status);
  }

  async function mutateOnce(
    hook: Webhook,
    attempt: AdmissionAttributes,
    object: KubeObject,
    decodePatched: DecodePatched,
  ): Promise<Outcome<KubeObject>> {
    const answer = await ask(hook, { ...attempt, object: attempt.object && object }, 'mutating');
    if (isApiError(answer)) return answer;
    if (answer?.patch === undefined || attempt.object === undefined) return object;
    try {
      return decodePatched(jsonPatch(object, answer.patch));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      return failing(hook, `the patch does not fit the object: ${error.message}`) ?? object;
    }
  }

  return {
    async mutate(attempt, object, decodePatched) {
      const hooks = hooksOf('mutating').filter((hook) => concerns(hook, attempt, store));
      const seen = new Map<Webhook, KubeObject>();
      let present = object;
      for (const hook of hooks) {
        const next = await mutateOnce(hook, attempt, present, decodePatched);
        if (isApiError(next)) return next;
        seen.set(hook, next);
        present = next;
      }
      for (const hook of hooks) {
        if (hook.reinvocationPolicy !== 'IfNeeded' || sameJson(seen.get(hook), present)) continue;
        const next = await mutateOnce(hook, attempt, present, decodePatched);
        if (isApiError(next)) return next;
        present = next;
      }
      return present;
    },
    async validate(attempt) {
      const hooks = hooksOf('validating').filter((hook) => concerns(hook, attempt, store));
      const answers = await Promise.all(hooks.map((hook) => ask(hook, attempt, 'validating')));
      return answers.find(isApiError);
    },
  };
}

/** Every condition must hold. One that is false counts more than one that failed. */
function conditionsHold(hook: Webhook, request: JsonObject): boolean | { readonly failed: string } {
  let failed: string | undefined;
  for (const { name, test } of hook.conditions) {
    try {
      if (test({ request, object: request.object, oldObject: request.oldObject }) === false) return false;
    } catch (error) {
      failed ??= `error evaluating match condition ${quote(name)}: ${(error as Error).message}`;
    }
  }
  return failed === undefined || { failed };
}

/** The failure policy decides what a webhook that could not be asked means. */
function failing({ name, failurePolicy }: Webhook, why: string): ApiError | undefined {
  return failurePolicy === 'Ignore' ? undefined : internalError(`failed calling webhook ${quote(name)}: ${why}`);
}

function denial({ name }: Webhook, status: JsonObject | undefined): ApiError {
  const deniedBy = `admission webhook ${quote(name)} denied the request`;
  const { message, reason, code, details } = (status ?? {}) as Partial<Status>;
  const words = message
    ? `${deniedBy}: ${message}`
    : reason
      ? `${deniedBy}: ${reason}`
      : `${deniedBy} without explanation`;
  const known = typeof code === 'number' && code >= 400 ? code : 400;
  return apiError(known, reason, words, details);
}

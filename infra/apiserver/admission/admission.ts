// Do the webhooks let an attempt pass, and what do they make of the object?
import { jsonPatch, PatchError } from '../codec/json-patch.ts';
import type { KubeObject } from '../object.ts';
import { badRequest, internalError, isRefusal, type Outcome, type Refusal, refuse, type Status } from '../refusal.ts';
import { quote } from '../schema/go-words.ts';
import { type JsonObject, sameJson } from '../schema/json.ts';
import type { Store } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { concerns, createHooks, type Hook, type HookKind } from './hooks.ts';
import { type Answer, readAnswer, toReview } from './review.ts';

/** Makes a patched document an object again: decoded, defaulted, with what may not change put back. */
export type Settle = (patched: JsonObject) => Outcome<KubeObject>;

export type Admission = {
  /** One mutating webhook after the other; those with `IfNeeded` once more when a later one changed the object. */
  mutate(attempt: Attempt, object: KubeObject, settle: Settle): Promise<Outcome<KubeObject>>;
  /** All validating webhooks at once; the refusal of the first in order. */
  validate(attempt: Attempt): Promise<Refusal | undefined>;
};

type Deps = { readonly store: Pick<Store, 'get' | 'list'>; readonly call: Call; newUid(): string; now(): number };

/** All webhooks together have the time of the request, whatever their failure policies say. */
const tooLate = refuse(
  504,
  'Timeout',
  'Timeout: request did not complete within requested timeout - context deadline exceeded',
);

export function createAdmission({ store, call, newUid, now }: Deps): Admission {
  const hooksOf = createHooks(store);

  /** The answer, a refusal, or nothing: the hook does not want it, or failed and may be ignored. */
  async function ask(hook: Hook, attempt: Attempt, kind: HookKind): Promise<Answer | Refusal | undefined> {
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
    const answer = readAnswer(called.body, review.request.uid, kind);
    if (typeof answer === 'string') return failing(hook, `received invalid webhook response: ${answer}`);
    for (const warning of answer.warnings) warn(warning);
    return answer.allowed ? answer : denial(hook, answer.status);
  }

  async function mutateOnce(
    hook: Hook,
    attempt: Attempt,
    object: KubeObject,
    settle: Settle,
  ): Promise<Outcome<KubeObject>> {
    const answer = await ask(hook, { ...attempt, object: attempt.object && object }, 'mutating');
    if (isRefusal(answer)) return answer;
    if (answer?.patch === undefined || attempt.object === undefined) return object;
    try {
      return settle(jsonPatch(object, answer.patch));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      return failing(hook, `the patch does not fit the object: ${error.message}`) ?? object;
    }
  }

  return {
    async mutate(attempt, object, settle) {
      const hooks = hooksOf('mutating').filter((hook) => concerns(hook, attempt, store));
      const seen = new Map<Hook, KubeObject>();
      let present = object;
      for (const hook of hooks) {
        const next = await mutateOnce(hook, attempt, present, settle);
        if (isRefusal(next)) return next;
        seen.set(hook, next);
        present = next;
      }
      for (const hook of hooks) {
        if (hook.reinvocationPolicy !== 'IfNeeded' || sameJson(seen.get(hook), present)) continue;
        const next = await mutateOnce(hook, attempt, present, settle);
        if (isRefusal(next)) return next;
        present = next;
      }
      return present;
    },
    async validate(attempt) {
      const hooks = hooksOf('validating').filter((hook) => concerns(hook, attempt, store));
      const answers = await Promise.all(hooks.map((hook) => ask(hook, attempt, 'validating')));
      return answers.find(isRefusal);
    },
  };
}

/** Every condition must hold. One that is false counts more than one that failed. */
function conditionsHold(hook: Hook, request: JsonObject): boolean | { readonly failed: string } {
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
function failing({ name, failurePolicy }: Hook, why: string): Refusal | undefined {
  return failurePolicy === 'Ignore' ? undefined : internalError(`failed calling webhook ${quote(name)}: ${why}`);
}

function denial({ name }: Hook, status: JsonObject | undefined): Refusal {
  const deniedBy = `admission webhook ${quote(name)} denied the request`;
  const { message, reason, code, details } = (status ?? {}) as Partial<Status>;
  const words = message
    ? `${deniedBy}: ${message}`
    : reason
      ? `${deniedBy}: ${reason}`
      : `${deniedBy} without explanation`;
  const known = typeof code === 'number' && code >= 400 ? code : 400;
  const { refusal } = refuse(known, reason ?? '', words, details);
  const { reason: _, details: __, ...bare } = refusal;
  return { refusal: { ...bare, ...(reason && { reason }), ...(details && { details }) } };
}

// Triggers of admission to reconcile, "look here": CloudEvents, the first a moment after the answer, repeated while
// something is under way.
import type { Trigger } from '../../../functions/admission/app.ts';

/** Milliseconds: the API server stores the object only after our answer, and after that of other webhooks. */
const FIRST = 250;
/** Milliseconds after the first trigger (DESIGN 5). */
const REPEATS = [2_000, 5_000, 10_000, 20_000];

export interface TriggerDependencies {
  readonly address: string;
  readonly send: (request: Request) => Promise<Response>;
  /** Absent: reconcile asks for none (the local stack). */
  readonly token?: string | undefined;
}

/** Posts triggers to reconcile; rejects when it does not take one, which costs nothing but time. */
export function createTrigger(deps: TriggerDependencies): (trigger: Trigger, traceparent?: string) => Promise<void> {
  const ask = async (trigger: Trigger, traceparent: string | undefined): Promise<string> => {
    const answer = await deps.send(toEvent(deps, trigger, traceparent));
    const text = await answer.text();
    if (!answer.ok) throw new Error(`reconcile answered ${answer.status}: ${text}`);
    return text;
  };
  /** The newest trigger about each object, which repeats for the earlier ones too. */
  const newest = new Map<string, symbol>();
  return async (trigger, traceparent) => {
    const [id, own] = [`${trigger.kind} ${trigger.namespace}/${trigger.name}`, Symbol()];
    newest.set(id, own);
    try {
      await pause(FIRST);
      const { acted, underWay } = readReport(await ask(trigger, traceparent));
      let isLast = acted && !underWay;
      for (const [index, after] of REPEATS.entries()) {
        if (isLast) return;
        await pause(after - (REPEATS[index - 1] ?? 0));
        if (newest.get(id) !== own) return;
        isLast = !readReport(await ask(trigger, traceparent)).underWay;
      }
    } finally {
      if (newest.get(id) === own) newest.delete(id);
    }
  };
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));

/**
 * The effect of a trigger by its report; not `acted`: nothing was to be done, or nothing was stored yet. A text that is
 * no report shows none.
 */
export function readReport(text: string) {
  try {
    const { actions = {}, underWay = 0 } = JSON.parse(text) as {
      readonly actions?: object;
      readonly underWay?: number;
    };
    return { acted: Object.keys(actions).length > 0, underWay: underWay > 0 };
  } catch {
    return { acted: false, underWay: false };
  }
}

/** In binary mode, with the data of Knative's ApiServerSource in reference mode. */
function toEvent({ address, token }: TriggerDependencies, trigger: Trigger, traceparent: string | undefined): Request {
  return new Request(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': crypto.randomUUID(),
      'ce-source': '/admission',
      'ce-type': 'dev.gateway-operator.trigger',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(traceparent === undefined ? {} : { traceparent }),
    },
    body: JSON.stringify(trigger),
  });
}

// Triggers of the admission webhook to the reconciler: CloudEvents. The first is sent a moment after the response to the
// API server, and it is repeated while something is under way.
import { createLru } from '#core/caches/lru.ts';
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { Trigger } from '../../../functions/admission/app.ts';

/**
 * Milliseconds before each look. The API server stores the object only after the responses of all webhooks. The later
 * looks are 2, 5, 10 and 20 s after the first (DESIGN 5).
 */
const PAUSES = [250, 2_000, 3_000, 5_000, 10_000];
/** Milliseconds that the reconciler has for a reply. What takes longer is left to the next resync. */
const MAX_REPLY_TIME = 30_000;
/** Concurrent requests: as many as the reconciler runs triggers; and those of slow namespaces. */
const MAX_SENT = { quick: 32, slow: 24 };
/** Milliseconds after which a reply is slow, and in which the namespace counts as slow from then on. */
const [QUICK, SLOW_FOR] = [1_000, 60_000];
/** Namespaces that are remembered as slow. */
const MAX_SLOW = 1_000;
/** The maximum number of objects with a pending trigger: of all namespaces, and of one. */
const MAX_PENDING = { all: 2000, namespace: 500 };
const TOO_MANY = 'too many objects have triggers: the next resync looks at this one';

export interface TriggerDependencies {
  readonly address: string;
  readonly send: (request: Request) => Promise<Response>;
  /** Absent: the reconciler requires none (the local stack). */
  readonly token?: string | undefined;
}

/** The trigger of one object that is not over. */
interface PendingTrigger {
  readonly namespace: string;
  /** The index of the next look in `PAUSES`. */
  step: number;
  traceparent: string | undefined;
  /** Another trigger has taken its slot. */
  isDropped: boolean;
  /** Ends the pause before a repeated look. */
  wake(): void;
}

/**
 * Posts triggers to the reconciler. Rejects if the reconciler does not take one: then the next resync does the work. A
 * second trigger of an object begins the first one anew.
 */
export function createTrigger(deps: TriggerDependencies): (trigger: Trigger, traceparent?: string) => Promise<void> {
  const quick = createFairLimiter(MAX_SENT.quick);
  const slow = createFairLimiter(MAX_SENT.slow, undefined, { hasSlotsForNewcomers: true });
  const slowUntil = createLru<number>(MAX_SLOW);
  const isSlow = (namespace: string): boolean => (slowUntil.get(namespace) ?? 0) > Date.now();
  const post = async (trigger: Trigger, { namespace, traceparent, isDropped }: PendingTrigger): Promise<string> => {
    if (isDropped) throw new Error(TOO_MANY);
    const timer = setTimeout(() => slowUntil.set(namespace, Date.now() + SLOW_FOR), QUICK);
    try {
      const reply = await deps.send(toEvent(deps, trigger, traceparent));
      const text = await reply.text();
      if (!reply.ok) throw new Error(`reconcile answered ${reply.status}: ${text}`);
      return text;
    } finally {
      clearTimeout(timer);
    }
  };
  /** A slow request gives its slot to others. The next requests of its namespace share the slow slots. */
  const ask = async (trigger: Trigger, own: PendingTrigger): Promise<string> => {
    let reply: Promise<string> | undefined;
    await quick.run(own.namespace, async () => {
      if (isSlow(own.namespace)) return;
      reply = post(trigger, own);
      await Promise.race([reply, pause(QUICK, undefined)]);
    });
    return reply ?? slow.run(own.namespace, () => post(trigger, own));
  };
  const pending = new Map<string, PendingTrigger>();
  return async (trigger, traceparent) => {
    const { namespace } = trigger;
    const id = `${trigger.kind} ${namespace}/${trigger.name}`;
    const earlier = pending.get(id);
    if (earlier !== undefined) {
      Object.assign(earlier, { step: 0, traceparent });
      // The oldest comes first.
      pending.delete(id);
      pending.set(id, earlier);
      return earlier.wake();
    }
    takeSlot(pending, namespace);
    const own: PendingTrigger = { namespace, step: 0, traceparent, isDropped: false, wake: () => undefined };
    pending.set(id, own);
    try {
      while (own.step < PAUSES.length) {
        const step = own.step++;
        await pause(PAUSES[step] ?? 0, step === 0 ? undefined : own);
        if (own.isDropped) throw new Error(TOO_MANY);
        // A later write has begun the trigger anew: its first look comes a moment after the write.
        if (step > 0 && own.step === 0) continue;
        const { acted, underWay, isOnlyNotFound } = readReport(await ask(trigger, own));
        // Another webhook or a quota may have refused the object, so it is not awaited.
        const isLeft = underWay && !(isOnlyNotFound && step > 0);
        if (own.isDropped || (own.step > 0 && !isLeft && (acted || step > 0))) return;
      }
    } finally {
      if (!own.isDropped) pending.delete(id);
    }
  };
}

/**
 * Throws if the namespace may have no further trigger. If all slots are taken, the namespace with the most triggers
 * loses its oldest one to a namespace that has fewer.
 */
function takeSlot(pending: Map<string, PendingTrigger>, namespace: string): void {
  const counts = new Map<string, number>();
  for (const one of pending.values()) counts.set(one.namespace, (counts.get(one.namespace) ?? 0) + 1);
  const ofNamespace = counts.get(namespace) ?? 0;
  const max = Math.max(0, ...counts.values());
  if (ofNamespace >= MAX_PENDING.namespace) throw new Error(TOO_MANY);
  if (pending.size < MAX_PENDING.all) return;
  if (max <= ofNamespace + 1) throw new Error(TOO_MANY);
  const [id, oldest] = [...pending].find(([, one]) => counts.get(one.namespace) === max) ?? [];
  if (id === undefined || oldest === undefined) return;
  pending.delete(id);
  oldest.isDropped = true;
  oldest.wake();
}

function pause(millis: number, woken: Pick<PendingTrigger, 'wake'> | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, millis);
    if (woken === undefined) return;
    woken.wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/**
 * The effect of a trigger, from its report. Not `acted`: there was nothing to do, or nothing was stored yet.
 * `isOnlyNotFound`: only the object itself is awaited, which does not exist. A text that is no report has no effect.
 */
export function readReport(text: string) {
  try {
    const {
      actions = {},
      underWay = 0,
      notFound = false,
    } = JSON.parse(text) as {
      readonly actions?: object;
      readonly underWay?: number;
      readonly notFound?: boolean;
    };
    const acted = Object.keys(actions).length > 0;
    return { acted, underWay: underWay > 0, isOnlyNotFound: notFound && underWay === 1 };
  } catch {
    return { acted: false, underWay: false, isOnlyNotFound: false };
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
    signal: AbortSignal.timeout(MAX_REPLY_TIME),
  });
}

// How does admission tell reconcile "look here"? A CloudEvent, a moment after the answer; another where there was nothing to see yet.
import type { Hint } from '../../functions/admission/app.ts';

/** Milliseconds, one after the other: the API server stores the object only after our answer, and after that of other webhooks. */
const PAUSES = [250, 1_750];

type Send = (request: Request) => Promise<Response>;

/** Posts hints to this address; rejects when reconcile does not take one, which costs nothing but time. */
export function createHint(address: string, send: Send): (hint: Hint, traceparent?: string) => Promise<void> {
  return async (hint, traceparent) => {
    for (const pause of PAUSES) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      const answer = await send(toEvent(address, hint, traceparent));
      const text = await answer.text();
      if (!answer.ok) throw new Error(`reconcile answered ${answer.status}: ${text}`);
      if (hasActed(text)) return;
    }
  };
}

/** A report without an action: nothing was to be done, or nothing was stored yet. */
function hasActed(report: string): boolean {
  try {
    const { actions } = JSON.parse(report) as { readonly actions?: object };
    return Object.keys(actions ?? {}).length > 0;
  } catch {
    return false;
  }
}

/** In binary mode, with the data of Knative's ApiServerSource in reference mode. */
function toEvent(address: string, hint: Hint, traceparent: string | undefined): Request {
  return new Request(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': crypto.randomUUID(),
      'ce-source': '/admission',
      'ce-type': 'dev.gateway-operator.hint',
      ...(traceparent === undefined ? {} : { traceparent }),
    },
    body: JSON.stringify(hint),
  });
}

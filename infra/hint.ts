// How does admission tell reconcile "look here"? A CloudEvent, two seconds after the answer.
import type { Hint } from '../functions/admission/app.ts';

/** Milliseconds: the API server stores the object only after our answer. */
const LOOK_AFTER = 2_000;

type Send = (request: Request) => Promise<Response>;

/** Posts hints to this address; rejects when reconcile does not take one, which costs nothing but time. */
export function createHint(address: string, send: Send): (hint: Hint) => Promise<void> {
  return async (hint) => {
    await new Promise((resolve) => setTimeout(resolve, LOOK_AFTER));
    const answer = await send(toEvent(address, hint));
    if (!answer.ok) throw new Error(`reconcile answered ${answer.status}: ${await answer.text()}`);
  };
}

/** In binary mode, with the data of Knative's ApiServerSource in reference mode. */
function toEvent(address: string, hint: Hint): Request {
  return new Request(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': crypto.randomUUID(),
      'ce-source': '/admission',
      'ce-type': 'dev.gateway-operator.hint',
    },
    body: JSON.stringify(hint),
  });
}

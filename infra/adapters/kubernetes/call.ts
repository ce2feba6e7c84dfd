// How long do we insist on an answer? Ten seconds, obeying Retry-After on the way.
import { ClusterError } from '#core/ports/cluster.ts';
import { reasonOf } from '#core/reason.ts';
import { readStatus } from './status.ts';
import type { KubeRequest, KubeTransport } from './transport.ts';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export type Call = (request: Omit<KubeRequest, 'signal'>) => Promise<Answer>;

const GIVE_UP_AFTER = 10_000;

/**
 * One call with everything that belongs to it. Too many requests (429, or a 5xx that names a time) waits as told and
 * asks again: the API server has done nothing yet. A GET is repeated once when the connection breaks, because a
 * kept-alive one may have been closed at that very moment. Throws `ClusterError` when there is no answer in time.
 */
export function createCall(request: KubeTransport, giveUpAfter = GIVE_UP_AFTER): Call {
  return async (draft) => {
    const end = Date.now() + giveUpAfter;
    const signal = AbortSignal.timeout(giveUpAfter);
    const what = `${draft.method} ${draft.path.split('?')[0]}`;
    for (let attempt = 1; ; attempt += 1) {
      const sent = await send(request, { ...draft, signal }).catch((cause: unknown) => ({ cause }));
      if ('cause' in sent) {
        if (draft.method === 'GET' && attempt === 1 && !signal.aborted) continue;
        const why = signal.aborted ? `no answer within ${giveUpAfter / 1000} s` : innermostReasonOf(sent.cause);
        throw new ClusterError(`${what}: ${why}`, undefined, { cause: sent.cause });
      }
      const wait = waitBeforeRetry(sent.status, sent.retryAfter);
      if (wait === undefined) return { status: sent.status, text: sent.text };
      if (Date.now() + wait >= end) {
        throw new ClusterError(`${what}: the API server is too busy (${sent.status})`, sent.status);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };
}

/** An answer that nobody decides by, as an error in the API server's own words. */
export function toError(what: string, { status, text }: Answer): ClusterError {
  const said = readStatus(text)?.message ?? text.trim().slice(0, 200);
  return new ClusterError(`${what}: ${status} ${said}`, status);
}

async function send(request: KubeTransport, call: KubeRequest) {
  const response = await request(call);
  return { status: response.status, retryAfter: response.retryAfter, text: await response.text() };
}

/** Milliseconds; undefined: this is the answer. */
function waitBeforeRetry(status: number, retryAfter: string | undefined): number | undefined {
  if (status !== 429 && !(status >= 500 && retryAfter !== undefined)) return undefined;
  const seconds = Number(retryAfter ?? '1');
  return Number.isFinite(seconds) && seconds >= 0 ? Math.max(seconds, 0.05) * 1000 : 1000;
}

/** The innermost words: what fetch and undici wrap says only that something failed. */
function innermostReasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? innermostReasonOf(error.cause) : reasonOf(error) || error.name;
}

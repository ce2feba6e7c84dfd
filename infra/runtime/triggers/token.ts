// The token of the reconciler (`RECONCILE_TOKEN`): requests without it are refused.
import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * The header of Knative's sources. They cannot send a header of our choice, but an extension of their CloudEvents
 * (`ceOverrides`), which arrives as `ce-reconciletoken`.
 */
const EXTENSION = 'ce-reconciletoken';

const REFUSED = `send RECONCILE_TOKEN: "Authorization: Bearer …", or the CloudEvents extension ${EXTENSION.slice(3)}`;

/**
 * The same function, for requests with one of these tokens: 401 for others. Probes (GET) need none: they show only that
 * the function runs.
 */
export function requireToken(
  tokens: ReadonlyArray<string>,
  fetch: (request: Request) => Response | Promise<Response>,
): (request: Request) => Response | Promise<Response> {
  const known = tokens.map(digest);
  return (request) => {
    if (request.method === 'GET') return fetch(request);
    const given = digest(tokenOf(request.headers));
    // Digests have one length, and each is compared: the time does not show how much of a guess was right.
    const isKnown = known.map((token) => timingSafeEqual(token, given)).includes(true);
    if (isKnown) return fetch(request);
    return Response.json({ error: REFUSED }, { status: 401, headers: { 'www-authenticate': 'Bearer' } });
  };
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

function tokenOf(headers: Headers): string {
  const [, bearer] = /^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? [];
  return bearer ?? headers.get(EXTENSION) ?? '';
}

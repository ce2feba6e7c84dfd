// Authentication by the one bearer token, and impersonation (`kubectl --as`).
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { apiError, type Outcome } from '../api-error.ts';
import type { User } from './request.ts';

const holder: User = { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };

/** The holder of the token, or the user that it impersonates (`kubectl --as`). Any other caller is 401. */
export function createAuthenticate(token: string): (headers: IncomingHttpHeaders) => Outcome<User> {
  const wanted = digest(token);
  return (headers) => {
    const [scheme = '', given = ''] = (headers.authorization ?? '').split(/\s+/);
    if (scheme.toLowerCase() !== 'bearer' || !timingSafeEqual(digest(given), wanted)) {
      return apiError(401, 'Unauthorized', 'Unauthorized');
    }
    return impersonated(headers) ?? holder;
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function impersonated(headers: IncomingHttpHeaders): User | undefined {
  const username = headers['impersonate-user'];
  if (typeof username !== 'string' || username === '') return undefined;
  const groups = headers['impersonate-group'];
  const listed = typeof groups === 'string' ? groups.split(/,\s*/) : (groups ?? []);
  return { username, groups: [...new Set([...listed, 'system:authenticated'])] };
}

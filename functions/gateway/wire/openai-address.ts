// Where is an entry called, and with which headers? The same for all its requests, so it is put together once.
import type { Recipient } from '../endpoint.ts';

export interface Address {
  readonly url: string;
  /** For a reply in one piece, and for a stream. */
  readonly plain: Headers;
  readonly streamed: Headers;
}

type Headers = Readonly<Record<string, string>>;
type Called = Pick<Recipient, 'base' | 'provider' | 'credentials'>;

/** By credentials as they were read: changed ones are read into another object. */
const known = new WeakMap<Called['credentials'], Address & Called>();

export function addressOf({ base, provider, credentials }: Called): Address {
  const before = known.get(credentials);
  if (before !== undefined && before.base === base && before.provider === provider) return before;
  const called = { base, provider, credentials };
  const made = {
    ...called,
    url: urlOf(called),
    plain: headersOf(called, 'application/json'),
    streamed: headersOf(called, 'text/event-stream'),
  };
  known.set(credentials, made);
  return made;
}

function urlOf({ base, credentials }: Called): string {
  const version = credentials.apiVersion;
  const query = version === undefined ? '' : `?api-version=${encodeURIComponent(version)}`;
  return `${base}/chat/completions${query}`;
}

function headersOf({ provider, credentials }: Called, accept: string): Headers {
  const key = credentials.apiKey;
  const organization = credentials.organization;
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept,
    'accept-encoding': 'identity',
    'user-agent': 'gateway-operator',
  };
  if (key !== undefined) headers[provider.auth] = provider.auth === 'authorization' ? `Bearer ${key}` : key;
  if (organization !== undefined) headers['openai-organization'] = organization;
  return headers;
}

// How does each model of the sample upstream behave? Its name says it; every name that is not here is well-behaved.

export interface Behaviour {
  readonly about: string;
  /** Answers with this status and code in place of a reply. */
  readonly refuse?: { readonly status: number; readonly code: string; readonly message: string };
  readonly retryAfter?: number;
  /** Milliseconds before the first byte and between two tokens. */
  readonly pace?: { readonly first: number; readonly token: number };
  /** Breaks the connection after so many tokens. */
  readonly cutAfter?: number;
  readonly withoutUsage?: boolean;
  /** Compresses its answers, although nobody asks for that. */
  readonly compressed?: boolean;
  /** Never answers. */
  readonly hang?: boolean;
  /** Says so many tokens, whatever limit the request sets. */
  readonly chatter?: number;
}

export const WELL_BEHAVED: Behaviour = { about: 'answers with a few words about the last message of the user' };

export const BEHAVIOURS: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ['sample-small', WELL_BEHAVED],
  ['echo', { about: 'answers with the last message of the user, word for word' }],
  ['slow', { about: 'begins after a second, then a token every 200 ms', pace: { first: 1000, token: 200 } }],
  [
    'error-500',
    {
      about: 'fails with 500',
      refuse: { status: 500, code: 'server_error', message: 'The sample upstream fails, as this model always does.' },
    },
  ],
  [
    'rate-limited',
    {
      about: 'refuses with 429 and retry-after: 7',
      refuse: { status: 429, code: 'rate_limit_exceeded', message: 'Too many requests, as always for this model.' },
      retryAfter: 7,
    },
  ],
  [
    'overloaded',
    {
      about: 'refuses with 529, as Anthropic does when it has too much to do',
      refuse: { status: 529, code: 'overloaded', message: 'Overloaded, as always for this model.' },
    },
  ],
  [
    'refuse-400',
    {
      about: 'refuses the request with 400',
      refuse: { status: 400, code: 'invalid_value', message: 'The sample upstream does not like this request.' },
    },
  ],
  ['cut', { about: 'breaks the connection after five tokens', cutAfter: 5 }],
  ['no-usage', { about: 'never says how many tokens it used', withoutUsage: true }],
  ['compressed', { about: 'compresses its answers with gzip, unasked', compressed: true }],
  ['hang', { about: 'takes the request and never answers', hang: true }],
  ['chatterbox', { about: 'says 2,000 tokens whatever limit it is given', chatter: 2000 }],
]);

// Models of the sample upstream, by how they behave; every other name is well-behaved.

export interface Behaviour {
  readonly about: string;
  /** Answers with this status and code in place of a reply. */
  readonly refuse?: { readonly status: number; readonly code: string; readonly message: string };
  /** Seconds. */
  readonly retryAfter?: number;
  /** Milliseconds before the first byte and between two tokens. */
  readonly pace?: { readonly first: number; readonly token: number };
  /** Breaks the connection after so many tokens. */
  readonly cutAfter?: number;
  readonly withoutUsage?: boolean;
  /** Compresses its answers, unasked. */
  readonly compressed?: boolean;
  /** Never answers. */
  readonly hang?: boolean;
  /** Says so many tokens, whatever limit the request sets. */
  readonly chatter?: number;
}

const refuses = (about: string, status: number, code: string, message: string): Behaviour => ({
  about,
  refuse: { status, code, message: `The sample upstream ${message}.` },
});

export const WELL_BEHAVED: Behaviour = { about: 'answers with a few words about the last message of the user' };

export const BEHAVIOURS: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ['sample-small', WELL_BEHAVED],
  ['echo', { about: 'answers with the last message of the user, word for word' }],
  ['slow', { about: 'begins after a second, then a token every 200 ms', pace: { first: 1000, token: 200 } }],
  ['error-500', refuses('fails with 500', 500, 'server_error', 'fails, as this model always does')],
  [
    'rate-limited',
    {
      ...refuses(
        'refuses with 429 and retry-after: 7',
        429,
        'rate_limit_exceeded',
        'is busy, as always for this model',
      ),
      retryAfter: 7,
    },
  ],
  [
    'overloaded',
    refuses(
      'refuses with 529, as Anthropic does when it has too much to do',
      529,
      'overloaded',
      'is overloaded, as always',
    ),
  ],
  ['refuse-400', refuses('refuses the request with 400', 400, 'invalid_value', 'does not like this request')],
  ['cut', { about: 'breaks the connection after five tokens', cutAfter: 5 }],
  ['no-usage', { about: 'never says how many tokens it used', withoutUsage: true }],
  ['compressed', { about: 'compresses its answers with gzip, unasked', compressed: true }],
  ['hang', { about: 'takes the request and never answers', hang: true }],
  ['chatterbox', { about: 'says 2,000 tokens whatever limit it is given', chatter: 2000 }],
]);

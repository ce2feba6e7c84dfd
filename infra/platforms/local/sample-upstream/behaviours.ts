// Models of the sample upstream, by how they behave; every other name is well-behaved.

export interface Behaviour {
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
  /** Sends so many tokens, whatever limit the request sets. */
  readonly chatter?: number;
}

const refuses = (status: number, code: string, message: string) => ({
  refuse: { status, code, message: `The sample upstream ${message}.` },
});

/** Replies without delay, with a few words about the last message of the user. */
export const WELL_BEHAVED: Behaviour = {};

/** docs/operate/local-stack.md describes each of them. */
export const BEHAVIOURS: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ['sample-small', WELL_BEHAVED],
  ['echo', WELL_BEHAVED],
  ['slow', { pace: { first: 1000, token: 200 } }],
  ['error-500', refuses(500, 'server_error', 'fails, as this model always does')],
  ['rate-limited', { ...refuses(429, 'rate_limit_exceeded', 'is busy, as always for this model'), retryAfter: 7 }],
  ['overloaded', refuses(529, 'overloaded', 'is overloaded, as always')],
  ['refuse-400', refuses(400, 'invalid_value', 'does not like this request')],
  ['cut', { cutAfter: 5 }],
  ['no-usage', { withoutUsage: true }],
  ['compressed', { compressed: true }],
  ['hang', { hang: true }],
  ['chatterbox', { chatter: 2000 }],
]);

// Models of the sample upstream with a special behaviour; every other name is an ordinary model.

export interface Behaviour {
  /** Replies with this status and error code. */
  readonly refuse?: { readonly status: number; readonly code: string; readonly message: string };
  /** Seconds. */
  readonly retryAfter?: number;
  /** Milliseconds before the first byte and between two tokens. */
  readonly pace?: { readonly first: number; readonly token: number };
  /** Breaks the connection after this number of tokens. */
  readonly cutAfter?: number;
  readonly withoutUsage?: boolean;
  /** Compresses replies although the client does not request it. */
  readonly compressed?: boolean;
  /** Never replies. */
  readonly hang?: boolean;
  /** Sends this number of tokens, whatever limit the request has. */
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

// Bodies of requests: each is read whole, if memory has room for it and it arrives in time.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { type JsonSize, MAX_VALUES } from '#core/json/json-limits.ts';
import type { BodyRefusal, HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import type { GatewayDependencies } from '../deps.ts';
import { bytesToKeep, type MemoryLimits, type RequestMemory, workOf } from './memory-budget.ts';

/**
 * The time in which a body must arrive, in addition to the time that its bytes need on a slow line (1 Mbit/s). After
 * that, its memory is for other requests.
 */
const DEADLINE: Millis = 30_000;
const MIN_BYTES_PER_SECOND = 128 * 1024;

const OVERLOADED: Failure = { code: 'overloaded' };
const INCOMPLETE: Failure = {
  code: 'invalid_request',
  message: 'The request body ended before it was complete. Send the request again.',
};
const COMPRESSED: Failure = {
  code: 'invalid_request',
  message:
    'The header content-encoding must be absent or identity: compressed bodies are not accepted. Send the body as plain JSON.',
};
const TOO_SLOW: Failure = {
  code: 'invalid_request',
  message: `The request body arrived too slowly: after ${DEADLINE / 1000} s it must arrive with at least ${MIN_BYTES_PER_SECOND} bytes a second. Send a shorter body, or use a faster connection.`,
};

const TOO_MANY_VALUES: Failure = {
  code: 'invalid_request',
  message: `The request body must have at most ${MAX_VALUES} values. Send a body with fewer values.`,
};
/** The maximum number of members; no API has so many. */
const MAX_MEMBERS = 1_000;
const TOO_MANY_MEMBERS: Failure = {
  code: 'invalid_request',
  message: `The request body must have at most ${MAX_MEMBERS} members. Send each member once.`,
};

function failureOfSize(body: Uint8Array, size: JsonSize, share: RequestMemory): Failure | undefined {
  if (size.values > MAX_VALUES) return TOO_MANY_VALUES;
  if (size.members > MAX_MEMBERS) return TOO_MANY_MEMBERS;
  return share.countWork(workOf(body, size)) ? undefined : OVERLOADED;
}

/** The sender of a body. */
interface Sender {
  readonly client: HttpExchange;
  readonly share: RequestMemory;
  /** The key whose body it is. */
  readonly key: KeyPolicy;
}

export function createReadBody(
  { clock, timer }: Pick<GatewayDependencies, 'clock' | 'timer'>,
  { body: limit }: MemoryLimits,
) {
  const failureOf = (refused: BodyRefusal): Failure =>
    refused === 'too large' ? { code: 'request_too_large', limit } : OVERLOADED;

  /** Reads the body. Its bytes count in the share until the share gives them back. */
  return async function readBody({ client, share, key }: Sender): Promise<Result<Uint8Array, Failure>> {
    const coding = client.header('content-encoding')?.trim().toLowerCase() ?? '';
    if (coding !== '' && coding !== 'identity') return err(COMPRESSED);
    // Memory for the announced length is taken before anything is read. Otherwise bodies that arrive together would
    // each find too little.
    const announced = Number(client.header('content-length') ?? 0);
    if (announced > limit) return err(failureOf('too large'));
    if (!share.enter(key) || !share.take(bytesToKeep(announced)) || !share.countWork(announced)) return err(OVERLOADED);
    const received = { bytes: 0 };
    const reading = client.readBody((bytes) => {
      const taken = bytesToKeep(Math.max(announced, received.bytes));
      received.bytes += bytes;
      if (received.bytes > limit) return 'too large';
      const more = bytesToKeep(received.bytes) - taken;
      return more > 0 && !share.take(more) ? 'no room' : undefined;
    });
    // Nearly all bodies arrive together with their headers.
    const pace = announced > 0 && received.bytes === announced ? undefined : watchPace(client, received);
    const body = await reading;
    pace?.stop();
    if (pace?.isSlow()) return err(TOO_SLOW);
    if (body === 'broken') return err(INCOMPLETE);
    if (typeof body === 'string') return err(failureOf(body));
    const sizing = share.sizeOf(body);
    const failure = failureOfSize(body, sizing instanceof Promise ? await sizing : sizing, share);
    if (failure !== undefined) return err(failure);
    if (share.isLarge) await share.turn();
    return client.hasLeft() ? err({ code: 'client_left' }) : ok(body);
  };

  /** Stops the reading of a body that arrives too slowly. */
  function watchPace(client: HttpExchange, received: { readonly bytes: number }) {
    const began = clock.now();
    let isSlow = false;
    const check = () => {
      const remaining = began + DEADLINE + (received.bytes / MIN_BYTES_PER_SECOND) * 1000 - clock.now();
      isSlow = remaining <= 0;
      if (isSlow) client.stopReading();
      else cancel = timer(remaining, check);
    };
    let cancel = timer(DEADLINE, check);
    return { isSlow: () => isSlow, stop: () => cancel() };
  }
}

// Which upstream? The entries of the model name that can be reached, in the order in which they are tried.
import type { Failure } from '#core/failure.ts';
import type { Random } from '#core/ports/platform.ts';
import type { Credentials } from '#core/ports/serving.ts';
import type { Price } from '#core/price.ts';
import { type DialectName, type Provider, providerOf } from '#core/providers.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { SnapshotEntry } from '#core/snapshot.ts';
import type { Candidate } from './authorize.ts';
import type { GatewayDeps } from './deps.ts';
import type { Line } from './record.ts';
import { type OutputLimit, outputLimit, type Reservation } from './reserve.ts';
import type { Dialect } from './wire/dialect.ts';

const made: unique symbol = Symbol('Targets');

/** An entry that can be called: where it listens, with which credentials, and how much it may say. */
export interface Target {
  readonly entry: SnapshotEntry;
  readonly price: Price | undefined;
  readonly provider: Provider;
  readonly dialect: Dialect;
  /** What stands before the dialect's path, without a slash at its end. */
  readonly base: string;
  /** Values by credential name. */
  readonly credentials: Readonly<Record<string, string>>;
  readonly limit: OutputLimit;
}

/** At least one target, in order. Only `route` makes them. */
export interface Targets {
  readonly [made]: true;
  readonly reservation: Reservation;
  readonly first: Target;
  readonly others: ReadonlyArray<Target>;
}

export type Route = (reservation: Reservation, line: Line) => Result<Targets, Failure>;

export function createRoute(
  deps: Pick<GatewayDeps, 'credentials' | 'random'>,
  dialects: ReadonlyMap<DialectName, Dialect>,
): Route {
  return function route(reservation, line) {
    const { candidates, chat } = reservation.grant;
    const reachable = candidates.flatMap((candidate) => {
      const found = reach(candidate, reservation);
      if (!found.ok) line.skipped(candidate.entry.identifier, found.failure);
      return found.ok ? [found.value] : [];
    });
    const [first, ...others] = inOrder(reachable, deps.random);
    if (first === undefined) return err({ code: 'no_healthy_target', model: chat.model });
    return ok({ [made]: true, reservation, first, others });
  };

  function reach({ entry, price }: Candidate, reservation: Reservation): Result<Target, string> {
    const provider = providerOf(entry.provider);
    const dialect = dialects.get(provider.dialect);
    if (dialect === undefined) return err(`the dialect of ${entry.provider} is not spoken yet`);
    const credentials = readCredentials(entry, deps.credentials);
    if (!credentials.ok) return credentials;
    const base = credentials.value.apiBase ?? entry.apiBase ?? provider.base;
    if (base === undefined) return err(`no address: give ${entry.provider} an apiBase`);
    if (!/^https?:\/\/[^\s/]/.test(base)) return err('apiBase is not an http address');
    return ok({
      entry,
      price,
      provider,
      dialect,
      base: base.replace(/\/+$/, ''),
      credentials: credentials.value,
      limit: outputLimit(reservation, { entry, price }),
    });
  }
}

/** All credentials of an entry, or which one is not there. Secrets made from files end in a newline; no value does. */
function readCredentials(
  entry: SnapshotEntry,
  credentials: Credentials,
): Result<Readonly<Record<string, string>>, string> {
  const values: Record<string, string> = {};
  for (const [name, ref] of Object.entries(entry.credentials)) {
    const value = credentials.read(ref.secret, ref.entry)?.trim();
    if (value === undefined || value === '') return err(`credential ${name} is not there: ${ref.secret}/${ref.entry}`);
    values[name] = value;
  }
  return ok(values);
}

/** A random order in which an entry comes first as often as its share of the weights says. */
function inOrder(targets: ReadonlyArray<Target>, random: Random): ReadonlyArray<Target> {
  if (targets.length < 2) return targets;
  const left = [...targets];
  const ordered: Target[] = [];
  while (left.length > 0) ordered.push(...left.splice(pick(left, random), 1));
  return ordered;
}

function pick(targets: ReadonlyArray<Target>, random: Random): number {
  const total = targets.reduce((sum, { entry }) => sum + entry.weight, 0);
  const dice = random(4).reduce((value, byte) => value * 256 + byte, 0) / 2 ** 32;
  let rest = dice * total;
  const index = targets.findIndex(({ entry }) => {
    rest -= entry.weight;
    return rest < 0;
  });
  return index === -1 ? targets.length - 1 : index;
}

// Steps of clients: each sends one request, and ends its reservation once.
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Option } from './choice.ts';
import { costOf, type Execution, type Request, streamedCostOf } from './execution.ts';
import { verifyAdmission } from './exposure.ts';
import type { Gateway } from './gateway.ts';

/** Milliseconds of silence of the store after which a reply ends all the same. */
const SILENT = 2000;

export function clientSteps(execution: Execution): Option[] {
  return execution.requests.flatMap((request): Option[] => {
    const step = (label: string, run: () => void): Option[] => [
      {
        label: `${request.name} ${label}`,
        kind: 'client',
        run() {
          execution.lastStepAt = execution.shared.simulation.now();
          run();
        },
      },
    ];
    if (request.state === 'new') {
      const gateway = gatewayOf(execution, request);
      if (execution.shared.simulation.now() < execution.startedAt + (request.after ?? 0)) return [];
      return gateway?.isFrozen === true ? [] : step('asks', () => ask(execution, request, gateway));
    }
    const { state, gateway, grow, grown } = request;
    if (state !== 'reserved' || gateway?.isDead !== false || gateway.isFrozen) return [];
    if (grow !== undefined && grown === undefined) return step('grows', () => enlarge(execution, request, grow));
    return request.end === 'never' && !execution.isLast ? [] : step('ends', () => end(execution, request));
  });
}

/** The process that gets the request. */
function gatewayOf({ gateways }: Execution, { by }: Request): Gateway | undefined {
  const living = gateways.filter(({ isDead, isStopping }) => !isDead && !isStopping);
  return living[by % Math.max(1, living.length)];
}

function ask(execution: Execution, request: Request, gateway: Gateway | undefined): void {
  const { scopes, isStale, excused } = execution;
  request.state = gateway === undefined ? 'refused' : 'asked';
  request.gateway = gateway;
  if (isStale) excused.add(request);
  if (gateway === undefined) return;
  const { amount, minAmount = amount, name } = request;
  request.scopes = withJoined(execution, request);
  const of = request.scopes.flatMap((scope) => scopes[scope] ?? []);
  request.limits = new Map(of.map(({ scopeId, budget }) => [scopeId, BigInt(budget?.limit ?? 0)]));
  for (const [scopeId, limit] of request.limits) gateway.limits.set(scopeId, limit);
  const before = new Set(execution.requests.filter(({ reservation }) => reservation !== undefined));
  void gateway.ledger.reserve({ scopes: of, amount, minAmount, model: name, identifier: 'entry' }).then((result) => {
    if (!result.ok) request.state = result.failure.reason === 'unavailable' ? 'unavailable' : 'refused';
    else Object.assign(request, { state: 'reserved', reservation: result.value, size: result.value.amount });
    if (!result.ok) return;
    const since = execution.requests.filter((other) => other.reservation !== undefined && !before.has(other));
    verifyAdmission(execution, request, since);
    if (request.grow === undefined) stream(request);
  });
}

/** The scopes of the request, with the one that has joined another one of them by now. */
function withJoined(execution: Execution, { scopes }: Request): ReadonlyArray<number> {
  const { scenario, shared, startedAt } = execution;
  const { joinsAfter = Number.POSITIVE_INFINITY, limits } = scenario;
  const [joined, last] = [limits.length - 2, limits.length - 1];
  if (shared.simulation.now() < startedAt + joinsAfter || !scopes.includes(joined)) return scopes;
  const before = shared.database.ledgerRows().filter((row) => isChargedTo(row, `scope-${joined}`));
  execution.spentBeforeJoin ??= before.reduce((all, { cost }) => all + cost, 0n);
  return [...scopes, last];
}

const isChargedTo = ({ scopeWindows }: LedgerRow, scopeId: string) => scopeWindows.some((of) => of.scopeId === scopeId);

/** A first attempt has broken: another one begins when the reservation has grown, or cannot grow. */
function enlarge(execution: Execution, request: Request, by: bigint): void {
  const { reservation, gateway } = request;
  if (reservation === undefined || gateway === undefined) return;
  request.state = 'growing';
  if (execution.isStale) execution.excused.add(request);
  const before = new Set(execution.requests.filter((other) => other.reservation !== undefined));
  // A window that is over keeps its limit, whatever later requests bring.
  const over = reservation.scopeWindows.filter(({ window }) => window.end <= execution.shared.store.now());
  const known = { limits: new Map(gateway.limits) };
  for (const { scopeId } of over) known.limits.set(scopeId, request.limits.get(scopeId) ?? 0n);
  void gateway.ledger.grow(reservation, by).then(({ ok }) => {
    const grown = ok ? by : 0n;
    Object.assign(request, { state: 'reserved', grown, size: request.size + grown });
    const { name, size } = request;
    if (reservation.amount !== size)
      execution.wrong.push(`${name} has grown to ${size}, and its reservation is ${reservation.amount}`);
    const since = execution.requests.filter((other) => other.reservation !== undefined && !before.has(other));
    if (ok) verifyAdmission(execution, request, [known, ...since]);
    stream(request);
  });
}

/** From now on the ledger reads the streamed cost. */
function stream(request: Request): void {
  const { reservation, gateway } = request;
  const known = streamedCostOf(request);
  if (reservation !== undefined && known !== undefined) gateway?.ledger.trackStream(reservation, () => known);
}

function end({ shared: { simulation } }: Execution, request: Request): void {
  const { reservation, gateway, name } = request;
  if (reservation === undefined || gateway === undefined) return;
  const { ledger } = gateway;
  request.state = 'ending';
  request.settledAt = simulation.now();
  if (request.end === 'release')
    return void ledger.release(reservation).then(() => {
      request.state = 'released';
    });
  const tokens = { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 };
  const settlement = { cost: costOf(request), tokens, model: name, identifier: 'entry', estimated: false };
  void ledger.settle(reservation, settlement).then(() => {
    request.state = 'settled';
    request.isUnguaranteed = simulation.now() - request.settledAt >= SILENT;
  });
  if (request.end === 'both') void ledger.release(reservation);
}

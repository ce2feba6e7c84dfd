// Steps of clients: each sends one request, and ends its reservation once.
import type { Option } from './choice.ts';
import { type Course, costOf, type Request, streamedCostOf } from './course.ts';
import { verifyAdmission } from './exposure.ts';
import type { Gateway } from './gateway.ts';

/** A reply ends although the store is silent for so long. */
const SILENT = 2000;

export function clientSteps(course: Course): Option[] {
  return course.requests.flatMap((request): Option[] => {
    const step = (label: string, run: () => void): Option[] => [
      {
        label: `${request.name} ${label}`,
        kind: 'client',
        run() {
          course.lastStepAt = course.shared.stage.now();
          run();
        },
      },
    ];
    if (request.stage === 'new') {
      const gateway = gatewayOf(course, request);
      if (course.shared.stage.now() < course.startedAt + (request.after ?? 0)) return [];
      return gateway?.isFrozen === true ? [] : step('asks', () => ask(course, request, gateway));
    }
    const { stage, gateway, grow, grown } = request;
    if (stage !== 'reserved' || gateway?.isDead !== false || gateway.isFrozen) return [];
    if (grow !== undefined && grown === undefined) return step('grows', () => enlarge(course, request, grow));
    return request.end === 'never' && !course.isLast ? [] : step('ends', () => end(course, request));
  });
}

/** The process that gets the request. */
function gatewayOf({ gateways }: Course, { by }: Request): Gateway | undefined {
  const living = gateways.filter(({ isDead, isStopping }) => !isDead && !isStopping);
  return living[by % Math.max(1, living.length)];
}

function ask(course: Course, request: Request, gateway: Gateway | undefined): void {
  const { scopes, isStale, excused } = course;
  request.stage = gateway === undefined ? 'refused' : 'asked';
  request.gateway = gateway;
  if (isStale) excused.add(request);
  if (gateway === undefined) return;
  const { amount, minAmount = amount, name } = request;
  const of = request.scopes.flatMap((scope) => scopes[scope] ?? []);
  request.limits = new Map(of.map(({ scopeId, budget }) => [scopeId, BigInt(budget?.limit ?? 0)]));
  for (const [scopeId, limit] of request.limits) gateway.limits.set(scopeId, limit);
  const before = new Set(course.requests.filter(({ reservation }) => reservation !== undefined));
  void gateway.ledger.reserve({ scopes: of, amount, minAmount, model: name, identifier: 'entry' }).then((result) => {
    if (!result.ok) request.stage = result.failure.reason === 'unavailable' ? 'unavailable' : 'refused';
    else Object.assign(request, { stage: 'reserved', reservation: result.value, size: result.value.amount });
    if (!result.ok) return;
    const since = course.requests.filter((other) => other.reservation !== undefined && !before.has(other));
    verifyAdmission(course, request, since);
    if (request.grow === undefined) stream(request);
  });
}

/** A first attempt has broken: another one begins when its reservation has grown, or can not. */
function enlarge(course: Course, request: Request, by: bigint): void {
  const { reservation, gateway } = request;
  if (reservation === undefined || gateway === undefined) return;
  request.stage = 'growing';
  if (course.isStale) course.excused.add(request);
  const before = new Set(course.requests.filter((other) => other.reservation !== undefined));
  // A window that is over keeps its limit, whatever later requests bring.
  const over = reservation.scopeWindows.filter(({ window }) => window.end <= course.shared.store.now());
  const known = { limits: new Map(gateway.limits) };
  for (const { scopeId } of over) known.limits.set(scopeId, request.limits.get(scopeId) ?? 0n);
  void gateway.ledger.grow(reservation, by).then(({ ok }) => {
    const grown = ok ? by : 0n;
    Object.assign(request, { stage: 'reserved', grown, size: request.size + grown });
    const { name, size } = request;
    if (reservation.amount !== size)
      course.wrong.push(`${name} has grown to ${size}, and its reservation is ${reservation.amount}`);
    const since = course.requests.filter((other) => other.reservation !== undefined && !before.has(other));
    if (ok) verifyAdmission(course, request, [known, ...since]);
    stream(request);
  });
}

/** What it has produced is asked for from now on. */
function stream(request: Request): void {
  const { reservation, gateway } = request;
  const known = streamedCostOf(request);
  if (reservation !== undefined && known !== undefined) gateway?.ledger.trackStream(reservation, () => known);
}

function end({ shared: { stage } }: Course, request: Request): void {
  const { reservation, gateway, name } = request;
  if (reservation === undefined || gateway === undefined) return;
  const { ledger } = gateway;
  request.stage = 'ending';
  request.settledAt = stage.now();
  if (request.end === 'release')
    return void ledger.release(reservation).then(() => {
      request.stage = 'released';
    });
  const tokens = { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 };
  const settlement = { cost: costOf(request), tokens, model: name, identifier: 'entry', estimated: false };
  void ledger.settle(reservation, settlement).then(() => {
    request.stage = 'settled';
    request.isUnguaranteed = stage.now() - request.settledAt >= SILENT;
  });
  if (request.end === 'both') void ledger.release(reservation);
}

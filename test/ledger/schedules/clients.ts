// Steps of clients: each sends one request, and ends its hold once.
import type { Option } from '../account-schedules/choice.ts';
import type { Course, Request } from './course.ts';

export function clientSteps(course: Course): Option[] {
  return course.requests.flatMap((request): Option[] => {
    const step = (label: string, happen: () => void): Option[] => [
      {
        ...{ label: `${request.name} ${label}`, kind: 'client' },
        happen() {
          course.lastDeed = course.shared.stage.now();
          happen();
        },
      },
    ];
    if (request.stage === 'new') return step('asks', () => ask(course, request));
    const isOver = request.stage !== 'held' || (request.end === 'never' && !course.isLast);
    return isOver || request.gateway?.isDead !== false ? [] : step('ends', () => end(request));
  });
}

function ask({ gateways, scopes, isStale, admittedStale }: Course, request: Request): void {
  const living = gateways.filter(({ isDead }) => !isDead);
  const gateway = living[request.by % Math.max(1, living.length)];
  request.stage = gateway === undefined ? 'refused' : 'asked';
  request.gateway = gateway;
  if (isStale) admittedStale.add(request);
  const { amount, name, known } = request;
  const of = request.scopes.flatMap((scope) => scopes[scope] ?? []);
  const asked = gateway?.ledger.hold({ scopes: of, amount, minAmount: amount, model: name, identifier: 'entry' });
  void asked?.then((result) => {
    if (!result.ok) request.stage = result.failure.reason === 'unavailable' ? 'unavailable' : 'refused';
    else Object.assign(request, { stage: 'held', hold: result.value });
    if (result.ok && known !== undefined) gateway?.ledger.progress(result.value, () => known);
  });
}

function end(request: Request): void {
  const { hold, gateway, cost, name } = request;
  if (hold === undefined || gateway === undefined) return;
  const { ledger } = gateway;
  const became = (stage: Request['stage']) => () => Object.assign(request, { stage });
  request.stage = 'ending';
  if (request.end === 'release') return void ledger.release(hold).then(became('released'));
  const tokens = { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 };
  const settlement = { cost, tokens, model: name, identifier: 'entry', estimated: false };
  void ledger.settle(hold, settlement).then(became('settled'));
  if (request.end === 'both') void ledger.release(hold);
}

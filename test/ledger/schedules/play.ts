// The play of one schedule: the real ledger runs through calls, answers, timers and faults in this order, and is
// verified at rest.
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { Chooser, Option } from './choice.ts';
import { clientSteps } from './clients.ts';
import { type Course, excuse, type Fault, type Request, rootOf, type Scenario } from './course.ts';
import { faultsIn } from './faults.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { createForgetfulStore, createSharedDatabase } from './parts.ts';
import { createStage, type Process, type Stage } from './stage.ts';
import { verify } from './verdict.ts';

export interface PlayResult {
  /** Violations as sentences; empty: all is right. */
  readonly wrong: ReadonlyArray<string>;
  /** The steps of the random part. A star marks a deviation from the usual step. */
  readonly story: ReadonlyArray<string>;
}

const START: Millis = Date.UTC(2026, 0, 10);
const START_UP: Millis = 100;
/** The random part continues this long after the last step of a client. */
const AFTERMATH: Millis = 700;
const MAX_CHOICES = 600;
const MAX_EVENTS = 20_000;
/** How many of the calls in flight may be the next step. */
const IN_SIGHT = 6;
const MONTH: Millis = 30 * 86_400_000;
/** Faults after which leases must end, of processes that may sleep for longer than one. */
const LASTING: ReadonlyArray<Fault> = ['die', 'vanish', 'full', 'stop', 'sleep', 'freeze', 'hang', 'lose', 'clock'];

export async function play(scenario: Scenario, chooser: Chooser): Promise<PlayResult> {
  const course = begin(scenario);
  const { stage } = course.shared;
  const calm = (millis: Millis): Promise<void> => runUsual(stage, () => usual(course), millis);
  // Clients wait until the gateways are open.
  await runUsual(stage, () => withoutClients(stage), START_UP);
  course.startedAt = stage.now();
  course.lastStepAt = stage.now();
  const story: string[] = [];
  for (let choices = 0; choices < MAX_CHOICES && stage.now() < course.lastStepAt + AFTERMATH; choices += 1) {
    const chosen = chooser.choose([...usual(course), ...faultsIn(course)]);
    if (chosen === undefined) break;
    story.push(chooser.tape.at(-1) === 0 ? chosen.label : `* ${chosen.label}`);
    chosen.run();
    await stage.settle();
  }
  // After that, only usual steps happen.
  await calm(LASTING.some((fault) => course.faultCounts.has(fault)) ? 60_000 : 5000);
  course.isLast = true;
  await calm(5000);
  return { wrong: await verify(course, calm), story };
}

function begin(scenario: Scenario): Course {
  const stage = createStage(START);
  const owners = new Map<string, Process>();
  const database = createSharedDatabase(stage.now, (epoch) => {
    course.isStale = false;
    const roots = new Map(course.gateways.map((gateway) => [rootOf(gateway), gateway]));
    for (const [root, { name, isDead }] of roots)
      if (isDead || (database.joinedEpochs.get(name) ?? 0) < epoch) excuse(course, root);
  });
  const store = createForgetfulStore(stage.now, (account) => {
    const owner = course.gateways.find((gateway: Process) => gateway === owners.get(account));
    if (owner !== undefined) excuse(course, rootOf(owner));
  });
  let made = 0;
  const nextId = (): string => idAt(stage.now(), made++);
  const shared = { stage, store, database, nextId, owners, metricCounts: new Map() };
  const gateways: Gateway[] = Array.from({ length: scenario.gateways }, (_, at) =>
    startGateway(shared, `gateway ${at}`, { records: [] }),
  );
  const requests = scenario.wishes.map((wish, at): Request => {
    return { ...wish, ...AS_YET, name: `request ${at}`, stage: 'new', size: wish.amount };
  });
  const course: Course = {
    scenario,
    shared,
    requests,
    gateways,
    faultCounts: new Map(),
    isStale: false,
    isLast: false,
    wrong: [],
    excused: new Set(),
    vanished: new Set(),
    lastStepAt: stage.now(),
    startedAt: stage.now(),
    scopes: scenario.limits.map((limit, at) => scopeOf(`scope-${at}`, limit, at === 0 ? scenario.edge : undefined)),
  };
  return course;
}

const AS_YET = {
  gateway: undefined,
  reservation: undefined,
  grown: undefined,
  settledAt: 0,
  isUnguaranteed: false,
  limits: new Map<string, bigint>(),
};

function withoutClients(stage: Stage, clients: () => Option[] = () => []): Option[] {
  const arrivals = stage
    .calls()
    .slice(0, IN_SIGHT)
    .map((call) => ({
      kind: 'call',
      label: call.label,
      run() {
        stage.take(call);
        call.arrive();
      },
    }));
  const due = stage.due();
  const time = due === undefined ? [] : [{ kind: 'time', label: `${due.at - START} ms`, run: due.fire }];
  return [...arrivals, ...clients(), ...time];
}

/** All options, the usual one first: an arrival, else a client's step, else the next timer. */
const usual = (course: Course): Option[] => withoutClients(course.shared.stage, () => clientSteps(course));

async function runUsual(stage: Stage, options: () => Option[], millis: Millis): Promise<void> {
  const until = stage.now() + millis;
  await stage.settle();
  for (let events = 0; events < MAX_EVENTS; events += 1) {
    const [next] = options();
    if (next === undefined || (next.kind === 'time' && (stage.due()?.at ?? 0) > until)) return;
    next.run();
    await stage.settle();
  }
  throw new Error('the schedule never comes to rest');
}

/** A UUIDv7 of that instant. */
function idAt(time: Millis, made: number): string {
  const head = time.toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-${made.toString(16).padStart(12, '0')}`;
}

const scopeOf = (scopeId: string, limit: bigint, edge: Millis | undefined): ScopePolicy => ({
  scopeId,
  kind: 'key',
  name: scopeId,
  blocked: false,
  models: [],
  anchor: edge === undefined ? Date.UTC(2026, 0, 1) : START + START_UP + edge - MONTH,
  budget: { limit: `${limit}`, duration: '30d', alignment: 'Rolling' },
});

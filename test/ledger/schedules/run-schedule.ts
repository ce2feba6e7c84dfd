// The run of one schedule: the real ledger runs through calls, answers, timers and faults in this order, and is
// verified at rest.
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { Chooser, Option } from './choice.ts';
import { clientSteps } from './clients.ts';
import { type Execution, excuse, type Fault, type Request, rootOf, type Scenario } from './execution.ts';
import { faultsIn } from './faults.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { createRestorableStore, createSharedDatabase } from './parts.ts';
import { createSimulation, type Process, type Simulation } from './simulation.ts';
import { verify } from './verify.ts';

export interface ScheduleResult {
  /** Violations as sentences; empty: all is right. */
  readonly wrong: ReadonlyArray<string>;
  /** The steps of the random part. A star marks a deviation from the usual step. */
  readonly steps: ReadonlyArray<string>;
}

const START: Millis = Date.UTC(2026, 0, 10);
const START_UP: Millis = 100;
/** The random part continues this long after the last step of a client. */
const AFTER_LAST_STEP: Millis = 700;
const MAX_CHOICES = 600;
const MAX_EVENTS = 20_000;
/** How many of the calls in flight may be the next step. */
const MAX_NEXT_CALLS = 6;
const MONTH: Millis = 30 * 86_400_000;
/** Faults after which leases must end, of processes that may sleep for longer than one. */
const LASTING: ReadonlyArray<Fault> = ['die', 'vanish', 'full', 'stop', 'sleep', 'freeze', 'hang', 'lose', 'clock'];

export async function runSchedule(scenario: Scenario, chooser: Chooser): Promise<ScheduleResult> {
  const execution = begin(scenario);
  const { simulation } = execution.shared;
  const calm = (millis: Millis): Promise<void> => runUsual(simulation, () => usual(execution), millis);
  // Clients wait until the gateways are open.
  await runUsual(simulation, () => withoutClients(simulation), START_UP);
  execution.startedAt = simulation.now();
  execution.lastStepAt = simulation.now();
  const steps: string[] = [];
  for (
    let choices = 0;
    choices < MAX_CHOICES && simulation.now() < execution.lastStepAt + AFTER_LAST_STEP;
    choices += 1
  ) {
    const chosen = chooser.choose([...usual(execution), ...faultsIn(execution)]);
    if (chosen === undefined) break;
    steps.push(chooser.sequence.at(-1) === 0 ? chosen.label : `* ${chosen.label}`);
    chosen.run();
    await simulation.settle();
  }
  // After that, only usual steps happen.
  await calm(LASTING.some((fault) => execution.faultCounts.has(fault)) ? 60_000 : 5000);
  execution.isLast = true;
  await calm(5000);
  return { wrong: await verify(execution, calm), steps };
}

function begin(scenario: Scenario): Execution {
  const simulation = createSimulation(START);
  const owners = new Map<string, Process>();
  const database = createSharedDatabase(simulation.now, (epoch) => {
    execution.isStale = false;
    const roots = new Map(execution.gateways.map((gateway) => [rootOf(gateway), gateway]));
    for (const [root, { name, isDead }] of roots)
      if (isDead || (database.joinedEpochs.get(name) ?? 0) < epoch) excuse(execution, root);
  });
  const store = createRestorableStore(simulation.now, (account) => {
    const owner = execution.gateways.find((gateway: Process) => gateway === owners.get(account));
    if (owner !== undefined) excuse(execution, rootOf(owner));
  });
  let made = 0;
  const nextId = (): string => idAt(simulation.now(), made++);
  const shared = { simulation, store, database, nextId, owners, metricCounts: new Map() };
  const gateways: Gateway[] = Array.from({ length: scenario.gateways }, (_, at) =>
    startGateway(shared, `gateway ${at}`, { records: [] }),
  );
  const requests = scenario.plannedRequests.map((planned, at): Request => {
    return { ...planned, ...INITIAL, name: `request ${at}`, state: 'new', size: planned.amount };
  });
  const execution: Execution = {
    scenario,
    shared,
    requests,
    gateways,
    spentBeforeJoin: undefined,
    faultCounts: new Map(),
    isStale: false,
    isLast: false,
    wrong: [],
    excused: new Set(),
    vanished: new Set(),
    lastStepAt: simulation.now(),
    startedAt: simulation.now(),
    scopes: scenario.limits.map((limit, at) => ({
      ...scopeOf(`scope-${at}`, limit, at === 0 ? scenario.edge : undefined),
      ...(scenario.joinsAfter !== undefined && at === scenario.limits.length - 1 && { countedFrom: `scope-${at - 1}` }),
    })),
  };
  return execution;
}

const INITIAL = {
  gateway: undefined,
  reservation: undefined,
  grown: undefined,
  settledAt: 0,
  isUnguaranteed: false,
  limits: new Map<string, bigint>(),
};

function withoutClients(simulation: Simulation, clients: () => Option[] = () => []): Option[] {
  const arrivals = simulation
    .calls()
    .slice(0, MAX_NEXT_CALLS)
    .map((call) => ({
      kind: 'call',
      label: call.label,
      run() {
        simulation.take(call);
        call.arrive();
      },
    }));
  const due = simulation.due();
  const time = due === undefined ? [] : [{ kind: 'time', label: `${due.at - START} ms`, run: due.fire }];
  return [...arrivals, ...clients(), ...time];
}

/** All options, the usual one first: an arrival, else a client's step, else the next timer. */
const usual = (execution: Execution): Option[] =>
  withoutClients(execution.shared.simulation, () => clientSteps(execution));

async function runUsual(simulation: Simulation, options: () => Option[], millis: Millis): Promise<void> {
  const until = simulation.now() + millis;
  await simulation.settle();
  for (let events = 0; events < MAX_EVENTS; events += 1) {
    const [next] = options();
    if (next === undefined || (next.kind === 'time' && (simulation.due()?.at ?? 0) > until)) return;
    next.run();
    await simulation.settle();
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

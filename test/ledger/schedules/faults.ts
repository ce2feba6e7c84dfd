// Faults of a schedule: each as often as the scenario allows, on every possible target.
import type { Option } from './choice.ts';
import { type Execution, excuse, type Fault, rootOf } from './execution.ts';
import { type Gateway, type ReplyPart, startGateway } from './gateway.ts';

const FREEZES = [
  ['freeze', 3000],
  ['sleep', 25_000],
] as const;
const HANG = 2500;
const RESTART_AFTER = 200;
/** A process with a full disk is killed then. */
const KILL_AFTER = 60;
const OLDEST_SNAPSHOT = 30;
const REPLY_PARTS: ReadonlyArray<ReplyPart> = ['liveAccounts', 'counters', 'replies', 'endedAccounts'];
/** Clocks are set by so much. */
const CLOCK_CHANGES = [-3_600_000, -3000, 25_000, 3_600_000];

type InjectFault = (fault: Fault, label: string, run: () => void) => Option[];

export function faultsIn(execution: Execution): Option[] {
  const { scenario, faultCounts, gateways } = execution;
  const inject: InjectFault = (fault, label, run) => {
    const count = faultCounts.get(fault) ?? 0;
    if (count >= (scenario.faults[fault] ?? 0)) return [];
    const counted = (): void => {
      faultCounts.set(fault, count + 1);
      run();
    };
    return [{ kind: fault, label, run: counted }];
  };
  const living = gateways.filter(({ isDead }) => !isDead);
  return [
    ...callFaults(execution, inject),
    ...storeFaults(execution, inject),
    ...inject('lower', 'THE FIRST LIMIT FALLS', () => lower(execution)),
    ...living.flatMap((one) => [...processFaults(execution, inject, one), ...operatorFaults(execution, inject, one)]),
  ];
}

function callFaults({ shared: { simulation } }: Execution, inject: InjectFault): Option[] {
  const first = simulation.calls().find(({ target }) => target !== 'disk');
  const lost = inject('lose', `lost: ${first?.label}`, () => {
    if (first === undefined) return;
    simulation.take(first);
    first.drop();
  });
  const hangs = (['store', 'database'] as const).flatMap((target) =>
    inject('hang', `THE ${target.toUpperCase()} HANGS`, () => simulation.hang(target, simulation.now() + HANG)),
  );
  return [...(first === undefined ? [] : lost), ...hangs];
}

function storeFaults(execution: Execution, inject: InjectFault): Option[] {
  const { store, simulation } = execution.shared;
  const wiped = inject('wipe', 'THE STORE IS WIPED', () => {
    simulation.cut('store');
    store.wipe();
    excuseIfRebuilding(execution);
  });
  const maxSteps = (execution.scenario.faults.restore ?? 0) === 0 ? 0 : Math.min(OLDEST_SNAPSHOT, store.steps() - 1);
  const restored = Array.from({ length: Math.max(0, maxSteps) }, (_, at) =>
    inject('restore', `THE STORE COMES BACK AS IT WAS ${at + 1} STEPS AGO`, () => {
      simulation.cut('store');
      store.restore(at + 1);
      excuseIfRebuilding(execution);
      execution.isStale = true;
      for (const request of execution.requests)
        if (request.state === 'asked' || request.state === 'growing') execution.excused.add(request);
    }),
  );
  // Set back, the store's clock stands still for as long (LEDGER 5).
  const set = CLOCK_CHANGES.slice(1).flatMap((by) =>
    inject('clock', `THE CLOCK OF THE STORE IS SET BY ${by} ms`, () => store.set(by)),
  );
  return [...wiped, ...restored.flat(), ...set];
}

/** A store that forgets while it is rebuilt may be opened without those that have joined already. */
function excuseIfRebuilding(execution: Execution): void {
  if (!execution.shared.database.isOpen()) for (const gateway of execution.gateways) excuse(execution, rootOf(gateway));
}

function processFaults(execution: Execution, inject: InjectFault, gateway: Gateway): Option[] {
  const { simulation } = execution.shared;
  const { name } = gateway;
  const freezes = FREEZES.flatMap(([fault, millis]) =>
    inject(fault, `${name} FREEZES FOR ${millis} ms`, () => {
      gateway.isFrozen = true;
      simulation.timerOf(undefined)(millis, () => {
        gateway.isFrozen = false;
      });
    }),
  );
  // Records of earlier processes on the same disk are lost too.
  const lose = (): void => {
    for (const one of execution.gateways) if (rootOf(one) === rootOf(gateway)) execution.vanished.add(one);
  };
  const vanishes = inject('vanish', `${name} VANISHES WITH ITS DISK`, () => {
    lose();
    gateway.folder.records = [];
    die(execution, gateway);
  });
  const fills = inject('full', `THE DISK OF ${name} IS FULL`, () => {
    gateway.isFull = true;
    simulation.timerOf(gateway)(KILL_AFTER, () => {
      lose();
      die(execution, gateway);
    });
  });
  const errors = REPLY_PARTS.flatMap((part) =>
    inject('error', `${name} FAILS AT THE ${part} OF ITS NEXT ANSWER`, () => {
      gateway.failsAt = part;
    }),
  );
  return [
    ...errors,
    ...inject('die', `${name} DIES`, () => die(execution, gateway)),
    ...vanishes,
    ...fills,
    ...(gateway.isFrozen ? [] : freezes),
    ...CLOCK_CHANGES.flatMap((by) =>
      inject('clock', `THE CLOCK OF ${name} IS SET BY ${by} ms`, () => {
        gateway.ahead += by;
      }),
    ),
  ];
}

function operatorFaults(execution: Execution, inject: InjectFault, gateway: Gateway): Option[] {
  const { name, ledger } = gateway;
  const stops = inject('stop', `${name} STOPS`, () => {
    gateway.isStopping = true;
    void ledger.close().then(() => (gateway.isDead ? undefined : die(execution, gateway)));
  });
  const audits = inject('audit', `${name} AUDITS`, () => void ledger.maintain().catch(() => undefined));
  return gateway.isStopping ? [] : [...stops, ...audits];
}

/** The first limit falls to a half; requests bring the new one from now on. */
function lower(execution: Execution): void {
  execution.scopes = execution.scopes.map((scope, at) => {
    if (at > 0 || scope.budget === undefined) return scope;
    return { ...scope, budget: { ...scope.budget, limit: `${BigInt(scope.budget.limit) / 2n}` } };
  });
}

/** Starts a successor soon, on the surviving disk. */
function die({ shared, gateways }: Execution, gateway: Gateway): void {
  const { simulation } = shared;
  simulation.kill(gateway);
  simulation.timerOf(undefined)(RESTART_AFTER, () => {
    gateways.push(startGateway(shared, `${gateway.name}'`, { records: [...gateway.folder.records] }));
  });
}

// Faults of a schedule: each as often as the scenario allows, on every possible target.
import type { Option } from './choice.ts';
import { type Course, excuse, type Fault, rootOf } from './course.ts';
import { type Gateway, type ReplyPart, startGateway } from './gateway.ts';

const FREEZES = [
  ['freeze', 3000],
  ['sleep', 25_000],
] as const;
const HANG = 2500;
const BACK_AFTER = 200;
/** A process with a full disk is killed then. */
const DIES_AFTER = 60;
const OLDEST_SNAPSHOT = 30;
const REPLY_PARTS: ReadonlyArray<ReplyPart> = ['liveAccounts', 'counters', 'replies', 'endedAccounts'];
/** Clocks are set by so much. */
const SETS = [-3_600_000, -3000, 25_000, 3_600_000];

type Strike = (fault: Fault, label: string, run: () => void) => Option[];

export function faultsIn(course: Course): Option[] {
  const { scenario, faultCounts, gateways } = course;
  const strike: Strike = (fault, label, run) => {
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
    ...onTheWay(course, strike),
    ...ofStore(course, strike),
    ...strike('lower', 'THE FIRST LIMIT FALLS', () => lower(course)),
    ...living.flatMap((one) => [...ofGateway(course, strike, one), ...ofOperator(course, strike, one)]),
  ];
}

function onTheWay({ shared: { stage } }: Course, strike: Strike): Option[] {
  const first = stage.calls().find(({ target }) => target !== 'disk');
  const lost = strike('lose', `lost: ${first?.label}`, () => {
    if (first === undefined) return;
    stage.take(first);
    first.drop();
  });
  const hangs = (['store', 'database'] as const).flatMap((target) =>
    strike('hang', `THE ${target.toUpperCase()} HANGS`, () => stage.hang(target, stage.now() + HANG)),
  );
  return [...(first === undefined ? [] : lost), ...hangs];
}

function ofStore(course: Course, strike: Strike): Option[] {
  const { store, stage } = course.shared;
  const wiped = strike('wipe', 'THE STORE IS WIPED', () => {
    stage.cut('store');
    store.wipe();
    forgetAgain(course);
  });
  const maxSteps = (course.scenario.faults.restore ?? 0) === 0 ? 0 : Math.min(OLDEST_SNAPSHOT, store.steps() - 1);
  const restored = Array.from({ length: Math.max(0, maxSteps) }, (_, at) =>
    strike('restore', `THE STORE COMES BACK AS IT WAS ${at + 1} STEPS AGO`, () => {
      stage.cut('store');
      store.restore(at + 1);
      forgetAgain(course);
      course.isStale = true;
      for (const request of course.requests)
        if (request.stage === 'asked' || request.stage === 'growing') course.excused.add(request);
    }),
  );
  // Set back, the store's clock stands still for as long (LEDGER 5).
  const set = SETS.slice(1).flatMap((by) =>
    strike('clock', `THE CLOCK OF THE STORE IS SET BY ${by} ms`, () => store.set(by)),
  );
  return [...wiped, ...restored.flat(), ...set];
}

/** A store that forgets while it is rebuilt may be opened without those that have joined already. */
function forgetAgain(course: Course): void {
  if (!course.shared.database.isOpen()) for (const gateway of course.gateways) excuse(course, rootOf(gateway));
}

function ofGateway(course: Course, strike: Strike, gateway: Gateway): Option[] {
  const { stage } = course.shared;
  const { name } = gateway;
  const freezes = FREEZES.flatMap(([fault, millis]) =>
    strike(fault, `${name} FREEZES FOR ${millis} ms`, () => {
      gateway.isFrozen = true;
      stage.timerOf(undefined)(millis, () => {
        gateway.isFrozen = false;
      });
    }),
  );
  // Records of earlier processes on the same disk are lost too.
  const lose = (): void => {
    for (const one of course.gateways) if (rootOf(one) === rootOf(gateway)) course.vanished.add(one);
  };
  const vanishes = strike('vanish', `${name} VANISHES WITH ITS DISK`, () => {
    lose();
    gateway.folder.records = [];
    die(course, gateway);
  });
  const fills = strike('full', `THE DISK OF ${name} IS FULL`, () => {
    gateway.isFull = true;
    stage.timerOf(gateway)(DIES_AFTER, () => {
      lose();
      die(course, gateway);
    });
  });
  const errors = REPLY_PARTS.flatMap((part) =>
    strike('error', `${name} FAILS AT THE ${part} OF ITS NEXT ANSWER`, () => {
      gateway.failsAt = part;
    }),
  );
  return [
    ...errors,
    ...strike('die', `${name} DIES`, () => die(course, gateway)),
    ...vanishes,
    ...fills,
    ...(gateway.isFrozen ? [] : freezes),
    ...SETS.flatMap((by) =>
      strike('clock', `THE CLOCK OF ${name} IS SET BY ${by} ms`, () => {
        gateway.ahead += by;
      }),
    ),
  ];
}

function ofOperator(course: Course, strike: Strike, gateway: Gateway): Option[] {
  const { name, ledger } = gateway;
  const stops = strike('stop', `${name} STOPS`, () => {
    gateway.isStopping = true;
    void ledger.close().then(() => (gateway.isDead ? undefined : die(course, gateway)));
  });
  const audits = strike('audit', `${name} AUDITS`, () => void ledger.maintain().catch(() => undefined));
  return gateway.isStopping ? [] : [...stops, ...audits];
}

/** The first limit falls to a half; requests bring the new one from now on. */
function lower(course: Course): void {
  course.scopes = course.scopes.map((scope, at) => {
    if (at > 0 || scope.budget === undefined) return scope;
    return { ...scope, budget: { ...scope.budget, limit: `${BigInt(scope.budget.limit) / 2n}` } };
  });
}

/** Starts a successor soon, on the surviving disk. */
function die({ shared, gateways }: Course, gateway: Gateway): void {
  const { stage } = shared;
  stage.kill(gateway);
  stage.timerOf(undefined)(BACK_AFTER, () => {
    gateways.push(startGateway(shared, `${gateway.name}'`, { records: [...gateway.folder.records] }));
  });
}

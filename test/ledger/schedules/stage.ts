// The stage: calls on their way, answers on their way back, and timers of live processes, each happening when it is chosen.
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type Whom = 'store' | 'database' | 'disk';

export interface Process {
  readonly name: string;
  isDead: boolean;
  /** It does nothing and hears nothing until it is thawed. */
  isFrozen: boolean;
}

/** Something on its way to a part, or back. */
export interface Call {
  readonly by: Process;
  readonly whom: Whom;
  readonly label: string;
  readonly isBack: boolean;
  arrive(): void;
  /** It does not arrive, and whoever waits is told that the connection broke. */
  drop(): void;
}

interface Due {
  readonly at: Millis;
  readonly by: Process | undefined;
  fire(): void;
}

export interface Stage {
  now(): Millis;
  through<T>(by: Process, whom: Whom, label: string, work: () => Promise<T>): Promise<T>;
  /** Undefined: nobody's, it fires whoever is dead. */
  timerOf(by: Process | undefined): Timer;
  /** What can arrive, oldest first. */
  calls(): ReadonlyArray<Call>;
  take(call: Call): void;
  /** The next timer, and the time with it. */
  due(): { readonly at: Millis; fire(): void } | undefined;
  kill(process: Process): void;
  /** All connections to it break. */
  cut(whom: Whom): void;
  /** It is silent until then, and does late what it was asked. */
  silence(whom: Whom, until: Millis): void;
  /** Every promise that can go on has gone on. */
  settle(): Promise<void>;
}

const never = new Promise<never>(() => undefined);

export function createStage(start: Millis): Stage {
  let now = start;
  let calls: Call[] = [];
  const timers = new Set<Due>();
  const silent = new Map<Whom, Millis>();

  const canArrive = ({ by, whom, isBack }: Call): boolean =>
    isBack ? !by.isDead && !by.isFrozen : now >= (silent.get(whom) ?? 0);

  const first = (): Due | undefined => {
    let found: Due | undefined;
    for (const due of timers) {
      if (due.by?.isDead === true) timers.delete(due);
      else if (due.by?.isFrozen !== true && due.at < (found?.at ?? Number.POSITIVE_INFINITY)) found = due;
    }
    return found;
  };

  return {
    now: () => now,
    through(by, whom, label, work) {
      if (by.isDead) return never;
      return new Promise((resolve, reject) => {
        const back = (arrive: () => void): void => {
          if (by.isDead) return;
          const drop = (): void => reject(new Error('the answer was lost'));
          calls.push({ by, whom, label: `${label}: ${by.name} hears`, isBack: true, arrive, drop });
        };
        const arrive = (): void => {
          work().then(
            (value) => back(() => resolve(value)),
            (error) => back(() => reject(error)),
          );
        };
        const drop = (): void => back(() => reject(new Error('nobody was there')));
        calls.push({ by, whom, label: `${label} by ${by.name}`, isBack: false, arrive, drop });
      });
    },
    timerOf: (by) => (millis, callback) => {
      const due = {
        ...{ at: now + Math.max(0, millis), by },
        fire() {
          timers.delete(due);
          now = Math.max(now, due.at);
          callback();
        },
      };
      timers.add(due);
      return () => timers.delete(due);
    },
    calls: () => calls.filter(canArrive),
    take(call) {
      calls = calls.filter((each) => each !== call);
    },
    due: first,
    kill(process) {
      process.isDead = true;
      // What it has sent may still be done.
      calls = calls.filter(({ by, isBack, whom }) => by !== process || (!isBack && whom !== 'disk'));
    },
    cut(whom) {
      const broken = calls.filter((call) => call.whom === whom);
      calls = calls.filter((call) => call.whom !== whom);
      for (const { drop, by, isBack, arrive: _, ...rest } of broken) {
        if (!isBack) drop();
        else calls.push({ ...rest, by, isBack, drop, arrive: drop });
      }
    },
    silence(whom, until) {
      silent.set(whom, until);
    },
    settle: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

// The simulation: calls, replies and timers of live processes. Each happens when a schedule chooses it.
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type Target = 'store' | 'database' | 'disk';

export interface Process {
  readonly name: string;
  isDead: boolean;
  /** Whether it is frozen: it neither acts nor receives until it is thawed. */
  isFrozen: boolean;
}

/** A call to a part, or the reply to one. */
export interface Call {
  readonly by: Process;
  readonly target: Target;
  readonly label: string;
  readonly isReply: boolean;
  arrive(): void;
  /** Loses the call or the reply: the caller's connection breaks. */
  drop(): void;
}

interface Due {
  readonly at: Millis;
  readonly by: Process | undefined;
  fire(): void;
}

export interface Simulation {
  now(): Millis;
  through<T>(by: Process, target: Target, label: string, work: () => Promise<T>): Promise<T>;
  /** The process of a timer; undefined: it fires whichever process is dead. */
  timerOf(by: Process | undefined): Timer;
  /** Calls and replies that can arrive, oldest first. */
  calls(): ReadonlyArray<Call>;
  take(call: Call): void;
  /** Fires the next timer, and advances the clock to it. */
  due(): { readonly at: Millis; fire(): void } | undefined;
  kill(process: Process): void;
  /** Breaks all connections to the part. */
  cut(target: Target): void;
  /** Makes the part hang until then; it runs its calls late. */
  hang(target: Target, until: Millis): void;
  /** Resolves when every promise that can proceed has done so. */
  settle(): Promise<void>;
}

const never = new Promise<never>(() => undefined);

export function createSimulation(start: Millis): Simulation {
  let now = start;
  let calls: Call[] = [];
  const timers = new Set<Due>();
  const silent = new Map<Target, Millis>();

  const canArrive = ({ by, target, isReply }: Call): boolean =>
    isReply ? !by.isDead && !by.isFrozen : now >= (silent.get(target) ?? 0);

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
    through(by, target, label, work) {
      if (by.isDead) return never;
      return new Promise((resolve, reject) => {
        const back = (arrive: () => void): void => {
          if (by.isDead) return;
          const drop = (): void => reject(new Error('the reply was lost'));
          calls.push({ by, target, label: `${label}: ${by.name} hears`, isReply: true, arrive, drop });
        };
        const arrive = (): void => {
          work().then(
            (value) => back(() => resolve(value)),
            (error) => back(() => reject(error)),
          );
        };
        const drop = (): void => back(() => reject(new Error('connection refused')));
        calls.push({ by, target, label: `${label} by ${by.name}`, isReply: false, arrive, drop });
      });
    },
    timerOf: (by) => (millis, callback) => {
      const due = {
        at: now + Math.max(0, millis),
        by,
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
      // Calls that it has sent may still run.
      calls = calls.filter(({ by, isReply, target }) => by !== process || (!isReply && target !== 'disk'));
    },
    cut(target) {
      const broken = calls.filter((call) => call.target === target);
      calls = calls.filter((call) => call.target !== target);
      for (const { drop, by, isReply, arrive: _, ...rest } of broken) {
        if (!isReply) drop();
        else calls.push({ ...rest, by, isReply, drop, arrive: drop });
      }
    },
    hang(target, until) {
      silent.set(target, until);
    },
    settle: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

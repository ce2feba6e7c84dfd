// Processes that share a store which forgets, each on its own outbox folder, on a clock that the test moves.
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createMemoryEpochs } from '../../../test/doubles/epochs.ts';
import type { Hold, HoldRefusal } from '../ports/ledger.ts';
import type { Nano } from '../ports/money.ts';
import type { Result } from '../result.ts';
import type { StartableLedger } from './ledger.ts';
import { createScene, heldOf, IMMORTAL, type Process, requestOf, scopeOf } from './scene.promises.ts';

export const key = scopeOf('key', 100n);

export function createForgetfulScene() {
  const scene = createScene();
  const wipe = (): void => {
    scene.store.part = createMemoryStore({ ...scene.time, epoch: 0 });
  };
  scene.epochs = { part: createMemoryEpochs(scene.time), behaviour: 'up' };
  wipe();

  /** Advances the clock until the promise has settled; returns how long that took. */
  async function ended<T>(promise: Promise<T>): Promise<{ readonly value: T; readonly millis: number }> {
    const began = scene.time.clock.now();
    let done: { value: T; millis: number } | undefined;
    void promise.then((value) => {
      done = { value, millis: scene.time.clock.now() - began };
    });
    for (let waited = 0; done === undefined && waited < 10_000; waited += 5) await scene.time.advance(5);
    if (done === undefined) throw new Error('the promise did not settle in 10 s');
    return done;
  }

  async function start(process: Process = IMMORTAL): Promise<StartableLedger> {
    const ledger = scene.process(process, { records: [] });
    await ended(ledger.start());
    return ledger;
  }

  const tryHold = async (ledger: StartableLedger, amount: Nano) => {
    const { value, millis } = await ended(ledger.hold(requestOf(amount, key)));
    return { value, outcome: outcome(value), millis };
  };
  const take = async (ledger: StartableLedger, amount: Nano): Promise<Hold> =>
    heldOf((await tryHold(ledger, amount)).value);
  const spent = async (ledger: StartableLedger) => (await ended(ledger.spend([key]))).value;
  const rebuilds = (): number => scene.counted.get('gateway_operator_ledger_rebuilds_total') ?? 0;
  return { scene, wipe, ended, start, tryHold, take, spent, rebuilds };
}

/** `held`, or the reason of the refusal. */
export const outcome = ({ ok, ...rest }: Result<Hold, HoldRefusal>): string => {
  if (ok) return 'held';
  return 'failure' in rest ? (rest.failure as HoldRefusal).reason : '';
};

/** A process that the test can freeze at any step. */
export function freezable(): Process & { freeze(): void; thaw(): void } {
  let frozen = false;
  return {
    ...IMMORTAL,
    isFrozen: () => frozen,
    freeze: () => {
      frozen = true;
    },
    thaw: () => {
      frozen = false;
    },
  };
}

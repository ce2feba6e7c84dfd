// Processes that share a store which forgets, each on a folder of its own, in a time that the test lets pass.

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
  scene.epochs = { part: createMemoryEpochs(scene.time), mood: 'up' };
  wipe();

  /** Time goes on until the promise has come to its end; answers how long that took. */
  async function ended<T>(promise: Promise<T>): Promise<{ readonly value: T; readonly millis: number }> {
    const began = scene.time.clock.now();
    let done: { value: T; millis: number } | undefined;
    void promise.then((value) => {
      done = { value, millis: scene.time.clock.now() - began };
    });
    for (let waited = 0; done === undefined && waited < 10_000; waited += 5) await scene.time.advance(5);
    if (done === undefined) throw new Error('nothing came in 10 s');
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

/** `held`, or why not. */
export const outcome = ({ ok, ...rest }: Result<Hold, HoldRefusal>): string => {
  if (ok) return 'held';
  return 'failure' in rest ? (rest.failure as HoldRefusal).reason : '';
};

/** A process that can be stopped where it stands. */
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

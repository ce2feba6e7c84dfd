// A run of the stack: options, state folder, start, sample, until the interrupt.
import { rmSync } from 'node:fs';
import { untilAborted } from '../../../functions/core/concurrency/timeout.ts';
import { validateCluster } from './cluster/cluster.ts';
import { rejectInstalled } from './cluster/installation.ts';
import { HELP, readOptions } from './options.ts';
import { describeFirstCall, describeReady } from './ready.ts';
import { runSample } from './sample/sample.ts';
import { startStack } from './stack.ts';
import { createProgress, type Start } from './start.ts';
import { openState, writeWhole } from './state/state.ts';

/** Returns the exit code. */
export async function run(interrupted: AbortSignal): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  validateCluster(options);
  const progress = createProgress();
  if (!interrupted.aborted) {
    try {
      await untilAborted(interrupted, rejectInstalled(options));
      const state = await openState(options.state, options.reset);
      await serve({ options, state, progress, interrupted }).finally(state.release);
    } catch (error) {
      if (error !== interrupted.reason) throw error;
    }
  }
  progress.say('stopped');
  return 0;
}

/** Serves until an interrupt or a failure. Throws the failure after all started parts have stopped. */
async function serve(start: Start): Promise<never> {
  const { options, state, progress, interrupted } = start;
  const stack = await startStack(start);
  const endpoints = state.path('endpoints.json');
  try {
    const call = options.empty ? undefined : await untilAborted(interrupted, runSample(stack, state, progress));
    // A call ends with a resync of its own.
    if (call === undefined) await untilAborted(interrupted, stack.resync());
    writeWhole(endpoints, `${JSON.stringify(stack.endpoints, null, 2)}\n`);
    if (call !== undefined) progress.say(describeFirstCall(call));
    progress.say(describeReady(stack.endpoints, options));
    return await untilAborted(interrupted, new Promise<never>(() => undefined));
  } finally {
    rmSync(endpoints, { force: true });
    await stack.stop();
  }
}

// `npm start`: the whole gateway operator on this machine, in the foreground, until Ctrl-C.
import { rmSync } from 'node:fs';
import { reasonAndCausesOf } from '../../functions/core/reason.ts';
import { validateCluster } from './cluster/cluster.ts';
import { HELP, readOptions, UsageError } from './options.ts';
import { describeFirstCall, describeReady } from './ready.ts';
import { runSample } from './sample/sample.ts';
import { startStack } from './stack.ts';
import { createProgress, type Start, unless } from './start.ts';
import { openState, writeWhole } from './state/state.ts';

/** Answers the exit code. */
async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  validateCluster(options);
  const progress = createProgress((text) => process.stdout.write(text), Date.now);
  const interrupted = onInterrupt(() => progress.say('\nstopping …'));
  const state = await openState(options.state, options.reset);
  try {
    await run({ options, state, progress, interrupted });
  } catch (error) {
    if (error !== interrupted.reason) throw error;
  } finally {
    state.release();
  }
  progress.say('stopped');
  return 0;
}

/** Serves until an interrupt or a failure, which this throws when everything that was started is stopped. */
async function run(start: Start): Promise<never> {
  const { options, state, progress, interrupted } = start;
  const stack = await startStack(start);
  const endpoints = state.path('endpoints.json');
  try {
    const call = options.empty ? undefined : await unless(interrupted, runSample(stack, state, progress));
    // A call ends with a sweep of its own.
    if (call === undefined) await unless(interrupted, stack.sweep());
    writeWhole(endpoints, `${JSON.stringify(stack.endpoints, null, 2)}\n`);
    if (call !== undefined) progress.say(describeFirstCall(call));
    progress.say(describeReady(stack.endpoints, options));
    return await unless(interrupted, new Promise<never>(() => undefined));
  } finally {
    rmSync(endpoints, { force: true });
    await stack.stop();
  }
}

/** Milliseconds within which a second SIGINT is the echo of the first: npm forwards the terminal's to its child once more. */
const ECHO = 500;

/** Aborts at the first SIGINT or SIGTERM, after `onFirst`. A second SIGINT ends the process immediately: a restart loses nothing. */
function onInterrupt(onFirst: () => void): AbortSignal {
  const controller = new AbortController();
  let first = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (first === 0) {
        first = Date.now();
        onFirst();
        controller.abort();
      } else if (signal === 'SIGINT' && Date.now() - first > ECHO) process.exit(130);
    });
  }
  return controller.signal;
}

try {
  process.exit(await main());
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
  process.stderr.write(`The stack did not start: ${reasonAndCausesOf(error)}\n`);
  process.exit(1);
}

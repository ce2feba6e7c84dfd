// `npm start`: the whole gateway operator on this machine, in the foreground, until Ctrl-C.
import { rmSync } from 'node:fs';
import { reasonAndCausesOf, reasonOf } from '#core/reason.ts';
import { validateCluster } from './cluster/cluster.ts';
import { put, readDocuments, renderSample } from './cluster/manifests.ts';
import { HELP, type Options, readOptions, UsageError } from './options.ts';
import { createProgress, type Progress } from './progress.ts';
import { describeFirstCall, describeReady } from './ready.ts';
import { type FirstCall, makeFirstCall, waitForKey } from './sample/first-call.ts';
import { withLastApplied } from './sample/last-applied.ts';
import { type Stack, startStack } from './stack.ts';
import { unless } from './start.ts';
import { openState, type State, writeWhole } from './state/state.ts';

/** Answers the exit code. */
async function main(): Promise<number> {
  const asked = readOptions(process.argv.slice(2));
  if (asked.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { options } = asked;
  validateCluster(options);
  const progress = createProgress((text) => process.stdout.write(text), Date.now);
  const interrupted = onInterrupt(() => progress.say('\nstopping …'));
  const state = await openState(options.state, options.reset);
  try {
    await run(options, state, progress, interrupted);
  } catch (error) {
    if (!interrupted.aborted) throw error;
  } finally {
    state.release();
  }
  progress.say('stopped');
  return 0;
}

/** Returns, or throws, after an interrupt: everything that was started is stopped then. */
async function run(options: Options, state: State, progress: Progress, interrupted: AbortSignal): Promise<void> {
  const stack = await startStack(options, state, progress, interrupted);
  const endpoints = state.path('endpoints.json');
  try {
    const call = options.empty ? undefined : await unless(interrupted, runSample(stack, state, progress));
    await unless(interrupted, stack.sweep());
    writeWhole(endpoints, `${JSON.stringify(stack.endpoints, null, 2)}\n`);
    if (call !== undefined) progress.say(describeFirstCall(call));
    progress.say(describeReady(stack.endpoints, options));
    await new Promise((resolve) => interrupted.addEventListener('abort', resolve, { once: true }));
  } finally {
    rmSync(endpoints, { force: true });
    await stack.stop();
  }
}

/** Applies the sample and pays one real call with its key. What people changed in it since stays as they made it. */
async function runSample(stack: Stack, state: State, progress: Progress): Promise<FirstCall | undefined> {
  const { database, upstream, gateway } = stack.endpoints;
  const text = renderSample({ database, upstream, upstreamKey: state.remembered.upstreamKey });
  writeWhole(state.path('sample.yaml'), text);
  for (const object of readDocuments(text)) await put(stack.cluster, withLastApplied(object), object.kind === 'Secret');
  progress.step('sample      applied; waiting for its key');
  const deps = { cluster: stack.cluster, sweep: stack.sweep };
  const key = await waitForKey(deps, 20_000);
  if (!key.ok) {
    progress.say(`        the sample's key does not work: ${key.failure}`);
    return undefined;
  }
  progress.step('sample      its key works; calling the gateway with it');
  return makeFirstCall(deps, key.value, `${gateway}/default/sample`).catch((error: unknown) => {
    progress.say(`        the sample's call did not succeed: ${reasonOf(error)}`);
    return undefined;
  });
}

/** A person who presses Ctrl-C again is not that fast. npm passes on a second SIGINT for the terminal's one. */
const ECHO = 500;

/** Aborts at the first SIGINT or SIGTERM, which `onFirst` tells. A second SIGINT ends the process immediately (a restart loses nothing). */
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

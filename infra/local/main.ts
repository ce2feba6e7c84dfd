// `npm start`: the whole gateway operator on this machine, in the foreground, until Ctrl-C.
import { rmSync } from 'node:fs';
import { reasonAndCausesOf, reasonOf } from '#core/reason.ts';
import { judgeCluster } from './cluster/cluster.ts';
import { put, readDocuments, renderSample } from './cluster/manifests.ts';
import { watchFolder } from './folder-watch.ts';
import { HELP, readOptions, UsageError } from './options.ts';
import { createProgress, type Progress } from './progress.ts';
import { describeFirstCall, describeReady } from './ready.ts';
import { type FirstCall, makeFirstCall, waitForKey } from './sample/first-call.ts';
import { withLastApplied } from './sample/last-applied.ts';
import { type Stack, startStack } from './stack.ts';
import { openState, type State, writeWhole } from './state/state.ts';

/** Answers the exit code. */
async function main(): Promise<number> {
  const asked = readOptions(process.argv.slice(2));
  if (asked.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { options } = asked;
  judgeCluster(options);
  const progress = createProgress((text) => process.stdout.write(text), Date.now);
  const interrupted = onSignal();
  const state = await openState(options.state, options.reset);
  const watch = watchFolder(state.folder);
  const stack = await startStack(options, state, progress);
  let isGone = false;
  try {
    const call = options.empty ? undefined : await runSample(stack, state, progress);
    await stack.sweep();
    writeWhole(state.path('endpoints.json'), `${JSON.stringify(stack.endpoints, null, 2)}\n`);
    if (call !== undefined) progress.say(describeFirstCall(call));
    progress.say(describeReady(stack.endpoints, options));
    isGone = await Promise.race([interrupted.then(() => false), watch.gone.then(() => true)]);
    if (isGone) process.stderr.write(`\n${wordsOfLoss(state.folder)}\n`);
  } finally {
    watch.stop();
    progress.say('\nstopping …');
    // Of a folder that was replaced nothing is ours.
    if (!isGone) rmSync(state.path('endpoints.json'), { force: true });
    await stack.stop();
    if (!isGone) state.release();
    progress.say('stopped');
  }
  return isGone ? 1 : 0;
}

/** What the stack kept cannot be had back: a person is told, and a script sees it by the exit code. */
const wordsOfLoss = (folder: string) =>
  `${folder} was removed, emptied or replaced while the stack ran on it, and what it kept there is gone: the stack ends. \`npm start\` begins anew, on a folder that is not there or is empty.`;

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

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once (a restart loses nothing). */
function onSignal(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (asked && signal === 'SIGINT') process.exit(130);
        asked = true;
        resolve();
      });
    }
  });
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

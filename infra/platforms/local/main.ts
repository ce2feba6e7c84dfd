// `npm start`: the whole gateway operator on this machine, in the foreground, until Ctrl-C.
import { reasonAndCausesOf } from '../../../functions/core/failure/error-text.ts';
import { UsageError } from './options.ts';

/**
 * Milliseconds within which a second SIGINT is a copy of the first: npm forwards the signal of the terminal to its
 * child, which has it already.
 */
const ECHO = 500;

/**
 * Aborts at the first SIGINT or SIGTERM, and prints that. A second SIGINT ends the process immediately: a restart loses
 * nothing.
 */
function onInterrupt(): AbortSignal {
  const controller = new AbortController();
  let first = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (first === 0) {
        first = Date.now();
        process.stdout.write('\nstopping …\n');
        controller.abort();
      } else if (signal === 'SIGINT' && Date.now() - first > ECHO) process.exit(130);
    });
  }
  return controller.signal;
}

const interrupted = onInterrupt();
try {
  // The stack's modules take a second to load: an interrupt meanwhile is handled already.
  const { run } = await import('./run.ts');
  // Node handles no signals while it loads modules: those that came meanwhile are handled now.
  await new Promise(setImmediate);
  process.exit(await run(interrupted));
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
  process.stderr.write(`The stack did not start: ${reasonAndCausesOf(error)}\n`);
  process.exit(1);
}

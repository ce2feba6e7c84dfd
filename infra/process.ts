// How does one function run as a Node process: start, serve, stop at SIGTERM?

import { createLog, type LogLevel } from '#adapters/log.ts';
import type { Log } from '#core/ports/clock.ts';
import { type Served, type ServeOptions, serve } from './serve.ts';

/** Kubernetes kills 30 s after SIGTERM: streams get most of that. */
const GRACE = 20_000;

export function processLog(name: string, level: LogLevel): Log {
  return createLog({ write: (line) => process.stdout.write(line), fields: { function: name }, level });
}

export interface Run {
  readonly name: string;
  readonly log: Log;
  readonly server: ServeOptions;
  /** After the last request ended. */
  readonly close: () => Promise<void>;
}

/** Serves until SIGTERM or SIGINT, then lets requests end, closes and exits with 0. */
export async function runServer({ log, server, close }: Run): Promise<Served> {
  const served = await serve(server);
  log.info('listening', { url: served.url });
  const stop = async () => {
    await served.close(GRACE);
    await close();
    log.info('stopped');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
  return served;
}

/** Runs the entry; what stops it from starting is one line on stderr and exit code 1. */
export function main(start: () => Promise<unknown>): void {
  start().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  });
}

// How does one function run as a Node process: start, serve, stop at SIGTERM?
import { createLines } from '#adapters/lines.ts';
import { createLog, type LogLevel } from '#adapters/log.ts';
import type { Log, Metrics } from '#core/ports/clock.ts';
import { reasonAndCausesOf } from '#core/reason.ts';
import { metricsOnly } from './metrics.ts';
import { type Served, type ServeOptions, serve } from './serve.ts';

/** Kubernetes kills 30 s after SIGTERM, of which the Pod waits 5 first: streams get most of the rest. */
const GRACE = 20_000;

/** Everything that the process says on stdout, in its order. */
const lines = createLines((text) => process.stdout.write(text));
process.on('exit', lines.flush);

export const print = (line: string): void => lines.add(`${line}\n`);

export function processLog(name: string, level: LogLevel): Log {
  return createLog({ write: lines.add, fields: { function: name }, level });
}

export interface Run {
  readonly log: Log;
  readonly server: ServeOptions;
  /** Told on this port, which no Service has. */
  readonly metrics: Pick<Metrics, 'render'> & { readonly port: number };
  /** After the last request ended. */
  readonly close: () => Promise<void>;
}

/** Serves until SIGTERM or SIGINT, then lets requests end, closes and exits with 0. A second signal ends it at once. */
export async function runServer({ log, server, metrics, close }: Run): Promise<Served> {
  const scraped = await serve({ fetch: metricsOnly(metrics), port: metrics.port, host: server.host });
  const served = await serve(server);
  log.info('listening', { metrics: scraped.url, url: served.url });
  let stopping = false;
  const stop = async () => {
    if (stopping) process.exit(1);
    stopping = true;
    await served.close(GRACE);
    await close();
    await scraped.close(0);
    log.info('stopped');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop().catch(fail));
  return served;
}

/** Runs the entry; what stops it from starting is said on stderr, with exit code 1. */
export function main(start: () => Promise<unknown>): void {
  start().catch(fail);
}

function fail(error: unknown): void {
  process.stderr.write(`${reasonAndCausesOf(error)}\n`);
  process.exit(1);
}

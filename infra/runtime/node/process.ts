// One function as a Node process: started, served, stopped at SIGTERM.

import { createLog, type LogLevel } from '#adapters/telemetry/log.ts';
import { createLines } from '#adapters/telemetry/log-output.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Log } from '#core/ports/telemetry.ts';
import type { GatewayEnvironment, TracesEnvironment } from '../config/environments.ts';
import { metricsOnly } from './metrics.ts';
import { nodeDependencies } from './platform.ts';
import { type Handler, type RunningServer, type ServeOptions, serve } from './serve.ts';
import { openTraces } from './traces.ts';

/**
 * The milliseconds of a stop, all parts together. Kubernetes kills a gateway 30 s after SIGTERM: its Pod has 35 s, and
 * waits 5 before. In the first of them clients that use their connections get the reply that asks them to close.
 */
const STOP = { drain: 1_000, requests: 18_000, all: 29_000 };

/** The maximum number of connections for metrics and probes. */
const SCRAPING = 100;
/**
 * Connections of API servers and triggers: each takes up to 80 KiB (half a request head of 15 KB over TLS), all
 * together a sixth of the admission webhook's memory.
 */
export const MAX_CONNECTIONS = 512;

/** Lines of the process on stdout, in order. */
const lines = createLines((text) => process.stdout.write(text));
process.on('exit', lines.flush);

export const print = (line: string): void => lines.add(`${line}\n`);

export function processLog(name: string, level: LogLevel): Log {
  return createLog({ write: lines.add, fields: { function: name }, level });
}

type ServerEnvironment = Pick<GatewayEnvironment, 'PORT' | 'HOST' | 'METRICS_PORT' | 'LOG_LEVEL'> & TracesEnvironment;

/** The parts of a function's process, and `run`, which serves the function. */
export async function openFunction(name: Parameters<typeof openTraces>[1], environment: ServerEnvironment) {
  const { PORT: port, HOST: host, METRICS_PORT, LOG_LEVEL } = environment;
  const ownLog = processLog(name, LOG_LEVEL);
  const traces = await openTraces(environment, name, ownLog);
  const log = traces.logged(ownLog);
  const metrics = createMetrics();

  /**
   * Serves until SIGTERM or SIGINT, then lets requests end, closes and exits with 0. A second signal, or a stop that
   * takes too long, ends it immediately with 1. `close` gets the milliseconds that it has. Metrics and probes are
   * served on a port that no Service has.
   */
  async function run(
    handler: Handler & Pick<ServeOptions, 'tls' | 'maxConnections' | 'listeners'>,
    close: (millis: number) => Promise<unknown>,
    { drain, requests, all } = STOP,
  ): Promise<RunningServer> {
    const served = await serve({ ...handler, port, host, traces });
    const scraped = await serve({
      handle: metricsOnly(metrics, handler),
      port: METRICS_PORT,
      host,
      maxConnections: SCRAPING,
      closesOldest: true,
    });
    log.info('listening', { metrics: scraped.url, url: served.url });
    let stopping = false;
    const stop = async () => {
      if (stopping) process.exit(1);
      stopping = true;
      const end = performance.now() + all;
      setTimeout(() => {
        log.error(`the stop did not end within ${all} ms`);
        process.exit(1);
      }, all);
      // Steps run in the opposite order of their lines here, all of them whatever fails.
      const steps = new AsyncDisposableStack();
      steps.defer(() => scraped.close(0));
      steps.defer(traces.close);
      steps.defer(async () => void (await close(end - performance.now())));
      steps.defer(() => served.close(requests, drain));
      await steps.disposeAsync();
      log.info('stopped');
      process.exit(0);
    };
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop().catch(fail));
    return served;
  }
  return { ...nodeDependencies(), log, metrics, traces, run };
}

/** Runs the entry; a failure to start is printed on stderr, with exit code 1. */
export function main(start: () => Promise<unknown>): void {
  start().catch(fail);
}

function fail(error: unknown): void {
  process.stderr.write(`${reasonAndCausesOf(error)}\n`);
  process.exit(1);
}

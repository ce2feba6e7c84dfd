// A start of the stack: its parts, the context of its steps, and its end by an interrupt.
import type { Log } from '../../../functions/core/ports/telemetry.ts';
import type { Options } from './options.ts';
import type { State } from './state/state.ts';

export interface Start {
  readonly options: Options;
  readonly state: State;
  readonly progress: Progress;
  /** Aborts at Ctrl-C or SIGTERM. */
  readonly interrupted: AbortSignal;
}

export interface StartContext extends Pick<Start, 'options' | 'state'> {
  readonly log: Log;
  /** Registers how to undo a step: called when the stack stops or a later step fails, in the opposite order. */
  readonly onStop: (stop: () => Promise<unknown>) => void;
}

export type Progress = ReturnType<typeof createProgress>;

/** One line per step, with the seconds since the start. */
export function createProgress() {
  const start = Date.now();
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const step = (text: string): void => say(`${`${((Date.now() - start) / 1000).toFixed(1)}s`.padStart(6)}  ${text}`);
  return { say, step };
}

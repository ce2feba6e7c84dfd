// The stack's log file, written beside what the process serves.
import { appendFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { reasonOf } from '#core/reason.ts';

export interface LogFile {
  /** Takes one line, its end included. */
  write(line: string): void;
  /** Returns when everything is written. */
  close(): Promise<void>;
}

/** Appends to `file`: what comes while it writes goes out in one piece after. A log that cannot be written (a full disk) goes to stderr and stops nothing. */
export function openLogFile(file: string): LogFile {
  let waiting = '';
  let writing: Promise<void> | undefined;
  let isReported = false;
  const take = () => {
    const text = waiting;
    waiting = '';
    return text;
  };
  const flush = async () => {
    for (let text = take(); text !== ''; text = take()) {
      try {
        await appendFile(file, text);
        isReported = false;
      } catch (error) {
        if (!isReported) process.stderr.write(`${file} cannot be written: ${reasonOf(error)}. The log follows here.\n`);
        isReported = true;
        process.stderr.write(text);
      }
    }
    writing = undefined;
  };
  // A second Ctrl-C waits for nothing.
  process.once('exit', () => {
    if (waiting !== '') appendFileSync(file, take());
  });
  return {
    write: (line) => {
      waiting += line;
      writing ??= flush();
    },
    close: async () => writing,
  };
}

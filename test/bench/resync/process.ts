// The reconcile function as in a container: its own process, within its limits.
import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { next } from '../pinned.ts';
import type { Swept } from './child.ts';

/** The flags of install.yaml, for a container with a limit of 512 MiB. */
export const LIMITS = (process.env.BENCH_NODE_OPTIONS ?? '--max-old-space-size=640 --max-semi-space-size=16').split(
  ' ',
);

export interface Process {
  /** Starts a fresh process. */
  restart(): Promise<void>;
  resync(): Promise<Swept>;
  end(): void;
}

interface ApiServer {
  readonly url: string;
  readonly token: string;
  /** The CA in PEM; empty: no TLS. */
  readonly ca: string;
}

/** Writes the files of a service account into `folder`. */
export function createProcess({ url, token, ca }: ApiServer, folder: string): Process {
  writeFileSync(join(folder, 'token'), token);
  writeFileSync(join(folder, 'ca.crt'), ca);
  const start = () => fork(join(import.meta.dirname, 'child.ts'), [url, folder], { execArgv: LIMITS });
  let child: ReturnType<typeof start> | undefined;
  return {
    restart: async () => {
      child?.kill();
      child = start();
      await next(child);
    },
    resync: async () => {
      child?.send('resync');
      return next<Swept>(child as ReturnType<typeof start>);
    },
    end: () => child?.kill(),
  };
}

// Options of `npm start`, read from the command line.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { reasonOf } from '../../../functions/core/failure/error-text.ts';

export interface Options {
  /** The absolute path of the folder with all state of the stack. */
  readonly state: string;
  readonly reset: boolean;
  /** 0: any free port. Absent: the port of the last start, else 4000. */
  readonly port?: number;
  readonly empty: boolean;
  readonly cluster: { readonly type: 'embedded' | 'envtest' } | { readonly type: 'kubeconfig'; readonly path: string };
  /** Absent: the embedded PostgreSQL. */
  readonly database?: URL;
  /** Seconds between two resyncs. */
  readonly schedule: number;
}

export const HELP = `npm start -- [options]: the whole gateway operator on this machine, until Ctrl-C

  --state DIR        the folder of all state (default .gateway-operator)
  --reset            empty DIR first
  --port N           the gateway's port (default: that of the last start, or 4000; 0: any free port; a taken port: the next free one)
  --empty            do not apply the sample
  --cluster WHICH    embedded (default): our own small API server, for trying and testing only
                     envtest: a real kube-apiserver and etcd from the folder that KUBEBUILDER_ASSETS names
                     PATH: the cluster of this kubeconfig file, on this machine and without an installed operator;
                     npm start applies our CRDs and webhooks to it, and deletes the webhooks when it stops
  --database WHICH   embedded (default): a PostgreSQL that npm start runs, or postgres://user:password@host:port/dbname,
                     where the sample's instance keeps policies and ledger; the cluster's objects are not in it
  --schedule SECONDS time between resyncs (default 60); changes of gateway resources need no resync
  --help             print this text
`;

/** An error on the command line, or in a file that it names. Only the message is printed, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Options from the arguments after `--`; undefined: help was requested. Throws UsageError with one sentence. */
export function readOptions(args: ReadonlyArray<string>): Options | undefined {
  const { values } = parse(args);
  if (values.help) return undefined;
  const database = databaseOf(values.database);
  return {
    state: resolve(values.state),
    reset: values.reset,
    ...(values.port === undefined ? {} : { port: integer('--port', values.port, 0, 65_535) }),
    empty: values.empty,
    cluster: clusterOf(values.cluster),
    ...(database === undefined ? {} : { database }),
    schedule: integer('--schedule', values.schedule, 1, 86_400),
  };
}

function parse(args: ReadonlyArray<string>) {
  try {
    return parseArgs({
      args: [...args],
      strict: true,
      options: {
        state: { type: 'string', default: '.gateway-operator' },
        reset: { type: 'boolean', default: false },
        port: { type: 'string' },
        empty: { type: 'boolean', default: false },
        cluster: { type: 'string', default: 'embedded' },
        database: { type: 'string', default: 'embedded' },
        schedule: { type: 'string', default: '60' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (cause) {
    // The first sentence of Node's message is enough.
    const [sentence] = reasonOf(cause).split(/\.\s/);
    throw new UsageError(`${sentence}. \`npm start -- --help\` lists the options.`, { cause });
  }
}

function integer(option: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^[0-9]+$/.test(text) && value >= min && value <= max) return value;
  throw new UsageError(`${option}: Invalid value: "${text}": must be a whole number from ${min} to ${max}.`);
}

function clusterOf(text: string): Options['cluster'] {
  if (text === '')
    throw new UsageError('--cluster: Required value: must be embedded, envtest, or the path of a kubeconfig file.');
  return text === 'embedded' || text === 'envtest' ? { type: text } : { type: 'kubeconfig', path: resolve(text) };
}

function databaseOf(text: string): URL | undefined {
  if (text === 'embedded') return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const known = url?.protocol === 'postgres:' || url?.protocol === 'postgresql:';
  if (url !== undefined && known && url.hostname !== '' && url.pathname.length > 1) return url;
  throw new UsageError('--database: must be embedded, or postgres://user:password@host:port/dbname.');
}

// The functions as processes with the default address, each port asked over the loopback of IPv4 and of IPv6: `node
// ask-each-port.ts FILE` reads which functions, and prints the answers as JSON. Run it in a network of its own.
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { get as getSecure } from 'node:https';
import { print } from '../../infra/runtime/node/process.ts';
import { startNode } from './node-process.ts';

export interface PortAnswer {
  readonly bundle: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** By bundle and port: the statuses over IPv4 and IPv6, or the code of the error. */
export type Answers = Readonly<Record<string, readonly [string, string]>>;

/** The status of `GET url`, or the code of the error. */
function statusOf(url: string): Promise<string> {
  return new Promise((resolve) => {
    const asked = url.startsWith('https:') ? getSecure(url, { rejectUnauthorized: false }) : get(url);
    asked.on('response', (answer) => resolve(String(answer.resume().statusCode)));
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

async function ask({ bundle, environment }: PortAnswer): Promise<Array<[string, readonly [string, string]]>> {
  // An empty HOST counts as absent.
  const started = await startNode(bundle, { ...environment, HOST: '' });
  const ports = Object.entries({ functions: `${started.url}/healthz`, metrics: started.metrics });
  const answers = ports.map(async ([port, url]): Promise<[string, readonly [string, string]]> => {
    const at = (host: string) => statusOf(Object.assign(new URL(url), { hostname: host }).href);
    return [`${bundle.replace(/.*\//, '')} ${port}`, [await at('127.0.0.1'), await at('[::1]')]];
  });
  const all = await Promise.all(answers);
  await started.stop();
  return all;
}

const functions = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as ReadonlyArray<PortAnswer>;
const answers: Answers = Object.fromEntries((await Promise.all(functions.map(ask))).flat());
print(JSON.stringify(answers));

// The delay of forty-eight instances when the database of one hangs and that of another refuses.
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { freePort } from '../../../infra/platforms/local/state/ports.ts';
import { makeInstance, makeKey, makeSecrets } from '../../reconcile/objects.ts';
import { startPostgres } from '../../support/postgres.ts';
import { table } from '../table.ts';
import { startStandIn } from './api-server.ts';
import type { Swept } from './child.ts';
import { databaseSecret } from './filling.ts';
import { createProcess } from './process.ts';

const INSTANCES = 50;
const KEYS = 20;
const HANGING = 7;
const REFUSING = 31;

const nameOf = (instance: number) => `i${instance}`;
const isBroken = (instance: number) => instance === HANGING || instance === REFUSING;

interface Round {
  readonly name: string;
  readonly swept: Swept;
  /** Milliseconds from the start until the last write to a key of the 48. */
  readonly others: number;
}

/**
 * Twenty new keys on each of fifty instances with a database each: first all healthy, then two failing, then a repeat
 * for the failing ones.
 */
export async function benchFifty(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-bench-'));
  const [postgres, api, silent] = [await startPostgres(), await startStandIn(), await startSilent()];
  const process = createProcess({ url: api.url, token: 'bench', ca: '' }, folder);
  try {
    for (const secret of makeSecrets().slice(1)) api.put(RESOURCES.secrets, secret);
    for (let instance = 0; instance < INSTANCES; instance += 1)
      putInstance(api, instance, await postgres.createDatabase());
    let made = 0;
    const round = async (name: string): Promise<Round> => {
      made += 1;
      for (let instance = 0; instance < INSTANCES; instance += 1) putKeys(api, instance, made);
      let last = performance.now();
      const began = last;
      api.onWrite = (plural, key) => {
        const instance = Number(/^i(\d+)-/.exec(key)?.[1]);
        if (plural === virtualKeys.plural && !isBroken(instance)) last = performance.now();
      };
      const swept = await process.resync();
      return { name, swept, others: last - began };
    };
    await process.restart();
    await round('all are new');
    const rounds = [await round('all answer'), await round('all answer, again')];
    const { host, ...connection } = await postgres.createDatabase();
    const away = (port: number): DatabaseConnection => ({ ...connection, host, port });
    const secrets = [
      databaseSecret(`db-${nameOf(HANGING)}`, away((silent.address() as AddressInfo).port)),
      databaseSecret(`db-${nameOf(REFUSING)}`, away(await freePort(0, 'any'))),
    ];
    for (const secret of secrets) api.put(RESOURCES.secrets, secret);
    rounds.push(await round('one hangs, one refuses'), await round('the same, a minute later'));
    return report(rounds);
  } finally {
    process.end();
    silent.close();
    await api.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Api = Awaited<ReturnType<typeof startStandIn>>;

function putInstance(api: Api, instance: number, connection: DatabaseConnection): void {
  const name = nameOf(instance);
  const { databaseSecretRef } = makeInstance().spec as { databaseSecretRef: object };
  api.put(RESOURCES.secrets, databaseSecret(`db-${name}`, connection));
  api.put(gatewayInstances, makeInstance({ databaseSecretRef: { ...databaseSecretRef, nameRef: `db-${name}` } }, name));
}

function putKeys(api: Api, instance: number, round: number): void {
  const connectionRef = { instanceRef: { name: nameOf(instance), namespace: 'default' } };
  for (let index = 0; index < KEYS; index += 1)
    api.put(virtualKeys, makeKey({ connectionRef }, `${nameOf(instance)}-${round}-${index}`));
}

/** A server that accepts connections and never answers. */
async function startSilent(): Promise<Server> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket.on('error', () => undefined));
  });
  server.on('close', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = server.close.bind(server);
  server.close = (callback) => {
    for (const socket of open) socket.destroy();
    return close(callback);
  };
  return server;
}

function report(rounds: ReadonlyArray<Round>): string {
  const rows = rounds.map(({ name, swept, others }) => [
    name,
    (others / 1000).toFixed(2),
    (swept.millis / 1000).toFixed(2),
    (swept.cpuMillis / 1000).toFixed(2),
    JSON.stringify(swept.report.failed),
  ]);
  const head = ['databases', 'the other 48, s', 'the resync, s', 'CPU s', 'failed'];
  return `${INSTANCES} instances with a database of their own each, ${KEYS} new keys on each.\n\n${table(head, rows)}`;
}

// Servers shared by a whole run: one PostgreSQL, one kube-apiserver, one build of the bundles. A test file takes a
// database or a namespace of its own there. A file that kills, freezes or configures a server starts its own.
import { randomBytes } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createDatabase } from '#adapters/postgres/database.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { writeBundles } from '../../infra/tools/build.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { caller, startControlPlane, type TestControlPlane } from './control-plane.ts';
import { query, startPostgres, type TestPostgres } from './postgres.ts';
import { temporaryFolder } from './temporary-folder.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL where test files ask for a server. */
    readonly sharedServers: string;
  }
}

export interface SharedPostgres extends Pick<TestPostgres, 'connection' | 'createDatabase' | 'query'> {
  /** A new database with our schema, as `migrate` leaves it; a copy takes a quarter of the time. */
  migratedDatabase(): Promise<DatabaseConnection>;
}

export type SharedControlPlane = Omit<TestControlPlane, 'stop'>;

/** The database that is copied and never used. */
const TEMPLATE = 'migrated';

export async function sharedPostgres(): Promise<SharedPostgres> {
  const connection = await ask<DatabaseConnection>('postgres');
  const create = async (template: string) => {
    const dbname = `test_${randomBytes(6).toString('hex')}`;
    await query(connection, `create database ${dbname} template ${template} strategy file_copy`);
    return { ...connection, dbname };
  };
  return {
    connection,
    createDatabase: () => create('template0'),
    migratedDatabase: () => create(TEMPLATE),
    query,
  };
}

/**
 * The shared API server, without controllers. Each test file defines its own kinds there, and none sets a webhook or a
 * role.
 */
export async function sharedControlPlane(): Promise<SharedControlPlane> {
  const plane = await ask<Omit<SharedControlPlane, 'call'>>('control-plane');
  return { ...plane, call: caller(plane.url, plane.token, plane.ca) };
}

/** The folder with the bundles of every deployable, as `npm run build` writes them. */
export async function linkBundles(folder: string): Promise<void> {
  const built = await ask<string>('bundles');
  for (const part of ['node', 'cloudflare']) symlinkSync(join(built, part), join(folder, part));
}

async function ask<T>(server: string): Promise<T> {
  // Benches run without Vitest and load this file too.
  const { inject } = await import('vitest');
  const answer = await fetch(`${inject('sharedServers')}/${server}`);
  if (!answer.ok) throw new Error(`no shared ${server}: ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** Called by Vitest once a run, in its own process. A server starts when the first file asks for it. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const stops: Array<() => Promise<void>> = [];
  const starts: Readonly<Record<string, () => Promise<unknown>>> = {
    postgres: async () => {
      const { connection, stop } = await startPostgres({ settings: ['max_connections=300'] });
      stops.push(stop);
      await makeTemplate(connection);
      return connection;
    },
    'control-plane': async () => {
      const { stop, call: _, ...plane } = await startControlPlane();
      stops.push(stop);
      return plane;
    },
    bundles: async () => {
      const folder = temporaryFolder();
      await writeBundles(folder);
      return folder;
    },
  };
  const started = new Map<string, Promise<unknown>>();
  const broker = createServer(async ({ url = '' }, response) => {
    const name = url.slice(1);
    const server = started.get(name) ?? starts[name]?.() ?? Promise.reject(new Error('there is no such server'));
    started.set(name, server);
    await server.then(
      (found) => response.end(JSON.stringify(found)),
      (error: Error) => response.writeHead(500).end(error.stack),
    );
  });
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve));
  provide('sharedServers', `http://127.0.0.1:${(broker.address() as AddressInfo).port}`);
  return async () => {
    broker.closeAllConnections();
    broker.close();
    for (const stop of stops) await stop();
  };
}

async function makeTemplate(connection: DatabaseConnection): Promise<void> {
  await query(connection, `create database ${TEMPLATE}`);
  const database = createDatabase({ ...connection, dbname: TEMPLATE }, { log: createMemoryLog() });
  await database.migrate();
  await database.close();
}

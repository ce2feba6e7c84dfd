// Hostile databases: programs that try to harm the process that connects to them.
import { webcrypto } from 'node:crypto';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { HARMS, message, startHostilePostgres, startRandomPostgres } from '../../../../test/hostile/postgres.ts';
import { drip, listen, pour } from '../../../../test/hostile/server.ts';
import { createMemoryBudget } from '../../backends/reply-memory.ts';
import { createDatabase } from '../database.ts';

const MIB = 1024 * 1024;
const at = (port: number) => ({ host: '127.0.0.1', port, username: 'u', password: 'p', dbname: 'd' });

/** Errors that nobody would have caught: they end a process. */
const uncaught: unknown[] = [];
const note = (error: unknown) => void uncaught.push(error);
process.on('uncaughtException', note);
process.on('unhandledRejection', note);
afterEach(() => {
  expect(uncaught.splice(0)).toEqual([]);
});

/** Rounds of hashing passwords, of the whole process. */
let rounds = 0;
const derive = webcrypto.subtle.deriveBits.bind(webcrypto.subtle);
vi.spyOn(webcrypto.subtle, 'deriveBits').mockImplementation(async (algorithm, key, length) => {
  rounds += (algorithm as webcrypto.Pbkdf2Params).iterations;
  return derive({ ...(algorithm as webcrypto.Pbkdf2Params), iterations: 1 }, key, length);
});
beforeEach(() => {
  rounds = 0;
});
/** PostgreSQL asks for 4096 rounds unless it is configured otherwise. */
const MAX_ROUNDS = 20_000;

async function openDatabase(server: { readonly port: number; stop(): Promise<void> }) {
  const database = createDatabase(at(server.port), { log: createMemoryLog() });
  onTestFinished(async () => {
    await server.stop();
    await database.close();
  });
  const budget = createMemoryBudget(20 * MIB);
  const workMemory = budget.workMemory(MIB);
  return { own: database, within: database.withWorkMemory(workMemory), workMemory };
}

/** A server that sends complete replies without rows, also to no statement. */
const EMPTY = 'replies to nothing, without end';

/** Each call is rejected with DatabaseUnreachable, and the message has what to check. */
function expectAway(answers: ReadonlyArray<PromiseSettledResult<unknown>>): void {
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 'rejected', reason: expect.any(DatabaseUnreachable) });
    const words = String((answer as PromiseRejectedResult).reason.message);
    expect(words).toMatch(/^PostgreSQL at 127\.0\.0\.1:\d+ .*: /);
    expect(words.length).toBeLessThan(2000);
  }
}

describe.each(HARMS)('a database that answers with %s', (harm) => {
  test('is away for the instance that names it, after little of it was read', async () => {
    const server = await startHostilePostgres(harm);
    const { within, workMemory } = await openDatabase(server);
    // The work has an end.
    const end = setTimeout(workMemory.end, 6000);
    const calls = [within.instance('one'), within.claims('one'), within.openInstances('here')];
    const answers = await Promise.allSettled(calls);
    clearTimeout(end);
    if (harm !== EMPTY) expectAway(answers);
    // Buffers of both sockets take some more.
    expect(server.sent()).toBeLessThan(60 * MIB);
    expect(rounds).toBeLessThanOrEqual(server.connections() * MAX_ROUNDS);
  });

  test('costs a gateway, whose own it is, no more than a statement may have', async () => {
    const server = await startHostilePostgres(harm);
    const { own } = await openDatabase(server);
    const answers = await Promise.allSettled([own.policies('one').find(['a'.repeat(64)])]);
    if (harm !== EMPTY) expectAway(answers);
    expect(server.sent()).toBeLessThan(40 * MIB);
    expect(rounds).toBeLessThanOrEqual(server.connections() * MAX_ROUNDS);
  });
});

test.each([
  ['refuses', 'disable', (socket: Socket) => socket.write(message('E', Buffer.alloc(1)))],
  ['answers the question about TLS without end', 'require', (socket: Socket) => pour(socket, Buffer.alloc(65_536))],
  ['wants no TLS', 'require', (socket: Socket) => socket.write('N')],
] as const)('no connection stays open to a database that %s', async (_, sslmode, answer) => {
  const server = await listen((socket) => socket.once('data', () => answer(socket)));
  const database = createDatabase({ ...at(server.port), sslmode }, { log: createMemoryLog() });
  onTestFinished(server.stop);
  await expect(database.instance('one')).rejects.toThrow(DatabaseUnreachable);
  await expect.poll(server.open).toBe(0);
  expect(server.sent()).toBeLessThan(20 * MIB);
  await database.close();
});

test('no connection stays open to a database that never closes one', async () => {
  const server = await listen(
    (socket) =>
      socket.once('data', () => {
        socket.write(Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]));
        // Nobody refuses what comes on a connection that only one side has closed.
        drip(socket, message('N', Buffer.alloc(1)));
        socket.once('data', () =>
          socket.write(Buffer.concat([message('C', Buffer.alloc(1)), message('Z', Buffer.from('I'))])),
        );
      }),
    { allowHalfOpen: true },
  );
  onTestFinished(server.stop);
  const database = createDatabase(at(server.port), { log: createMemoryLog() });
  expect(await database.openInstances('here')).toEqual([]);
  await database.close();
  await expect.poll(server.open).toBe(0);
});

test('a database that answers at random ends no process', async () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const server = await startRandomPostgres(seed);
    const database = createDatabase(at(server.port), { log: createMemoryLog() });
    const workMemory = createMemoryBudget(MIB).workMemory(MIB);
    const within = database.withWorkMemory(workMemory);
    const end = setTimeout(workMemory.end, 100);
    await Promise.allSettled([within.instance('one'), within.claims('one'), within.sums([])]);
    clearTimeout(end);
    workMemory.end();
    await server.stop();
    await database.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect({ seed, uncaught: uncaught.splice(0) }).toEqual({ seed, uncaught: [] });
  }
});

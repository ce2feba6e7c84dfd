// Memory of a gateway's Pod: the largest bodies, the most streams and the most connections that it accepts, in a
// process with the Pod's options and limit.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { limitsIn } from '../../functions/gateway/request/memory-budget.ts';
import { processMemory } from '../../infra/runtime/node/platform.ts';
import { podOf } from '../platforms/mounts.ts';
import { startWorld, type TestWorld } from '../platforms/world.ts';
import { eventually } from '../support/eventually.ts';
import { mountGateway } from './gateway/place.ts';
import { bodyOf, CONTENTS, type Content } from './memory/bodies.ts';
import { type Pod, startPod, whyNoLimit } from './memory/pod.ts';
import type { ProviderRequest } from './memory/provider.ts';
import { ask, next } from './pinned.ts';
import { table } from './table.ts';

const MIB = 2 ** 20;
/** Bodies that are sent at the same time, each by a key of its own: more than are accepted. */
const BODIES = 12;
const MODELS = { 'as it is': 'sample-small', translated: 'sample-claude' };
const STREAMS = (process.env.BENCH_STREAMS ?? '100,400,1000').split(',').map(Number);
/** Milliseconds of each stream: 800 packets of 250 bytes where the process keeps up. */
const STREAMED = 16_000;
/** The part of its requests that a process serves to so few keys, which leave some free. */
const OF_FEW_KEYS = 15 / 16;
/** MiB; absent: the Pod's own. */
const LIMITS = process.env.BENCH_LIMITS?.split(',').map(Number);
/** Characters of the header of a request that does not end. */
const HALF_A_HEAD = 15_000;

type Gateway = Awaited<ReturnType<typeof prepare>>;

export async function benchMemory(): Promise<string> {
  const world = await startWorld();
  const provider = fork(join(import.meta.dirname, 'memory/provider.ts'));
  try {
    const gateway = await prepare(world, provider);
    const parts = [];
    for (const limit of LIMITS ?? [gateway.limit]) parts.push(await benchLimit(gateway, limit));
    return [...(whyNoLimit() === undefined ? [] : [`No limit was set: ${whyNoLimit()}.`]), ...parts].join('\n\n');
  } finally {
    provider.kill();
    await world.stop();
  }
}

async function prepare(world: TestWorld, provider: ChildProcess) {
  const { port } = await next<{ port: number }>(provider);
  const { others: keys, mounts, bundle } = await mountGateway(world, `http://127.0.0.1:${port}`, BODIES);
  const [container] = (await podOf(world.cluster)).containers;
  const flags = container?.command.slice(1, -1) ?? [];
  const environment = { ...mounts, HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0' };
  const limit = toMiB(container?.resources.limits.memory ?? '');
  return { keys, provider, command: [...flags, bundle], environment, limit };
}

function toMiB(memory: string): number {
  const [, amount, unit] = /^(\d+)(Mi|Gi)$/.exec(memory) ?? [];
  return Number(amount) * (unit === 'Gi' ? 1024 : 1);
}

async function benchLimit(gateway: Gateway, limit: number): Promise<string> {
  const memory = processMemory(limit * MIB, Number.POSITIVE_INFINITY);
  if (memory === undefined) throw new Error('the Pod has no limit');
  const limits = limitsIn(memory);
  const rows: string[][] = [];
  for (const content of Object.keys(CONTENTS) as Content[]) {
    for (const [how, model] of Object.entries(MODELS)) {
      rows.push([content, how, ...(await bodies(gateway, limit, bodyOf(model, content, limits.body)))]);
    }
  }
  const streamed = [];
  for (const count of STREAMS) streamed.push(await streams(gateway, limit, count));
  const mixed = [];
  for (const [content, model] of [
    ['one text with 한', 'sample-small'],
    ['parts of 64 bytes', 'sample-claude'],
  ] as const) {
    const body = bodyOf(model, content, limits.body);
    mixed.push([
      `${content}, ${model}`,
      ...(await both(gateway, limit, { body, count: Math.floor(limits.requests * OF_FEW_KEYS) })),
    ]);
  }
  const connected = [];
  for (const head of [0, HALF_A_HEAD])
    connected.push(await connections(gateway, limit, { head, count: 2 * limits.requests }));
  return [
    `A Pod of ${limit} MiB: bodies up to ${mib(limits.body)} MiB, ${mib(limits.bytes)} MiB of them together, ${limits.requests} requests. ${BODIES} bodies of that size, of as many keys, are answered when all have come or were refused. Memory is the process's RSS in MiB.`,
    table(['content', 'sent on', 'answers', 'peak', 'after 2 s', 'longest stall, ms'], rows),
    'Streams of up to 200 KB in packets of 250 bytes, at the same time:',
    table(['streams', 'answers', 'peak', 'before', 'KiB each', 'after 2 s'], streamed),
    'The same bodies while as many streams are open as the process takes of these keys:',
    table(['content', 'streams', 'answers', 'answers to bodies', 'peak'], mixed),
    'Connections that send nothing, or the head of a request without its end:',
    table(['bytes each', 'opened', 'held', 'RSS', 'before', 'KiB each'], connected),
  ].join('\n\n');
}

const mib = (bytes: number): string => (bytes / MIB).toFixed(0);

async function bodies(gateway: Gateway, limit: number, body: Buffer): Promise<string[]> {
  const { provider, keys } = gateway;
  const before = await ask<ProviderRequest>(provider, 'tell');
  const pod = await launch(gateway, limit);
  const agent = new Agent({ keepAlive: true });
  const watch = watchStalls(pod);
  const answers: string[] = [];
  const sent = keys.map(async (key) => {
    answers.push(await send(pod, { agent, body, key }));
  });
  const isIn = async () => answers.length + ((await ask<ProviderRequest>(provider, 'tell')).plain - before.plain);
  await eventually(isIn, (count) => count >= keys.length || !pod.isAlive(), 120_000);
  await ask(provider, 'answer');
  await Promise.all(sent);
  const { peak } = memoryOf(pod);
  await pause(2_000);
  const row = [countsOf(answers), shown(peak), shown(memoryOf(pod).now), (await watch()).toFixed(0)];
  agent.destroy();
  await pod.end();
  return row;
}

async function streams(gateway: Gateway, limit: number, count: number): Promise<string[]> {
  const { provider, keys } = gateway;
  const pod = await launch(gateway, limit);
  const agent = new Agent({ keepAlive: true });
  const body = streamBody();
  const sendSome = (some: number, answers: string[] = []) =>
    Array.from({ length: some }, async (_, at) => {
      answers.push(await send(pod, { agent, body, key: keys[at % keys.length] ?? '' }));
    });
  // Code is compiled, and connections are made, before memory is compared.
  const warm = sendSome(50);
  await pause(3_000);
  await ask(provider, 'end');
  await Promise.all(warm);
  const before = memoryOf(pod).now;
  const answers: string[] = [];
  const sent = sendSome(count, answers);
  await pause(STREAMED);
  await ask(provider, 'end');
  await Promise.all(sent);
  const { peak } = memoryOf(pod);
  await pause(2_000);
  const each = ((peak - before) * 1024) / count;
  const row = [`${count}`, countsOf(answers), shown(peak), shown(before), each.toFixed(0), shown(memoryOf(pod).now)];
  agent.destroy();
  await pod.end();
  return row;
}

/** The largest bodies while so many streams are open. */
async function both(
  gateway: Gateway,
  limit: number,
  { body, count }: { readonly body: Buffer; readonly count: number },
): Promise<string[]> {
  const { provider, keys } = gateway;
  const pod = await launch(gateway, limit);
  const agent = new Agent({ keepAlive: true });
  const stream = streamBody();
  const streamed: string[] = [];
  const before = await ask<ProviderRequest>(provider, 'slow');
  const streaming = Array.from({ length: count }, async (_, at) => {
    streamed.push(await send(pod, { agent, body: stream, key: keys[at % keys.length] ?? '' }));
  });
  const isStreaming = async () =>
    (await ask<ProviderRequest>(provider, 'tell')).streams - before.streams + streamed.length;
  await eventually(isStreaming, (open) => open >= count, 60_000);
  const sent: string[] = [];
  const sending = keys.map(async (key) => {
    sent.push(await send(pod, { agent, body, key }));
  });
  await pause(8_000);
  await ask(provider, 'answer');
  await Promise.all(sending);
  await ask(provider, 'end');
  await Promise.all(streaming);
  await ask(provider, 'fast');
  const row = [`${count}`, countsOf(streamed), countsOf(sent), shown(memoryOf(pod).peak)];
  agent.destroy();
  await pod.end();
  return row;
}

function streamBody(): Buffer {
  const messages = [{ role: 'user', content: 'x' }];
  return Buffer.from(JSON.stringify({ model: 'sample-small', stream: true, max_tokens: 16_000, messages }));
}

async function connections(
  gateway: Gateway,
  limit: number,
  { head, count }: { readonly head: number; readonly count: number },
): Promise<string[]> {
  const pod = await launch(gateway, limit);
  const before = memoryOf(pod).now;
  const sockets: Socket[] = [];
  for (let opened = 0; opened < count + 10; opened += 1) {
    const socket = connect(pod.port, '127.0.0.1');
    sockets.push(socket.on('error', () => socket.destroy()));
    if (head > 0) socket.write(`POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-filler: ${'x'.repeat(head)}`);
    if (opened % 100 === 0) await pause(20);
  }
  await pause(3_000);
  const { now } = memoryOf(pod);
  const held = sockets.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length;
  for (const socket of sockets) socket.destroy();
  await pod.end();
  const each = ((now - before) * 1024) / held;
  return [`${head}`, `${sockets.length}`, `${held}`, shown(now), shown(before), each.toFixed(1)];
}

function memoryOf(pod: Pod): { readonly now: number; readonly peak: number } {
  return pod.isAlive() ? pod.memory() : { now: Number.NaN, peak: Number.NaN };
}

const shown = (memory: number): string => (Number.isNaN(memory) ? 'killed' : memory.toFixed(0));

let launched = 0;

function launch({ command, environment }: Gateway, limit: number): Promise<Pod> {
  launched += 1;
  const journal = join(environment.JOURNAL_DIR, `${launched}`);
  mkdirSync(journal);
  return startPod({ command, environment: { ...environment, JOURNAL_DIR: journal }, limit });
}

interface SentBody {
  readonly agent: Agent;
  readonly body: Buffer;
  readonly key: string;
}

/** The status, with the code of an error; or how the connection ended. */
async function send({ port }: Pod, { agent, body, key }: SentBody): Promise<string> {
  const type = { 'content-type': 'application/json', 'content-length': body.length };
  const headers = { authorization: `Bearer ${key}`, ...type };
  const options = { agent, host: '127.0.0.1', port, method: 'POST', path: '/v1/chat/completions', headers };
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(options, resolve).on('error', reject).end(body);
    });
    if (answer.statusCode !== 200) return `${answer.statusCode} ${JSON.parse(await text(answer)).error.code}`;
    for await (const _ of answer);
    return '200';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'broken';
  }
}

function countsOf(answers: ReadonlyArray<string>): string {
  const counts = Map.groupBy(answers, (answer) => answer);
  return [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([answer, all]) => `${all.length} × ${answer}`)
    .join(', ');
}

/** Asks for `/healthz` all the time; the returned function ends that, and tells the longest wait in milliseconds. */
function watchStalls({ port }: Pod): () => Promise<number> {
  let max = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const began = performance.now();
      await fetch(`http://127.0.0.1:${port}/healthz`).then(
        (answer) => answer.text(),
        () => undefined,
      );
      max = Math.max(max, performance.now() - began);
      await pause(20);
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    return max;
  };
}

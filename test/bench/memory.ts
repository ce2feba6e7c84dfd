// Memory of a gateway's Pod: the largest bodies and the most streams that it accepts, in a process with the Pod's options and limit.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { podOf } from '../platforms/mounts.ts';
import { startWorld, type TestWorld } from '../platforms/world.ts';
import { mountGateway } from './gateway/place.ts';
import { bodyOf, CONTENTS, type Content } from './memory/bodies.ts';
import { type Pod, startPod, whyNoLimit } from './memory/pod.ts';
import type { Asked } from './memory/provider.ts';
import { ask, next } from './pinned.ts';
import { table } from './table.ts';

/** Bodies that are sent at the same time: more than are accepted. */
const BODIES = Number(process.env.BENCH_BODIES ?? '12');
const STREAMS = (process.env.BENCH_STREAMS ?? '200,400,800').split(',').map(Number);
/** Milliseconds of each stream: 200 KB in 800 packets. */
const STREAMED = 16_000;
/** MiB; absent: the Pod's own. */
const LIMITS = process.env.BENCH_LIMITS?.split(',').map(Number);

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
  const { key, mounts, bundle } = await mountGateway(world, `http://127.0.0.1:${port}`);
  const [container] = (await podOf(world.cluster)).containers;
  const flags = container?.command.slice(1, -1) ?? [];
  const environment = { ...mounts, HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0' };
  const limit = toMiB(container?.resources.limits.memory ?? '');
  return { key, provider, command: [...flags, bundle], environment, limit };
}

function toMiB(memory: string): number {
  const [, amount, unit] = /^(\d+)(Mi|Gi)$/.exec(memory) ?? [];
  return Number(amount) * (unit === 'Gi' ? 1024 : 1);
}

async function benchLimit(gateway: Gateway, limit: number): Promise<string> {
  const rows: string[][] = [];
  for (const content of Object.keys(CONTENTS) as Content[]) {
    for (const model of ['sample-small', 'sample-claude']) rows.push(await bodies(gateway, { limit, content, model }));
  }
  const streamed = [];
  for (const count of STREAMS) streamed.push(await streams(gateway, { limit, count }));
  return [
    `A Pod of ${limit} MiB. ${BODIES} bodies of 32 MiB sent together, answered when all have come or were refused (peak: of the process's RSS):`,
    table(['content', 'provider', 'answers', 'peak, MiB', 'at rest after it', 'longest stall, ms'], rows),
    'Streams of 200 KB in 800 packets, at the same time:',
    table(['streams', 'answers', 'peak, MiB', 'before', 'KiB a stream', 'at rest after it'], streamed),
  ].join('\n\n');
}

interface BodyRun {
  readonly limit: number;
  readonly content: Content;
  readonly model: string;
}

async function bodies(gateway: Gateway, { limit, content, model }: BodyRun): Promise<string[]> {
  const { provider } = gateway;
  const before = await ask<Asked>(provider, 'tell');
  const pod = await launch(gateway, limit);
  const agent = new Agent({ keepAlive: true });
  const body = bodyOf(model, content);
  const watch = watchStalls(pod);
  const answers: string[] = [];
  const sent = Array.from({ length: BODIES }, async () => {
    answers.push(await send(gateway, pod, { agent, body }));
  });
  const isIn = async () => answers.length + ((await ask<Asked>(provider, 'tell')).plain - before.plain);
  await eventually(isIn, (count) => count >= BODIES || !pod.isAlive(), 120_000);
  await ask(provider, 'answer');
  await Promise.all(sent);
  const peak = pod.isAlive() ? pod.memory().peak.toFixed(0) : 'killed';
  await pause(2_000);
  const row = [content, model, countsOf(answers), peak, restOf(pod), (await watch()).toFixed(0)];
  agent.destroy();
  await pod.end();
  return row;
}

async function streams(gateway: Gateway, { limit, count }: { limit: number; count: number }): Promise<string[]> {
  const { provider } = gateway;
  const pod = await launch(gateway, limit);
  const agent = new Agent({ keepAlive: true });
  const body = Buffer.from(
    JSON.stringify({
      model: 'sample-small',
      stream: true,
      max_tokens: 16_000,
      messages: [{ role: 'user', content: 'x' }],
    }),
  );
  // Code is compiled, and connections are made, before memory is compared.
  const warm = Array.from({ length: 20 }, () => send(gateway, pod, { agent, body }));
  await pause(1_000);
  await ask(provider, 'end');
  await Promise.all(warm);
  const before = pod.memory().now;
  const answers: string[] = [];
  const sent = Array.from({ length: count }, async () => {
    answers.push(await send(gateway, pod, { agent, body }));
  });
  await pause(STREAMED);
  await ask(provider, 'end');
  await Promise.all(sent);
  const { peak } = pod.isAlive() ? pod.memory() : { peak: Number.NaN };
  await pause(2_000);
  const each = ((peak - before) * 1024) / count;
  const row = [`${count}`, countsOf(answers), peak.toFixed(0), before.toFixed(0), each.toFixed(0), restOf(pod)];
  agent.destroy();
  await pod.end();
  return row;
}

function restOf(pod: Pod): string {
  return pod.isAlive() ? pod.memory().now.toFixed(0) : 'killed';
}

let launched = 0;

function launch({ command, environment }: Gateway, limit: number): Promise<Pod> {
  launched += 1;
  const outbox = join(environment.OUTBOX_DIR, `${launched}`);
  mkdirSync(outbox);
  return startPod({ command, environment: { ...environment, OUTBOX_DIR: outbox }, limit });
}

interface Sent {
  readonly agent: Agent;
  readonly body: Buffer;
}

/** The status, or how the connection ended. */
async function send({ key }: Gateway, { port }: Pod, { agent, body }: Sent): Promise<string> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': body.length,
  };
  const options = { agent, host: '127.0.0.1', port, method: 'POST', path: '/v1/chat/completions', headers };
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(options, resolve).on('error', reject).end(body);
    });
    for await (const _ of answer);
    return `${answer.statusCode}`;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'broken';
  }
}

function countsOf(answers: ReadonlyArray<string>): string {
  const counts = Map.groupBy(answers, (answer) => answer);
  return [...counts].map(([answer, all]) => `${all.length} × ${answer}`).join(', ');
}

/** Asks for `/healthz` all the time; the returned function ends that, and tells the longest wait in milliseconds. */
function watchStalls({ port }: Pod): () => Promise<number> {
  let longest = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const began = performance.now();
      await fetch(`http://127.0.0.1:${port}/healthz`).then(
        (answer) => answer.text(),
        () => undefined,
      );
      longest = Math.max(longest, performance.now() - began);
      await pause(20);
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    return longest;
  };
}

// Unmodified programs through the gateway: each works, pays what the upstream bills, stops at a spent budget, and
// survives faults.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChild } from '../support/child.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { KEY, openGateway, SPENT_KEY } from './gateway.ts';
import { install } from './install.ts';
import { type Command, PROGRAMS, type Program, type Scenario, type Target } from './programs.ts';
import { type ClientRequest, createMockUpstream, type Fault, type MockUpstream } from './upstream.ts';

const MINUTES = 5 * 60_000;
const ANSWERS: Readonly<Record<Scenario, RegExp>> = {
  text: /Hello from the mock\.|2 vectors of 2/,
  stream: /Hello from the mock\./,
  tool: /The tool has answered\./,
};

let upstream: MockUpstream;
let gateway: Awaited<ReturnType<typeof openGateway>>;

/** Runs a program to its end, far from the network and from what people have set up. */
const run = (program: Program, to: Target, scenario: Scenario) => start(program.toCommand(to, scenario));

async function start({ command, args, env }: Command): Promise<string> {
  const shared = { HOME: temporaryFolder(), HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost' };
  const child = startChild(command, args, {
    cwd: temporaryFolder(),
    env: { PATH: process.env.PATH, ...shared, ...env },
  });
  const { stdout, stderr } = await child.ended;
  return `${stdout}\n${stderr}`;
}

const through = () => ({ url: gateway.url, key: KEY });
const charged = () => gateway.ledger.settled.reduce((sum, { cost }) => sum + cost, 0n);

describeUnless(install(), 'the real programs', () => {
  beforeAll(async () => {
    upstream = await createMockUpstream();
    gateway = await openGateway(upstream.url);
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const works = PROGRAMS.flatMap((program) => program.scenarios.map((scenario) => ({ ...program, program, scenario })));

  test.for(works)(
    '$name: $scenario works, and is charged what the upstream bills',
    { timeout: MINUTES },
    async ({ program, scenario }) => {
      const before = { charged: charged(), billed: upstream.billed() };
      expect(await run(program, through(), scenario)).toMatch(ANSWERS[scenario]);
      await expect.poll(() => gateway.ledger.liveReservations()).toBe(0);
      expect(upstream.billed() - before.billed).toBeGreaterThan(0n);
      expect(charged() - before.charged).toBe(upstream.billed() - before.billed);
    },
  );

  test.for(PROGRAMS.flatMap(({ name, small }) => (small === undefined ? [] : [{ name, small }])))(
    '$name: its small model is the one that the settings name, and the gateway rejects nothing',
    { timeout: MINUTES },
    async ({ small }) => {
      const [before, from] = [gateway.requests().length, upstream.asked.length];
      expect(await start(small.toCommand(through()))).toMatch(ANSWERS.stream);
      const models = upstream.asked.slice(from).map(({ body }) => JSON.parse(body).model as string);
      expect(models).toContain(small.model);
      const answers = () => gateway.requests().slice(before);
      await expect.poll(() => answers().length).toBeGreaterThanOrEqual(models.length);
      expect(answers().filter(({ status }) => status !== 200)).toEqual([]);
    },
  );

  test.for(works)(
    '$name: $scenario is the same with and without the gateway',
    { timeout: MINUTES },
    async ({ program, scenario }) => {
      const from = upstream.asked.length;
      await run(program, { url: upstream.url, key: 'upstream-key' }, scenario);
      const recorded = upstream.asked.slice(from);
      expect(recorded).not.toEqual([]);
      for (const asked of recorded) {
        const [direct, passed] = [await repeat(asked, upstream.url), await repeat(asked, gateway.url)];
        expect(passed.reply).toBe(direct.reply);
        expect(sentIn(passed.asked)).toEqual(sentIn(direct.asked));
        // Anthropic's clients name their limit: nothing at all is changed.
        if (asked.url.includes('/messages')) expect(passed.asked.body).toBe(asked.body);
      }
    },
  );

  const faults: ReadonlyArray<Fault> = ['429', '503', 'cut', 'silence'];
  const faulty = PROGRAMS.flatMap((program) => faults.map((fault) => ({ ...program, program, fault })));

  test.for(faulty.filter(({ scenarios }) => scenarios.includes('stream')))(
    '$name survives $fault',
    { timeout: MINUTES },
    async ({ program, fault, asksAgain }) => {
      upstream.fail(fault);
      const output = await run(program, through(), 'stream');
      upstream.fail();
      if (asksAgain || fault === '429' || fault === '503') expect(output).toMatch(ANSWERS.stream);
      else
        expect(output).toMatch(
          /The provider (failed to answer|did not answer in time)|terminated|network error|closed|Failed to process/i,
        );
      await expect.poll(() => gateway.ledger.liveReservations()).toBe(0);
    },
  );

  test.for(PROGRAMS)(
    '$name stops at a spent budget, with words that name it',
    { timeout: MINUTES },
    async (program) => {
      const [asked, reached] = [gateway.asked.length, upstream.asked.length];
      const output = await run(program, { url: gateway.url, key: SPENT_KEY }, program.scenarios.at(0) ?? 'text');
      expect(output.replaceAll('\\', '')).toMatch(program.spent.says);
      expect(gateway.asked.slice(asked).length).toBeLessThanOrEqual(program.spent.requests);
      expect(upstream.asked.length).toBe(reached);
    },
  );

  test("a key's spend after mixed traffic of all programs is what the upstream bills, to the nano-dollar", {
    timeout: 2 * MINUTES,
  }, async () => {
    const before = { charged: charged(), billed: upstream.billed(), settled: gateway.ledger.settled.length };
    const traffic = PROGRAMS.flatMap((program) =>
      program.scenarios.map((scenario) => () => run(program, through(), scenario)),
    );
    const workers = [1, 2, 3].map(async () => {
      for (let next = traffic.shift(); next !== undefined; next = traffic.shift()) await next();
    });
    await Promise.all(workers);
    await expect.poll(() => gateway.ledger.liveReservations()).toBe(0);
    expect(gateway.ledger.settled.length - before.settled).toBeGreaterThan(PROGRAMS.length);
    expect(gateway.ledger.settled.slice(before.settled).filter(({ estimated }) => estimated)).toEqual([]);
    expect(charged() - before.charged).toBe(upstream.billed() - before.billed);
  });
});

/** Sends a recorded request again, to this address, and shows what the upstream received and what came back. */
async function repeat(
  { url, headers, body }: ClientRequest,
  to: string,
): Promise<{ asked: ClientRequest; reply: string }> {
  const from = upstream.asked.length;
  const own = Object.entries(headers).filter(
    ([name]) =>
      !/^(host|connection|content-length|authorization|x-api-key|accept-encoding|transfer-encoding)$/.test(name),
  );
  const kept = Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
  const response = await fetch(to + url, {
    method: 'POST',
    headers: { ...kept, authorization: `Bearer ${KEY}` },
    body,
  });
  const reply = `${response.status} ${response.headers.get('content-type')} ${await response.text()}`;
  const [asked] = upstream.asked.slice(from);
  if (asked === undefined) throw new Error(`the upstream was not asked: ${reply}`);
  return { asked, reply };
}

/**
 * A request as the upstream sees it, without what the gateway may change: a limit where there was none, the wish for
 * usage, and that nothing is stored.
 */
function sentIn({ url, headers, body }: ClientRequest) {
  const {
    max_completion_tokens: _,
    max_output_tokens: __,
    stream_options: ___,
    store = false,
    ...rest
  } = JSON.parse(body);
  const members = { ...rest, store };
  const [, query = ''] = url.split('?');
  const { 'anthropic-beta': beta, 'anthropic-version': version } = headers;
  return { query, beta, version, members };
}

// Attempts over a real ledger: the charge after a crash between them, and the money that another attempt may take
// (LEDGER 10).
import { beforeEach, describe, expect, test } from 'vitest';
import { createProcess } from '#core/ledger/test/processes.fixture.ts';
import { createScenario, requestOf, type Scenario } from '#core/ledger/test/scenario.promises.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import {
  breaksAfter,
  chunk,
  completion,
  DONE,
  MESSAGES,
  type Script,
  SSE,
  streamed,
} from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };
const BODY = JSON.stringify(CHAT);
/** The reservation of a request: a token for each byte, and five tokens of output. */
const RESERVATION = BigInt(BODY.length) * 1_000n + 10_000n;
const promptOf = (body: string): bigint => BigInt(Math.ceil(body.length / 3)) * 1_000n;
const PROMPT = promptOf(BODY);
const ANSWER = 20_000n;

let scenario: Scenario;
let process: ReturnType<typeof createProcess>;

beforeEach(() => {
  scenario = createScenario();
  process = createProcess();
});

/** A gateway over a real ledger with two entries, of which the first breaks. */
async function open(then: Script, limit = '1') {
  const ledger = await scenario.start(process, scenario.folder);
  const entries = ['a', 'b'].map((identifier, priority) => entry('gpt', { identifier, priority }));
  const script: Script = (request, call) => (call === 1 ? { body: breaksAfter() } : then(request, call));
  const keys = { [KEY]: keyRecord({ limit }) };
  const deps = { ledger, ids: scenario.ids, clock: scenario.time.clock, timer: scenario.time.timer };
  const world = stage({ keys, snapshot: snapshotOf(entries, { strategy: 'Priority' }), script, deps });
  /** The reply, after the ledger's clock has advanced. */
  const ask = async (body: object = CHAT): Promise<Response> => (await scenario.ended(world.chat(body))).value;
  return { ...world, ask, ledger };
}

/** The charges in PostgreSQL after the process was killed and its successor has read its disk. */
async function chargedAfterKill() {
  process.is.dead = true;
  await scenario.start(createProcess(), scenario.folder);
  await scenario.time.advance(30_000);
  return chargedIn();
}

const chargedIn = () =>
  scenario.ledgerRows
    .all()
    .filter(({ kind }) => kind === 'settled')
    .map(({ cost }) => cost);

const hangs: Script = () => new Promise(() => {});
const whole: Script = () => ({ body: completion('hello') });

describe('a request whose first attempt broke', () => {
  test('is one ledger row with the cost of both attempts', async () => {
    const { ask, fake } = await open(whole);
    expect((await ask()).status).toBe(200);
    await scenario.time.advance(1000);
    expect([fake.requests.length, chargedIn()]).toEqual([2, [PROMPT + ANSWER]]);
  });

  test('is charged its reservation and the broken attempt, when the process dies in the second one', async () => {
    const { chat, fake } = await open(hangs);
    void chat(CHAT);
    await scenario.time.advance(100);
    expect(fake.requests).toHaveLength(2);
    expect(await chargedAfterKill()).toEqual([RESERVATION + PROMPT]);
  });

  test('is charged its reservation, when the process dies before the growth is on disk: no second attempt has begun', async () => {
    const { chat, fake } = await open(hangs);
    const grown: unknown[] = [];
    const { push } = scenario.folder.records;
    scenario.folder.records.push = (...records) => {
      if (records.some((record) => record.type === 'reserve' && record.amount > RESERVATION)) process.is.dead = true;
      if (process.is.dead) return grown.push(...records);
      return push.apply(scenario.folder.records, records);
    };
    void chat(CHAT);
    await scenario.time.advance(100);
    expect([fake.requests.length, grown.length]).toEqual([1, 1]);
    expect(await chargedAfterKill()).toEqual([RESERVATION]);
  });

  test('is charged the broken attempt and what was streamed, when the process dies in the second stream', async () => {
    const stream = { ...CHAT, stream: true };
    async function* speaks(): AsyncGenerator<Uint8Array> {
      for (const content of ['a', 'b', 'c']) yield new TextEncoder().encode(chunk({ content }));
      await new Promise(() => {});
    }
    const { chat } = await open(() => ({ headers: SSE, body: speaks() }));
    const response = chat(stream);
    await scenario.time.advance(100);
    void textOf(await response);
    await settleDown();
    await scenario.time.advance(1500);
    const prompt = promptOf(JSON.stringify(stream));
    expect(await chargedAfterKill()).toEqual([2n * prompt + 3n * 2_000n]);
  });

  test('takes the whole rest of its budget, and no more', async () => {
    const exact = RESERVATION + PROMPT;
    const dollars = (nano: bigint) => `0.${String(nano).padStart(9, '0')}`;
    const enough = await open(whole, dollars(exact));
    expect((await enough.ask()).status).toBe(200);
    scenario = createScenario();
    process = createProcess();
    const short = await open(whole, dollars(exact - 1n));
    expect((await short.ask()).status).toBe(502);
    await scenario.time.advance(1000);
    expect([short.fake.requests.length, chargedIn()]).toEqual([1, [PROMPT]]);
  });

  test('does not wait for the reservation of another request: its client gets the error of the attempt immediately', async () => {
    const { chat, fake, ledger } = await open(whole);
    const { scopes } = keyRecord();
    const left = 1_000_000_000n - RESERVATION - PROMPT + 1n;
    const { value: other } = await scenario.ended(ledger.reserve({ ...requestOf(left, ...scopes) }));
    expect(other.ok).toBe(true);
    const { value, millis } = await scenario.ended(chat(CHAT));
    expect([value.status, fake.requests.length]).toEqual([502, 1]);
    expect(millis).toBeLessThan(100);
  });

  test('streams its answer from another entry, and is charged for both', async () => {
    const { ask } = await open(() => ({ headers: SSE, body: streamed(['x']) }));
    const stream = { ...CHAT, stream: true };
    const text = textOf(await ask(stream));
    await scenario.time.advance(500);
    expect(await text).toContain(DONE);
    await scenario.time.advance(1000);
    expect(chargedIn()).toEqual([promptOf(JSON.stringify(stream)) + 16_000n]);
  });
});

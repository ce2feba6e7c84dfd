import { expect, test } from 'vitest';
import { createLog, redact } from '../log.ts';

const clock = { now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6) };

function lines(deps: Partial<Parameters<typeof createLog>[0]> = {}) {
  const written: string[] = [];
  const log = createLog({ write: (line) => written.push(line), clock, ...deps });
  return { log, written, parsed: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test('a log line is one JSON object on one line, time, level and message first', () => {
  const { log, written } = lines({ fields: { function: 'gateway' } });
  log.info('a request\nwas served', { status: 200, text: 'line\nbreak' });
  expect(written).toEqual([
    '{"time":"2026-01-02T03:04:05.006Z","level":"info","message":"a request\\nwas served","function":"gateway","status":200,"text":"line\\nbreak"}\n',
  ]);
});

test('no field replaces the time, the level or the message', () => {
  const { log, parsed } = lines({ fields: { level: 'mine' } });
  log.error('the real one', { message: 'forged', time: 'never', level: 'info' });
  expect(parsed()[0]).toEqual({ time: '2026-01-02T03:04:05.006Z', level: 'error', message: 'the real one' });
});

test('below its level nothing is written', () => {
  const { log, parsed } = lines({ level: 'warn' });
  log.info('quiet');
  log.warn('heard');
  log.error('heard too');
  expect(parsed().map(({ message }) => message)).toEqual(['heard', 'heard too']);
});

test.each([
  ['our own key', 'sk-0123456789abcdefghijABCDEFGHIJ0123456789abcdefghi'],
  ['a short provider key', 'sk-abcdefghijklmnopqrst'],
  ['a project key', 'sk-proj-abc_DEF-ghi012345678901234567890'],
  ['a provider key with a dash in it', 'sk-ant-api03-abcdefghijklmnopqrstuvwxyz-AA'],
])('%s never reaches a log line, wherever it stands', (_, secret) => {
  const { log, written } = lines({ fields: { always: secret } });
  log.info(`the key ${secret} came`, {
    plain: secret,
    header: `Bearer ${secret}`,
    afterBreak: `line\n${secret}\t${secret}`,
    quoted: JSON.stringify({ key: secret }),
    nested: { list: [secret, { [secret]: true }] },
    error: new Error(`refused ${secret}`, { cause: new Error(secret) }),
    map: new Map([['key', secret]]),
  });
  expect(written.join('')).not.toContain(secret);
  expect(written.join('')).not.toContain(secret.slice(0, 12));
});

test('a key is blotted out of fields of fields, where big integers, dates and functions stay what they are', () => {
  const secret = 'sk-0123456789abcdefghijABCDEFGHIJ';
  const { log, written, parsed } = lines();
  log.info('told', { tokens: { input: 24, output: 20 }, names: ['a', 'b'] });
  log.info('told', { tokens: { input: 24n, at: new Date(0) }, given: { deeper: { key: secret }, call: () => secret } });
  log.info('told', { tokens: { input: 24 }, given: { key: secret } });
  expect(parsed()).toMatchObject([
    { tokens: { input: 24, output: 20 }, names: ['a', 'b'] },
    { tokens: { input: '24', at: '1970-01-01T00:00:00.000Z' }, given: { deeper: { key: 'sk-[redacted]' } } },
    { tokens: { input: 24 }, given: { key: 'sk-[redacted]' } },
  ]);
  expect(written.join('')).not.toContain(secret);
});

test('a field of every line is written like any other field, whatever its value', () => {
  const { log, written, parsed } = lines({
    fields: { limit: 7n, key: 'sk-0123456789abcdefghijABCDEFGHIJ', time: 'mine' },
  });
  for (const message of ['one', 'one', 'other']) log.info(message, {});
  log.warn('other', { 'a field': 'of many "quotes"' });
  const always = { time: '2026-01-02T03:04:05.006Z', limit: '7', key: 'sk-[redacted]' };
  expect(parsed()).toEqual([
    { ...always, level: 'info', message: 'one' },
    { ...always, level: 'info', message: 'one' },
    { ...always, level: 'info', message: 'other' },
    { ...always, level: 'warn', message: 'other', 'a field': 'of many "quotes"' },
  ]);
  expect(written.join('')).not.toContain('ABCDEFGHIJ');
});

test('lines of the same millisecond say each its own level and message', () => {
  const { log, parsed } = lines({ fields: { function: 'gateway' } });
  log.info('one');
  log.info('one', { more: 1 });
  log.error('one');
  log.error('other', { more: 2 });
  expect(parsed().map(({ level, message, more }) => [level, message, more])).toEqual([
    ['info', 'one', undefined],
    ['info', 'one', 1],
    ['error', 'one', undefined],
    ['error', 'other', 2],
  ]);
});

test('a bearer token of any form is blotted out and the line stays JSON', () => {
  const { log, parsed } = lines();
  log.info('headers', { authorization: 'bearer eyJhbGciOi.J9.abc', quoted: '{"authorization":"Bearer xyz"}' });
  expect(parsed()[0]).toMatchObject({
    authorization: 'bearer [redacted]',
    quoted: '{"authorization":"Bearer [redacted]"}',
  });
});

test('the password in an address is blotted out, the rest of the address stays', () => {
  expect(redact('dialling postgres://ann:s3cr:et@db:5432/app and rediss://:token@store')).toBe(
    'dialling postgres://ann:[redacted]@db:5432/app and rediss://:[redacted]@store',
  );
  expect(redact('https://host:8080/path@2')).toBe('https://host:8080/path@2');
});

test('words that only resemble a key stay as they are', () => {
  for (const text of [
    'task-force-of-many-people-and-more',
    'sk-short',
    'the bearer',
    'risk-of-a-budget-overrun-in-may',
  ]) {
    expect(redact(text)).toBe(text);
  }
});

test('errors are told with their causes, big integers exactly, cycles by name', () => {
  const { log, parsed } = lines();
  const cycle: Record<string, unknown> = { amount: 9_007_199_254_740_993n };
  cycle.self = cycle;
  const shared = { twice: true };
  log.error('it broke', {
    error: new TypeError('outer', { cause: Object.assign(new Error('inner'), { code: 'ECONNREFUSED' }) }),
    cycle,
    one: shared,
    other: shared,
  });
  expect(parsed()[0]).toMatchObject({
    error: { name: 'TypeError', message: 'outer', cause: { message: 'inner', code: 'ECONNREFUSED' } },
    cycle: { amount: '9007199254740993', self: '[cycle]' },
    one: { twice: true },
    other: { twice: true },
  });
});

test('a word glued to a key does not hide it', () => {
  expect(redact('valuesk-0123456789abcdefghijABCD')).toBe('valuesk-[redacted]');
});

test('an error that causes itself does not stop the process', () => {
  const { log, parsed } = lines();
  const error = new Error('round');
  error.cause = error;
  log.error('it broke', { error });
  expect(parsed()[0]).toMatchObject({ error: { message: 'round' } });
});

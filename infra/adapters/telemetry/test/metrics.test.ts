import { expect, test } from 'vitest';
import { createMetrics } from '../metrics.ts';

/** The page without the texts for people. */
const pageOf = async (metrics: ReturnType<typeof createMetrics>) =>
  (await metrics.render()).replace(/^# HELP .*\n|^\n/gm, '');

test('counters add up per set of labels, in whatever order these are written', async () => {
  const metrics = createMetrics();
  metrics.add('gateway_operator_requests_total', { status: '200', model: 'small' });
  metrics.add('gateway_operator_requests_total', { model: 'small', status: '200' }, 2);
  metrics.add('gateway_operator_requests_total', { status: '503', model: 'small' });
  metrics.add('gateway_operator_starts_total');
  expect(await pageOf(metrics)).toBe(
    `# TYPE gateway_operator_requests_total counter
gateway_operator_requests_total{status="200",model="small"} 3
gateway_operator_requests_total{status="503",model="small"} 1
# TYPE gateway_operator_starts_total counter
gateway_operator_starts_total 1
`,
  );
});

test('a sum of dollars is true to a part in a million million, which is why a float will do for graphs', async () => {
  const metrics = createMetrics();
  let exact = 0n;
  for (let index = 0; index < 100_000; index += 1) {
    const nano = (BigInt(index) * 48_271n) % 10_000_000_007n;
    exact += nano;
    metrics.add('gateway_operator_cost_dollars_total', undefined, Number(nano) / 1e9);
  }
  const cost = Number(/^gateway_operator_cost_dollars_total (\S+)/m.exec(await pageOf(metrics))?.[1]);
  expect(Math.abs(cost / (Number(exact) / 1e9) - 1)).toBeLessThan(1e-12);
});

test('a gauge shows the last value it was set to', async () => {
  const metrics = createMetrics();
  metrics.set('depth', 5);
  metrics.set('depth', 3.5);
  metrics.set('oldest', Number.POSITIVE_INFINITY);
  metrics.set('coldest', Number.NEGATIVE_INFINITY);
  expect(await pageOf(metrics)).toBe(
    '# TYPE depth gauge\ndepth 3.5\n# TYPE oldest gauge\noldest +Inf\n# TYPE coldest gauge\ncoldest -Inf\n',
  );
});

test('a histogram counts cumulatively: an observation on a bound is inside it, one beyond all bounds only in +Inf', async () => {
  const metrics = createMetrics();
  for (const seconds of [0.0005, 0.05, 0.06, 1000]) metrics.observe('wait_seconds', seconds, { scope: 'key' });
  const text = await pageOf(metrics);
  const bucket = (bound: string) =>
    Number(new RegExp(`wait_seconds_bucket\\{le="${bound.replace('+', '\\+')}",scope="key"\\} (\\d+)`).exec(text)?.[1]);
  expect(text).toContain('# TYPE wait_seconds histogram\n');
  expect(['0.0005', '0.025', '0.05', '0.1', '600', '+Inf'].map(bucket)).toEqual([1, 1, 2, 3, 3, 4]);
  expect(text).toContain('wait_seconds_sum{scope="key"} 1000.1105\n');
  expect(text).toContain('wait_seconds_count{scope="key"} 4\n');
});

test('a histogram without labels carries only the bound', async () => {
  const metrics = createMetrics();
  metrics.observe('wait_seconds', 0.2);
  expect(await pageOf(metrics)).toContain('wait_seconds_bucket{le="0.25"} 1\n');
  expect(await pageOf(metrics)).toContain('wait_seconds_count 1\n');
});

test('quotes, backslashes and line breaks in a label cannot forge a line', async () => {
  const metrics = createMetrics();
  metrics.add('requests_total', { model: 'a"} 9\nforged 1 \\' });
  expect(await pageOf(metrics)).toBe(
    '# TYPE requests_total counter\nrequests_total{model="a\\"} 9\\nforged 1 \\\\"} 1\n',
  );
});

test('labels that differ only by where a quote stands are different series', async () => {
  const metrics = createMetrics();
  metrics.add('requests_total', { a: 'x",b="y', b: '' });
  metrics.add('requests_total', { a: 'x', b: 'y",b="' });
  expect((await pageOf(metrics)).match(/^requests_total\{.*\} 1$/gm)).toHaveLength(2);
});

test('a misuse is a bug and says so: another kind, a counter that falls, a malformed name', async () => {
  const metrics = createMetrics();
  metrics.add('requests_total');
  expect(() => metrics.set('requests_total', 1)).toThrow('requests_total is of another kind');
  expect(() => metrics.add('requests_total', {}, -1)).toThrow('only goes up');
  expect(() => metrics.add('requests_total', {}, Number.NaN)).toThrow('only goes up');
  expect(() => metrics.add('requests total')).toThrow('Invalid metric name');
  expect(() => metrics.add('requests_total', { 'a b': '' })).toThrow('not included in initial labelset');
  expect(() => metrics.add('starts_total', { 'a b': '' })).toThrow('Invalid label name');
  expect(() => metrics.observe('wait_seconds', 1, { le: '1' })).toThrow('le is a reserved label');
  for (const label of ['job', 'instance', 'namespace', 'service', 'pod', 'container', 'endpoint', 'node'])
    expect(() => metrics.set('depth', 1, { [label]: 'of Prometheus' }), label).toThrow('Invalid label name');
});

test('a gauge keeps the series that still exist, and may have none', async () => {
  const metrics = createMetrics();
  await metrics.retain('depth', []);
  for (const team of ['a', 'b', 'c']) metrics.set('depth', 5, { team });
  await metrics.retain('depth', [{ team: 'b' }, { team: 'd' }]);
  expect(await pageOf(metrics)).toBe('# TYPE depth gauge\ndepth{team="b"} 5\n');
  await metrics.retain('depth', []);
  metrics.set('depth', 3, { team: 'c' });
  expect(await pageOf(metrics)).toBe('# TYPE depth gauge\ndepth{team="c"} 3\n');
});

test('what was never counted is not shown', async () => {
  expect(await pageOf(createMetrics())).toBe('');
});

test('counts are exact for any number of label objects, and the last value of a gauge is shown', async () => {
  const metrics = createMetrics();
  for (let index = 0; index < 25_000; index += 1) {
    metrics.add('gateway_operator_fruits_total', { fruit: index % 2 === 0 ? 'apple' : 'pear' });
    metrics.set('gateway_operator_level', index, { fruit: 'apple' });
  }
  const text = await metrics.render();
  expect(text).toContain('gateway_operator_fruits_total{fruit="apple"} 12500');
  expect(text).toContain('gateway_operator_fruits_total{fruit="pear"} 12500');
  expect(text).toContain('gateway_operator_level{fruit="apple"} 24999');
  const [one, equal] = [{ fruit: 'plum' }, { fruit: 'plum' }];
  for (const [labels, value] of [
    [one, 1],
    [equal, 2],
    [one, 3],
  ] as const)
    metrics.set('gateway_operator_level', value, labels);
  expect(await metrics.render()).toContain('gateway_operator_level{fruit="plum"} 3');
});

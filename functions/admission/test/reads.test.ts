// Reviews of one namespace do not delay those of others, however much they read.
import { expect, test } from 'vitest';
import { createWorld, GOOD, objectOf, requestOf } from '../../../test/admission/fixtures.ts';
import { createHandle } from '../handle.ts';

const TEAMS = 64;

/** Reviews of a cluster in which reads of Teams wait until the test answers them. */
async function underTest() {
  const { cluster } = await createWorld();
  const waiting: Array<() => void> = [];
  const asked = { teams: 0 };
  const get: typeof cluster.get = async (resource, ...call) => {
    if (resource.kind === 'Team') {
      asked.teams += 1;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    return cluster.get(resource, ...call);
  };
  const handle = createHandle({ cluster: { ...cluster, get }, hash: (text) => text });
  const send = (request: object, signal: AbortSignal) => {
    const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    const headers = { 'content-length': `${Buffer.byteLength(body)}` };
    return handle('validate', new Request('http://x/', { method: 'POST', body, headers }), signal);
  };
  const answer = () => {
    for (const one of waiting.splice(0)) one();
  };
  return { asked, send, answer };
}

const teamRefs = Array.from({ length: TEAMS }, (_, index) => ({ name: `team-${index}` }));
const greedy = requestOf(objectOf('User', { ...GOOD.User, teamRefs }));
const other = requestOf(objectOf('VirtualKey', { ...GOOD.VirtualKey, teamRef: undefined }, { namespace: 'team-b' }));
const turn = () => new Promise((resolve) => setTimeout(resolve));

test('reviews that read many Teams have few concurrent reads, and a review of another namespace is answered', async () => {
  const { asked, send, answer } = await underTest();
  const { signal } = new AbortController();
  const reviews = Array.from({ length: 8 }, () => send(greedy, signal));
  await expect.poll(() => asked.teams).toBe(4);
  expect((await send(other, signal)).result).not.toBe('failed');
  expect(asked.teams).toBe(4);
  const ended = Promise.all(reviews).then((outcomes) => outcomes.map(({ result }) => result));
  for (let round = 0; round < TEAMS * reviews.length && asked.teams < TEAMS * reviews.length; round += 1) {
    answer();
    await turn();
  }
  answer();
  expect(await ended).not.toContain('failed');
  expect(asked.teams).toBe(TEAMS * reviews.length);
});

test('a review that was aborted reads nothing more, and does not delay others of its namespace', async () => {
  const { asked, send, answer } = await underTest();
  const review = new AbortController();
  const reviews = Array.from({ length: 8 }, () => send(greedy, review.signal));
  await expect.poll(() => asked.teams).toBe(4);
  review.abort(new Error('too late'));
  for (const { result } of await Promise.all(reviews)) expect(result).toBe('failed');
  answer();
  const { signal } = new AbortController();
  const again = send(requestOf(objectOf('User', { ...GOOD.User, teamRefs: teamRefs.slice(0, 1) })), signal);
  await expect.poll(() => asked.teams).toBe(5);
  answer();
  expect((await again).result).not.toBe('failed');
  expect(asked.teams).toBe(5);
});

test('large reviews that wait for the cluster do not delay reviews of other namespaces, and have a share of the memory', async () => {
  const { send, answer } = await underTest();
  const { signal } = new AbortController();
  const annotations = { 'example.com/long': 'x'.repeat(480 * 1024) };
  const large = requestOf(objectOf('User', { ...GOOD.User, teamRefs: [{ name: 'team-1' }] }, { annotations }));
  const reviews = Array.from({ length: 20 }, () => send(large, signal));
  expect((await send(other, signal)).result).not.toBe('failed');
  let ended = 0;
  for (const review of reviews) review.finally(() => (ended += 1));
  while (ended < reviews.length) {
    answer();
    await turn();
  }
  const outcomes = await Promise.all(reviews);
  const errors = outcomes.flatMap(({ error }) => error ?? []);
  expect(errors.length).toBe(12);
  expect(errors[0]).toMatch(/^too many reviews of namespace .* wait for the cluster; send the request again$/);
});

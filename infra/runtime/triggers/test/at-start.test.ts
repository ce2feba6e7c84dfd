import { expect, test } from 'vitest';
import { resyncAtStart } from '../at-start.ts';

/** Replies of a reconciler, the last one again and again: the seconds at which it was asked, and what was logged. */
async function startedWith(...replies: ReadonlyArray<Response>) {
  let now = 0;
  const asked: string[] = [];
  const warned: unknown[] = [];
  const fetch = async (request: Request) => {
    asked.push(`${now / 1000} ${request.method} ${new URL(request.url).pathname} ${await request.text()}`.trim());
    return (replies[asked.length - 1] ?? replies.at(-1) ?? Response.error()).clone();
  };
  const log = { info: () => {}, error: () => {}, warn: (...line: unknown[]) => void warned.push(line) };
  const pause = async (millis: number) => {
    now += millis;
  };
  await resyncAtStart({ fetch, log, now: () => now, pause });
  return { asked, warned };
}

const complete = Response.json({ actions: { ApplyWorkload: 2 }, certificate: { actions: ['IssueCertificate'] } });

test('a reconciler that starts looks at everything once, if nothing is left to wait for', async () => {
  expect(await startedWith(complete)).toEqual({ asked: ['0 POST /'], warned: [] });
});

test('it looks again after five seconds while a gateway starts, or the admission webhook cannot be reached yet', async () => {
  const { asked, warned } = await startedWith(
    Response.json({ certificate: { actions: [], missing: ['ValidatingWebhookConfiguration'] } }),
    Response.json({ certificate: { actions: [], failed: 'the API server refused' } }),
    Response.json({ underWay: 1 }),
    complete,
  );
  expect(asked).toEqual(['0 POST /', '5 POST /', '10 POST /', '15 POST /']);
  expect(warned).toEqual([]);
});

test('a cluster that cannot be read yet is read again a second later', async () => {
  const { asked } = await startedWith(new Response('the cluster could not be read', { status: 503 }), complete);
  expect(asked).toEqual(['0 POST /', '1 POST /']);
});

test('after 50 s the schedule continues, and the log has the reason', async () => {
  const { asked, warned } = await startedWith(new Response('the cluster could not be read', { status: 503 }));
  expect(asked.at(-1)).toBe('50 POST /');
  expect(JSON.stringify(warned)).toContain('the cluster could not be read');
});

// Cost of a review's references, by the number of keys.
import { SEGMENT } from '../../admission/fixtures.ts';
import { table } from '../table.ts';
import { startStandIn } from './api-server.ts';
import { load, percentile, start } from './load.ts';
import { instanceReview, keyReview, TIMEOUT } from './reviews.ts';

const CASES = [
  { name: 'edit of a key', body: keyReview() },
  { name: 'new instance with 6 entries', body: instanceReview() },
];

/**
 * Sends one review at a time against a stand-in with `keys` keys. Throws when more keys make a review look up something
 * else.
 */
export async function benchLookups({ reviews = 1500, populations = [10, 100_000] } = {}): Promise<string> {
  const rows: string[][] = [];
  const questions = new Map<string, string>();
  for (const keys of populations) {
    const standIn = await startStandIn(keys);
    const admission = await start('admission', standIn.url);
    for (const { name, body } of CASES) {
      const target = { url: admission.url, path: `/${SEGMENT}/validate${TIMEOUT}`, body };
      standIn.recorded();
      await load(target, { connections: 1, requests: 1 });
      const { asked, bytes } = standIn.recorded();
      const before = questions.get(name) ?? [...asked].sort().join('\n');
      if (before !== [...asked].sort().join('\n')) throw new Error(`with ${keys} keys the look-ups differ`);
      questions.set(name, before);
      await load(target, { connections: 1, requests: 1000 });
      const { millis } = await load(target, { connections: 1, requests: reviews });
      const times = [0.5, 0.99].map((share) => percentile(millis, share).toFixed(2));
      rows.push([name, String(keys), String(asked.length), String(bytes), ...times]);
    }
    await admission.stop();
    await standIn.stop();
  }
  const head = ['/validate with look-ups', 'keys', 'calls', 'bytes answered', 'p50, ms', 'p99, ms'];
  return `Look-ups over HTTP at a stand-in on the loopback, ${reviews} reviews one after the other.\n\n${table(head, rows)}`;
}
